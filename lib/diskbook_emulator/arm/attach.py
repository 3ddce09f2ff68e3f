"""Attaching and detaching: what changes between two lists of data disks, and whether Azure would do it."""

import copy
from dataclasses import dataclass

from diskbook.facts import catalog
from diskbook.facts.rules import FLEXIBLE_SKUS, ULTRA, Violation, VmAsk, attach_violations
from diskbook_emulator.arm import disks, errors, ids
from diskbook_emulator.arm.disk_rules import ask_of, check_new, spec_of
from diskbook_emulator.arm.plane import DISK, ControlPlane, running
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.arm.vm_body import data_disk
from diskbook_emulator.types import Json

MOST_LUN = 63


@dataclass(frozen=True)
class Change:
    """Entries of dataDisks to take away and to add; `final` is the list as it will be."""

    detach: tuple[Json, ...]
    attach: tuple[Json, ...]
    final: tuple[Json, ...]

    @property
    def kind(self) -> str:
        """Name of the delay of this change."""
        return "disk-attach" if self.attach else "disk-detach" if self.detach else "vm-update"

    @property
    def keys(self) -> set[str]:
        """Ids of the disks concerned, in lower case."""
        return {_disk_key(entry) for entry in (*self.detach, *self.attach)}


def _disk_key(entry: Json) -> str:
    return ids.key(str((entry.get("managedDisk") or {}).get("id", "")))


def _same(entry: Json, present: Json) -> bool:
    return all(entry.get(key) == present.get(key) for key in ("lun", "caching")) and _disk_key(
        entry
    ) == _disk_key(present)


def plan(plane: ControlPlane, vm: Resource, asked: list[Json]) -> Change:
    """Compare a wished list of data disks with the present one, and hold it against Azure's rules.

    Raises ArmError with Azure's code and message, when the list is refused.
    """
    entries = [data_disk(copy.deepcopy(entry)) for entry in asked]
    present = [
        entry for entry in vm.properties["storageProfile"]["dataDisks"] if not entry.get("toBeDetached")
    ]
    final = [entry for entry in entries if not entry.get("toBeDetached")]
    _check_luns(plane, vm, final)
    for entry in final:
        if not _disk_key(entry):
            _make_disk(plane, vm, entry)
    attach = [entry for entry in final if not any(_same(entry, old) for old in present)]
    detach = [old for old in present if not any(_same(entry, old) for entry in final)]
    held = {_disk_key(old) for old in vm.properties["storageProfile"]["dataDisks"]}
    for entry in attach:
        _check_attach(plane, vm, entry, again=_disk_key(entry) in held)
    for entry in final:
        _check_entry(plane, vm, entry)
    return Change(tuple(detach), tuple(attach), tuple(final))


def _check_luns(plane: ControlPlane, vm: Resource, final: list[Json]) -> None:
    luns: set[int] = set()
    for entry in final:
        lun = entry.get("lun")
        if not isinstance(lun, int):
            # wording from our knowledge, not read
            raise errors.invalid("dataDisk.lun", "Required parameter 'dataDisk.lun' is missing (null).")
        if not 0 <= lun <= MOST_LUN:
            raise errors.invalid(
                "dataDisk.lun",
                f"The value '{lun}' of parameter 'dataDisk.lun' is out of range. Value '{lun}' must be "
                f"between '0' and '{MOST_LUN}' inclusive.",
            )
        if lun in luns:
            raise errors.invalid("dataDisk.lun", f"A disk at LUN {lun} already exists.")
        luns.add(lun)
    most = catalog.vm_size(vm.properties["hardwareProfile"]["vmSize"]).max_data_disks
    if len(final) > most:
        raise errors.not_allowed(
            f"The maximum number of data disks allowed to be attached to a VM of this size is {most}."
        )


