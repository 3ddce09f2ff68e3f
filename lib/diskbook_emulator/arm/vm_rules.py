"""Azure's errors for machines that break a rule: size, zone, quota, interfaces, OS disk."""

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import date

from diskbook.facts import catalog
from diskbook.facts.rules import FLEXIBLE_SKUS, VmAsk, machine_violations, ultra_violations
from diskbook.hosts import powershell as setup
from diskbook_emulator.arm import errors
from diskbook_emulator.arm.errors import ArmError, invalid
from diskbook_emulator.arm.network import address_ids
from diskbook_emulator.arm.plane import VM, ControlPlane
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.types import Json

NIC, ADDRESS = "Microsoft.Network/networkInterfaces", "Microsoft.Network/publicIPAddresses"
HOST_NAME, NO_HOST_NAME = 64, "`~!@#$%^&*()=+_[]{}\\|;:'\",<>/?"
# Names and lengths are those of Microsoft's specification (OSProfile.adminUsername), characters azure-cli's.
NO_ADMINS = {
    "administrator", "admin", "user", "user1", "test", "user2", "test1", "user3", "admin1", "1", "123", "a",
    "actuser", "adm", "admin2", "aspnet", "backup", "console", "david", "guest", "john", "owner", "root",
    "server", "sql", "support", "support_388945a0", "sys", "test2", "test3", "user4", "user5",
}  # fmt: skip
LINUX_ADMIN = re.compile(r'(?!-)[^\s\\/"\[\]:|<>+=;,?*@#()!A-Z$]{1,64}')
WINDOWS_ADMIN = re.compile(r'[^\s\\/"\[\]:|<>+=;,?*@]{1,20}(?<!\.)')


def check_new_vm(plane: ControlPlane, name: str, body: Json, region: catalog.Region, today: date) -> None:
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
    if (properties.get("additionalCapabilities") or {}).get("ultraSSDEnabled"):
        check_ultra(ask, region)
    _check_profile(properties.get("osProfile") or {})
    check_interfaces(plane, name, body, size)
    _check_os_disk(properties["storageProfile"].get("osDisk") or {}, size)
    _check_controller(properties["storageProfile"].get("diskControllerType"), size)
    check_quota(plane, size, region.name)


def _missing(part: str) -> errors.ArmError:
    # wording from our knowledge, not read
    return errors.invalid(part, f"Required parameter '{part}' is missing (null).")


def _size(name: str, region: catalog.Region) -> catalog.VmSize:
    size = catalog.find_vm_size(name)
    if size is None:
        known = ",".join(item.name for item in catalog.vm_sizes().values() if item.name[:10] == name[:10])
        raise errors.invalid(
            "vmSize",
            f"The requested VM size {name} is not available in the current region. The sizes available in "
            f"the current region are: {known}. Find out more on the available VM sizes in each region at "
            "https://aka.ms/azure-regions.",
        )
    return size


def _check_place(ask: VmAsk, region: catalog.Region, today: date) -> None:
    for broken in machine_violations(ask, region, today):
        if broken.rule == "vm-size-retired":
            raise _not_available(ask, region)
        # wording from our knowledge, not read
        raise errors.bad_request(
            f"The zone(s) '{ask.zone}' for resource of type '{VM}' is not supported. The supported zones for "
            f"location '{region.name}' are '{','.join(region.zones)}'.",
            "InvalidAvailabilityZone",
        )


def _not_available(ask: VmAsk, region: catalog.Region) -> errors.ArmError:
    return errors.ArmError(
        409,
        "SkuNotAvailable",
        "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: "
        f"{ask.size}' is currently not available in location '{region.name}'. Please try another "
        "size or deploy to a different location or different zone. See "
        "https://aka.ms/azureskunotavailable for details.",
    )


def check_ultra(ask: VmAsk, region: catalog.Region) -> None:
    """Raise Azure's error for a machine that cannot take the Ultra disks it is to take."""
    for broken in ultra_violations(ask, region):
        if broken.rule == "ultra-zone":
            sentence = "UltraSSD can be used only with Virtual Machine in an Availability Zone."
        else:  # wording from our knowledge, not read
            sentence = f"UltraSSD cannot be used with this Virtual Machine: {broken.sentence}."
        raise errors.invalid("additionalCapabilities.ultraSSDEnabled", sentence)


def _check_profile(profile: Json) -> None:
    """Raise Azure's error for a name that a Linux machine, or an administrator, cannot have."""
    if profile:
        allowed = LINUX_ADMIN if profile.get("linuxConfiguration") else WINDOWS_ADMIN
        _check_admin(str(profile.get("adminUsername", "")), allowed)
    name = str(profile.get("computerName", ""))
    if profile.get("linuxConfiguration") and (len(name) > HOST_NAME or set(name) & set(NO_HOST_NAME)):
        raise errors.invalid(
            "osProfile.computerName",
            f"Linux host name cannot exceed {HOST_NAME} characters in length or contain the following "
            f"characters: {' '.join(NO_HOST_NAME)}.",
        )


