"""Azure's errors for machines that break a rule: size, zone, quota, interfaces, OS disk."""

from __future__ import annotations

from datetime import date

from diskbook.emulator.arm.cleanup import VM
from diskbook.emulator.arm.errors import ArmError, bad_request, not_allowed, quota_exceeded
from diskbook.emulator.arm.plane import ControlPlane
from diskbook.emulator.arm.state import Resource
from diskbook.emulator.types import Json
from diskbook.reference import catalog
from diskbook.reference.rules import FLEXIBLE_SKUS, VmAsk, machine_violations

NIC = "Microsoft.Network/networkInterfaces"


def check_new_vm(plane: ControlPlane, body: Json, region: catalog.Region, today: date) -> None:
    """Raise Azure's error for the first rule that a new machine breaks."""
    properties = body.get("properties") or {}
    for part in ("hardwareProfile", "storageProfile", "networkProfile"):
        if not properties.get(part):
            raise _missing(part)
    size = _size(str(properties["hardwareProfile"].get("vmSize", "")), region)
    zones = body.get("zones") or []
    ask = VmAsk(size.name, str(zones[0]) if zones else None)
    if plane.settings.restricted(ask.size, region.name, ask.zone):
        raise _not_available(ask, region)
    _check_place(ask, region, today)
    _check_interfaces(plane, properties["networkProfile"].get("networkInterfaces") or [])
    _check_os_disk(properties["storageProfile"].get("osDisk") or {}, size)
    check_quota(plane, size, region.name)


def _missing(part: str) -> ArmError:
    # wording from our knowledge, not read
    return bad_request(f"Required parameter '{part}' is missing (null).", "InvalidParameter", part)


def _size(name: str, region: catalog.Region) -> catalog.VmSize:
    size = catalog.vm_sizes().get(name.lower())
    if size is None:
        known = ",".join(item.name for item in catalog.vm_sizes().values())
        # wording from our knowledge, not read
        raise bad_request(
            f"The value {name} provided for the VM size is not valid. The valid sizes in the current region "
            f"are: {known}. Find out more on the valid VM sizes in each region at https://aka.ms/azure-regions.",
            "InvalidParameter",
            "vmSize",
        )
    return size


def _check_place(ask: VmAsk, region: catalog.Region, today: date) -> None:
    for broken in machine_violations(ask, region, today):
        if broken.rule == "vm-size-retired":
            raise _not_available(ask, region)
        # wording from our knowledge, not read
        raise bad_request(
            f"The zone(s) '{ask.zone}' for resource of type '{VM}' is not supported. The supported zones for "
            f"location '{region.name}' are '{','.join(region.zones)}'.",
            "InvalidAvailabilityZone",
        )


def _not_available(ask: VmAsk, region: catalog.Region) -> ArmError:
    return ArmError(
        409,
        "SkuNotAvailable",
        "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: "
        f"{ask.size}' is currently not available in location '{region.name}'. Please try another "
        "size or deploy to a different location or different zone. See "
        "https://aka.ms/azureskunotavailable for details.",
    )


def _check_interfaces(plane: ControlPlane, rows: list[Json]) -> None:
    if not rows:
        raise _missing("networkInterfaces")
    for row in rows:
        nic = plane.find_id(str(row.get("id", "")), NIC)
        owner = nic.properties.get("virtualMachine", {}).get("id")
        if owner:
            # wording from our knowledge, not read
            raise bad_request(
                f"Network Interface {nic.id} is used by existing resource {owner}. In order to use the "
                "network interface, it must be dissociated from the existing resource.",
                "NicInUse",
            )


def _check_os_disk(disk: Json, size: catalog.VmSize) -> None:
    # wordings in this function are from our knowledge, not read
    sku = (disk.get("managedDisk") or {}).get("storageAccountType", "Premium_LRS")
    if sku in FLEXIBLE_SKUS:
        raise bad_request(f"{sku} disks can be data disks only, not OS disks.", "InvalidParameter", "osDisk")
    if sku not in catalog.sku_names():
        raise bad_request(f"There is no storage account type '{sku}'.", "InvalidParameter", "osDisk")
    if not disk.get("diffDiskSettings"):
        return
    if not size.ephemeral_os:
        raise bad_request(
            f"OS disk of Ephemeral VM with size {size.name} is not supported: the size has neither cache nor "
            "temporary disk for it.",
            "OperationNotAllowed",
        )
    place, gib = disk["diffDiskSettings"].get("placement"), int(disk.get("diskSizeGB") or 0)
    room = {"ResourceDisk": size.local_gib, "CacheDisk": size.cache_gib}
    if gib > room.get(place, max(room.values())):
        raise bad_request(
            f"OS disk of Ephemeral VM with size greater than {room.get(place, max(room.values()))} GB is not "
            f"allowed for VM size {size.name} when the DiffDiskPlacement is {place}.",
            "InvalidParameter",
            "osDisk.diskSizeGB",
        )
    if disk.get("caching", "ReadOnly") != "ReadOnly":
        raise bad_request(
            "OS disk of Ephemeral VM must have caching 'ReadOnly'.", "InvalidParameter", "osDisk.caching"
        )
    if disk.get("deleteOption", "Delete") != "Delete":
        raise bad_request(
            "OS disk of Ephemeral VM must have deleteOption 'Delete'.", "InvalidParameter", "osDisk"
        )


def check_quota(plane: ControlPlane, size: catalog.VmSize, location: str, freed: int = 0) -> None:
    """Raise Azure's error when the cores of a size exceed the quota of its family or the region."""
    for name in (size.family, "cores"):
        limit, used = plane.settings.quota(name), cores_used(plane, location, name) - freed
        if used + size.vcpus > limit:
            shown = name if name != "cores" else "Total Regional"
            raise quota_exceeded(shown, location, limit, used, size.vcpus)


def cores_used(plane: ControlPlane, location: str, family: str) -> int:
    """Cores of a family ("cores": of all) in a region; deallocated machines use none."""
    total = 0
    for vm in plane.store.of_type(VM):
        size = catalog.vm_size(vm.properties["hardwareProfile"]["vmSize"])
        counts = vm.body["location"] == location and vm.hidden.get("power") != "deallocated"
        if counts and family in ("cores", size.family):
            total += size.vcpus
    return total


def check_resize(plane: ControlPlane, vm: Resource, name: str) -> None:
    """Raise Azure's error when a machine cannot take another size."""
    old = catalog.vm_size(vm.properties["hardwareProfile"]["vmSize"])
    region = plane.region(str(vm.body["location"]))
    new = _size(name, region)
    if new.name == old.name:
        return
    _check_place(VmAsk(new.name, vm.zone), region, date.today())
    if len(vm.properties["storageProfile"]["dataDisks"]) > new.max_data_disks:
        raise not_allowed(
            "The maximum number of data disks allowed to be attached to a VM of this size is "
            f"{new.max_data_disks}."
        )
    check_quota(plane, new, region.name, freed=old.vcpus if old.family == new.family else 0)