def _make_disk(plane: ControlPlane, vm: Resource, entry: Json) -> None:
    """Make a data disk that is asked for within the machine's body."""
    if entry["createOption"] != "Empty":
        # wording from our knowledge, not read
        raise errors.bad_request(
            "Required parameter 'dataDisk.managedDisk.id' is missing (null).", "InvalidParameter"
        )
    name = str(entry.get("name") or f"{vm.name}_DataDisk_{entry['lun']}")
    body: Json = {
        "sku": {"name": (entry.get("managedDisk") or {}).get("storageAccountType", "Premium_LRS")},
        "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": entry.get("diskSizeGB")},
    }
    if vm.zone and not body["sku"]["name"].endswith("_ZRS"):
        body["zones"] = [vm.zone]
    check_new(ask_of(body), plane.region(str(vm.body["location"])))
    disk = disks.build(plane, ids.group_of(vm.id), name, body, str(vm.body["location"]))
    disk.properties["provisioningState"] = "Succeeded"
    plane.store.save(disk)
    entry |= {"name": name, "managedDisk": {**(entry.get("managedDisk") or {}), "id": disk.id}}


def _check_attach(plane: ControlPlane, vm: Resource, entry: Json, again: bool) -> None:
    disk = plane.find_id(str(entry["managedDisk"]["id"]), DISK)
    if not again:
        _check_owners(plane, vm, disk)
    if disk.body["location"] != vm.body["location"]:
        # wording from our knowledge, not read
        raise errors.bad_request(
            f"Disk {disk.id} is in location '{disk.body['location']}', which is not that of the VM, "
            f"'{vm.body['location']}'."
        )
    ask, size = ask_of(disk.body), vm.properties["hardwareProfile"]["vmSize"]
    broken = attach_violations(ask, VmAsk(size, vm.zone), str(entry.get("caching") or "None"))
    if broken:
        raise _error(broken[0], disk, vm, entry)
    ultra = (vm.properties.get("additionalCapabilities") or {}).get("ultraSSDEnabled")
    if ask.sku == ULTRA and not ultra:
        raise errors.invalid(
            "managedDisk.storageAccountType",
            f"StorageAccountType {ULTRA} can be used only when additionalCapabilities.ultraSSDEnabled is "
            f"set.",
        )


def _check_entry(plane: ControlPlane, vm: Resource, entry: Json) -> None:
    """Raise Azure's error for settings of an attachment, new or old, that this disk does not take."""
    # wordings in this function are from our knowledge, not read
    disk = plane.find_id(str(entry["managedDisk"]["id"]), DISK)
    ask, size = ask_of(disk.body), vm.properties["hardwareProfile"]["vmSize"]
    if ask.max_shares > 1 and entry.get("deleteOption") == "Delete":
        # The rule is Microsoft's (azure-compute-docs, virtual-machines/delete.md); its code is inferred.
        raise errors.invalid(
            "dataDisk.deleteOption",
            f"The deleteOption of shared disk '{disk.name}' with maxShares {ask.max_shares} cannot be set to "
            "'Delete'. Leave it blank or set it to 'Detach'.",
        )
    if entry.get("writeAcceleratorEnabled") and not catalog.vm_size(size).family.lower().startswith(
        "standardm"
    ):
        raise errors.invalid(
            "dataDisk.writeAcceleratorEnabled", f"Write Accelerator is not supported for the VM size {size}."
        )


def _check_owners(plane: ControlPlane, vm: Resource, disk: Resource) -> None:
    for owner in disks.owners(plane, disk):
        leaving = owner.hidden.get("leaving", [])
        if disk.key in leaving:
            raise errors.ArmError(
                409,
                "AttachDiskWhileBeingDetached",
                f"Cannot attach data disk '{disk.name}' to VM '{vm.name}' because the disk is currently "
                "being detached. Please wait until the disk is completely detached and then try again.",
            )
    holders = [owner for owner in disks.owners(plane, disk) if owner is not vm]
    if len(holders) >= int(disk.properties.get("maxShares") or 1):
        raise errors.ArmError(
            409,
            "ConflictingUserInput",
            f"Disk '{disk.name}' cannot be attached as the disk is already owned by VM '{holders[0].id}'.",
        )