def _check_admin(name: str, allowed: re.Pattern[str]) -> None:
    if not allowed.fullmatch(name) or name.lower() in NO_ADMINS:
        raise errors.invalid("adminUsername", "The Admin Username specified is not allowed.")


def check_interfaces(plane: ControlPlane, name: str, body: Json, size: catalog.VmSize) -> None:
    rows: list[Json] = body["properties"]["networkProfile"].get("networkInterfaces") or []
    if not rows:
        raise _missing("networkInterfaces")
    if len(rows) > size.max_nics:
        # wording from our knowledge, not read
        raise errors.bad_request(
            f"The number of network interfaces for virtual machine {name} exceeds the maximum allowed for "
            f"the virtual machine size {size.name}. The number of network interfaces is {len(rows)} and the "
            f"maximum allowed is {size.max_nics}.",
            "NetworkInterfaceCountExceeded",
        )
    for row in rows:
        nic = plane.find_id(str(row.get("id", "")), NIC)
        _check_interface(plane, name, body, nic)
        if nic.properties.get("enableAcceleratedNetworking") and not size.accelerated_networking:
            raise errors.bad_request(
                f"Virtual Machine size {size.name} is not in the allowed list of VM sizes for accelerated "
                f"networking to be enabled on Network Interface {nic.id}.",
                "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
            )


def _check_interface(plane: ControlPlane, name: str, body: Json, nic: Resource) -> None:
    owner = nic.properties.get("virtualMachine", {}).get("id")
    if owner:
        # wording from our knowledge, not read
        raise errors.bad_request(
            f"Network Interface {nic.id} is used by existing resource {owner}. In order to use the "
            "network interface, it must be dissociated from the existing resource.",
            "NicInUse",
        )
    if nic.body["location"] != plane.region(str(body["location"])).name:
        raise errors.not_in_region(nic.id, name)
    zones = [str(zone) for zone in body.get("zones") or []]
    for address_id in address_ids(nic):
        address = plane.find_id(address_id, ADDRESS)
        # An address without zones spans those of the region (Microsoft, on public addresses).
        spans = len(address.body.get("zones") or []) != 1
        if zones and not spans and address.zone not in zones:
            raise errors.bad_request(
                f"Compute resource {name} has a zone constraint {zones[0]} but the PublicIPAddress "
                f"{address.id} used by the compute resource via NetworkInterface or LoadBalancer has a "
                f"different zone constraint {address.zone}.",
                "ComputeResourceZoneConstraintDoesNotMatchPublicIPAddressZoneConstraint",
            )


def _check_os_disk(disk: Json, size: catalog.VmSize) -> None:
    # wordings in this function are from our knowledge, not read, but for the size of an ephemeral disk
    sku = (disk.get("managedDisk") or {}).get("storageAccountType", "Premium_LRS")
    if sku in FLEXIBLE_SKUS:
        raise errors.invalid("osDisk", f"{sku} disks can be data disks only, not OS disks.")
    if sku not in catalog.sku_names():
        raise errors.invalid("osDisk", f"There is no storage account type '{sku}'.")
    if not disk.get("diffDiskSettings"):
        return
    if not size.ephemeral_os:
        raise errors.bad_request(
            f"OS disk of Ephemeral VM with size {size.name} is not supported: the size has neither cache nor "
            "temporary disk for it.",
            "OperationNotAllowed",
        )
    place, gib = disk["diffDiskSettings"].get("placement"), int(disk.get("diskSizeGB") or 0)
    room = size.os_disk_room_gib
    if gib > room.get(place, max(room.values())):
        raise errors.bad_request(
            f"OS disk of Ephemeral VM with size greater than {room.get(place, max(room.values()))} GB is not "
            f"allowed for VM size {size.name} when the DiffDiskPlacement is {place}. Please refer to "
            "https://aka.ms/Ephemeral for more details.",
            "NotSupported",
        )
    if disk.get("caching", "ReadOnly") != "ReadOnly":
        raise errors.invalid("osDisk.caching", "OS disk of Ephemeral VM must have caching 'ReadOnly'.")
    if disk.get("deleteOption", "Delete") != "Delete":
        raise errors.invalid("osDisk", "OS disk of Ephemeral VM must have deleteOption 'Delete'.")


def controller_of(storage: Json, size: catalog.VmSize) -> str:
    """Disk controller of a machine: the one asked for, else SCSI where its size has that."""
    return str(storage.get("diskControllerType") or (catalog.NVME if size.nvme_only else catalog.SCSI))