def _error(broken: Violation, disk: Resource, vm: Resource, entry: Json) -> errors.ArmError:
    if broken.rule == "attach-zone":
        if disk.zone is not None:
            return errors.zones_differ(disk.id, vm.zone, disk.zone)
        return errors.not_in_zone(disk.id, str(vm.zone))
    if broken.rule == "cache-shared":
        return errors.bad_request(
            f"Shared disk '{disk.name}' with maxShares {disk.properties['maxShares']} supports only Disk "
            "CachingType 'None'."
        )
    if broken.rule == "cache-sku" and disk.body["sku"]["name"] in FLEXIBLE_SKUS:
        return errors.invalid(
            "dataDisk.caching",
            f"Storage Account type {disk.body['sku']['name']} is not supported with caching type "
            f"{entry['caching']}. Please use caching type None.",
        )
    parameter = "dataDisk.caching" if broken.field == "cache" else "dataDisk.managedDisk"
    # wording from our knowledge, not read
    return errors.invalid(
        parameter, f"The value of parameter '{parameter}' for disk {disk.name} is invalid: {broken.sentence}."
    )


def apply(plane: ControlPlane, vm: Resource, change: Change) -> None:
    """Do a change at the backend; undo the attached ones when one fails."""
    if not running(vm):
        return
    for entry in change.detach:
        plane.backend.detach(vm.key, int(entry["lun"]))
    done: list[Json] = []
    try:
        for entry in change.attach:
            attach_entry(plane, vm, entry)
            done.append(entry)
    except (OSError, RuntimeError):
        for entry in done:
            plane.backend.detach(vm.key, int(entry["lun"]))
        for entry in change.detach:
            attach_entry(plane, vm, entry)
        raise


def attach_entry(plane: ControlPlane, vm: Resource, entry: Json) -> None:
    with plane.store.lock:
        disk = plane.store.get(_disk_key(entry))
        if disk is None:
            raise RuntimeError(f"Disk {_disk_key(entry)} was not found.")
        spec = spec_of(disk)
    plane.backend.attach(vm.key, int(entry["lun"]), spec, str(entry.get("caching") or "None"))


def begin(plane: ControlPlane, vm: Resource, change: Change) -> None:
    """Write a change into the machine's body as Azure shows it while it lasts."""
    gone = [{**entry, "toBeDetached": True} for entry in change.detach]
    moved = {_disk_key(entry) for entry in change.attach}
    shown = [entry for entry in gone if _disk_key(entry) not in moved]
    vm.properties["storageProfile"]["dataDisks"] = [*copy.deepcopy(list(change.final)), *shown]
    vm.hidden["leaving"] = [_disk_key(entry) for entry in shown]
    plane.store.save(vm)
    disks.link_keys(plane, change.keys)


def end(plane: ControlPlane, vm: Resource, change: Change) -> None:
    """Write a change into the bodies once it is done."""
    vm.properties["storageProfile"]["dataDisks"] = copy.deepcopy(list(change.final))
    vm.hidden.pop("leaving", None)
    plane.store.save(vm)
    disks.link_keys(plane, change.keys)


def wanted_by_request(vm: Resource, body: Json) -> list[Json]:
    """Turn a body of attachDetachDataDisks into the whole list of data disks.

    Shape from the REST specification, not seen on the wire.
    """
    rows: list[Json] = copy.deepcopy(vm.properties["storageProfile"]["dataDisks"])
    away = {ids.key(str(row["diskId"])) for row in body.get("dataDisksToDetach") or []}
    for key in away:
        if not any(_disk_key(row) == key for row in rows):
            # wording from our knowledge, not read
            raise errors.invalid("dataDisksToDetach", f"Disk {key} is not attached to VM {vm.name}.")
    rows = [row for row in rows if _disk_key(row) not in away]
    for row in body.get("dataDisksToAttach") or []:
        lun = row.get("lun")
        taken = {entry["lun"] for entry in rows}
        entry = {
            key: row[key] for key in ("caching", "deleteOption", "writeAcceleratorEnabled") if row.get(key)
        }
        free = next(number for number in range(len(taken) + 1) if number not in taken)
        rows.append(
            {
                **entry,
                "lun": free if lun is None else lun,
                "createOption": "Attach",
                "managedDisk": {"id": row["diskId"]},
            }
        )
    return rows