def _check_controller(asked: object, size: catalog.VmSize) -> None:
    if asked and size.disk_controllers and asked not in size.disk_controllers:
        # The sentence is Microsoft's (enable-nvme-remote-faqs.yml of 2025-05-23), the code our guess.
        raise errors.invalid(
            "storageProfile.diskControllerType",
            "The selected VM size can't boot with DiskControllerTypes. Check that the disk controller type "
            "provided is one of the supported disk controller types for the VM size.",
        )


def check_quota(plane: ControlPlane, size: catalog.VmSize, location: str, freed: int = 0) -> None:
    """Raise Azure's error when the cores of a size exceed the quota of its family or the region."""
    for name in filter(None, (size.family, "cores")):
        limit, used = plane.settings.quota(name), cores_used(plane, location, name) - freed
        if used + size.vcpus > limit:
            shown = name if name != "cores" else "Total Regional"
            raise errors.quota_exceeded(shown, location, limit, used, size.vcpus)


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
    old = catalog.vm_size(vm.properties["hardwareProfile"]["vmSize"])
    region = plane.region(str(vm.body["location"]))
    new = _size(name, region)
    if new.name == old.name:
        return
    _check_place(VmAsk(new.name, vm.zone), region, plane.today)
    _check_controller(vm.properties["storageProfile"].get("diskControllerType"), new)
    if len(vm.properties["storageProfile"]["dataDisks"]) > new.max_data_disks:
        raise errors.not_allowed(
            "The maximum number of data disks allowed to be attached to a VM of this size is "
            f"{new.max_data_disks}."
        )
    check_quota(plane, new, region.name, freed=old.vcpus if old.family == new.family else 0)


# Of DiskSpd 2.0.21a, which the emulated machine plays to have downloaded.
RELEASE_SHA256 = "D02F6BE976C518D4134E62AF7F518BAAD6C7C81F924CAAFBEBA65BD0831CE139"
_SHA256 = re.compile(r"^\$sha256 = '([0-9A-Fa-f]{64})'$", re.MULTILINE)
_NAMES = ("host", "authorized")
_KEYS = re.compile(r"-HostKey (?P<host>[A-Za-z0-9+/=]+) -AuthorizedKey (?P<authorized>[A-Za-z0-9+/=]+)")


def check_profile(name: str, body: Json) -> None:
    """Raise Azure's error for an osProfile that Windows does not take."""
    profile = (body.get("properties") or {}).get("osProfile") or {}
    computer = str(profile.get("computerName") or name)
    if len(computer) > setup.COMPUTER_NAME_CHARS or computer.isdigit():
        # wording from our knowledge, not read
        raise invalid(
            "osProfile.computerName",
            "Windows computer name cannot be more than 15 characters long, be entirely numeric, or contain "
            "special characters.",
        )
    if not profile.get("adminPassword"):
        # wording from our knowledge, not read
        raise invalid("adminPassword", "Required parameter 'adminPassword' is missing (null).")


@dataclass(frozen=True)
class Keys:
    """The machine's private host key, and the public key that may sign in."""

    host: str
    authorized: str


def keys(properties: Json, custom_data: str) -> Keys:
    """Return the keys that the extension hands over.

    - `properties`: of the extension, with its protected settings.
    - `custom_data`: the machine's decoded custom data, where the script is.

    Raises ArmError: VMExtensionProvisioningError, when the script would have failed or is another one.
    """
    command = str((properties.get("protectedSettings") or {}).get("commandToExecute", ""))
    arguments = _KEYS.search(command)
    if arguments is None or setup.CUSTOM_DATA not in command:
        raise _failed("The command is not the workbook's own (emulated)")
    asked = _SHA256.search(custom_data)
    if asked and asked[1].upper() != RELEASE_SHA256:
        raise _failed(
            f"DiskSpd.zip has the SHA-256 {RELEASE_SHA256}, not {asked[1]}; it was not unpacked (emulated)"
        )
    if not custom_data.startswith(setup.setup_script()):
        raise _failed("The script in the custom data is not the workbook's own (emulated)")
    try:
        host, authorized = (base64.b64decode(arguments[name], validate=True).decode() for name in _NAMES)
    except (binascii.Error, UnicodeDecodeError) as error:
        raise _failed(f"Cannot convert a key from base64: {error}") from error
    return Keys(host, authorized)


def _failed(message: str) -> ArmError:
    # Code and beginning from our knowledge, not read.
    return ArmError(
        409,
        "VMExtensionProvisioningError",
        f"VM has reported a failure when processing extension '{setup.EXTENSION}'. Error message: "
        f"'{message}'.",
    )
