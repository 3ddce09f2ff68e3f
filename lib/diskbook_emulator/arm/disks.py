"""Managed disks."""

import copy
import uuid

from diskbook.facts.disk_options import OPTIONS
from diskbook_emulator.arm import ids
from diskbook_emulator.arm.disk_rules import ask_of, check_body, check_change, check_new, fill, spec_of
from diskbook_emulator.arm.errors import ArmError, invalid, not_allowed
from diskbook_emulator.arm.operations import Work, azure_time
from diskbook_emulator.arm.plane import DISK, VM, Call, ControlPlane, Reply, creation, poll_headers
from diskbook_emulator.arm.state import Resource, shown
from diskbook_emulator.types import Json

PAGE = 50
CREATION = "creationData"
# what a change may set; of creationData only the options, which a rule then judges
WRITABLE = (
    "diskSizeGB",
    "tier",
    "networkAccessPolicy",
    "publicNetworkAccess",
    *(option.ask[0] for option in OPTIONS if option.ask[0] != CREATION),
)
OF_CREATION = tuple(option.ask[1] for option in OPTIONS if option.ask[0] == CREATION)


def put(plane: ControlPlane, call: Call) -> Reply:
    plane.writable_group(call.group)
    existing = plane.store.get(plane.resource_id(call.group, DISK, call.params["name"]))
    if existing is not None:
        return _change(plane, call, existing, whole=True)
    region = plane.region(str(call.body.get("location", "")))
    option = ((call.body.get("properties") or {}).get("creationData") or {}).get("createOption")
    if option != "Empty":
        # wording from our knowledge, not read
        raise invalid("createOption", f"The emulator makes empty disks only, not createOption '{option}'.")
    check_body(call.params["name"], call.body)
    check_new(ask_of(call.body), region, call.params["name"])
    disk = build(plane, call.group, call.params["name"], call.body, region.name)
    op_id = plane.operations.start("disk-create", disk.id, creation(plane, disk), disk.id)
    return Reply(202, _echo(call, disk), _headers(plane, call, op_id, disk))


def build(plane: ControlPlane, group: str, name: str, body: Json, location: str) -> Resource:
    """Make the record of a new disk and store it, still Updating."""
    now = azure_time()
    made = copy.deepcopy(body)
    made |= {
        "id": plane.resource_id(group, DISK, name),
        "name": name,
        "type": DISK,
        "location": location,
        "tags": dict(body.get("tags") or {}),
    }
    defaults: Json = {
        "encryption": {"type": "EncryptionAtRestWithPlatformKey"},
        "networkAccessPolicy": "AllowAll",
        "publicNetworkAccess": "Enabled",
        "timeCreated": now,
        "provisioningState": "Updating",
        "diskState": "Unattached",
        "uniqueId": str(uuid.uuid4()),
    }
    made["properties"] = defaults | {
        key: value for key, value in made["properties"].items() if value is not None
    }
    if not made.get("zones"):
        made.pop("zones", None)
    disk = Resource(made)
    if disk.properties.get("burstingEnabled"):
        disk.properties["burstingEnabledTime"] = now
    fill(disk, plane.settings.drives)
    return plane.store.save(disk)


def _echo(call: Call, disk: Resource) -> Json:
    """Build the body of a 202, as recorded in 2025: the request echoed, without what is computed later."""
    body: Json = copy.deepcopy(call.body)
    body |= {"id": disk.id, "name": disk.name, "type": DISK, "location": disk.body["location"]}
    body["properties"] = {**(body.get("properties") or {}), "provisioningState": "Updating"}
    return body


def _headers(plane: ControlPlane, call: Call, op_id: str, disk: Resource) -> dict[str, str]:
    location = str(disk.body["location"])
    return poll_headers(plane, call, op_id, location, collection="DiskOperations", retry_after_s=None)


def patch(plane: ControlPlane, call: Call) -> Reply:
    plane.writable_group(call.group)
    return _change(plane, call, plane.find(call.group, DISK, call.params["name"]), whole=False)


def _change(plane: ControlPlane, call: Call, disk: Resource, whole: bool) -> Reply:
    body = _changed(disk, call.body, whole)
    check_body(disk.name, {**call.body, "sku": body["sku"]}, disk.properties)
    region = plane.region(str(disk.body["location"]))
    check_change(disk, ask_of(disk.body), ask_of(body), region, in_use(plane, disk))
    previous = copy.deepcopy(disk.body)
    if body["properties"].get("burstingEnabled") and not previous["properties"].get("burstingEnabled"):
        body["properties"]["burstingEnabledTime"] = azure_time()
    disk.body = body
    fill(disk, plane.settings.drives)
    disk.properties["provisioningState"] = "Updating"
    disk.hidden["previous"] = previous
    plane.store.save(disk)
    op_id = plane.operations.start("disk-update", disk.id, update(plane, disk), disk.id)
    return Reply(202, _echo(call, disk), _headers(plane, call, op_id, disk))


def update(plane: ControlPlane, disk: Resource) -> Work:
    """Build the work of changing a disk: an attached one gets its new limits at once."""
    attached = bool(owners(plane, disk))
    spec = spec_of(disk)

    def effect() -> None:
        if attached:
            plane.backend.update_disk(spec)

    def settle(error: ArmError | None) -> None:
        if plane.store.get(disk.id) is not disk:
            return  # deleted meanwhile
        previous = disk.hidden.pop("previous", None)
        if error is not None and previous is not None:
            disk.body = previous
        disk.properties["provisioningState"] = "Succeeded"
        plane.store.save(disk)
        link(plane, disk)

    return Work(effect, settle, (disk.id,))


def _changed(disk: Resource, wish: Json, whole: bool) -> Json:
    """Merge a PUT or PATCH body into that of the disk."""
    body = copy.deepcopy(disk.body)
    wished = wish.get("properties") or {}
    if wish.get("sku"):
        body["sku"] = {"name": wish["sku"].get("name") or body["sku"]["name"]}
    if "tags" in wish or whole:
        body["tags"] = dict(wish.get("tags") or {})
    if whole and (wish.get("zones") or []) != (body.get("zones") or []):
        body["zones"] = wish.get("zones") or []
    creation = wished.get(CREATION) or {}
    for key in OF_CREATION:
        if key in creation:
            body["properties"].setdefault(CREATION, {})[key] = creation[key]
    grows = wished.get("diskSizeGB") not in (None, body["properties"]["diskSizeGB"])
    if (grows or wish.get("sku")) and "tier" not in wished:
        body["properties"].pop("tier", None)
    for key in WRITABLE:
        if wished.get(key) is not None:
            body["properties"][key] = wished[key]
    return body


def get(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, shown(plane.find(call.group, DISK, call.params["name"])))


def listing(plane: ControlPlane, call: Call) -> Reply:
    """List disks of a group or the subscription, in pages of 50 with a nextLink."""
    start = int(call.query.get("$skiptoken", "0"))
    disks = plane.listed(call, DISK)
    body: Json = {"value": [shown(disk) for disk in disks[start : start + PAGE]]}
    if len(disks) > start + PAGE:
        query = f"api-version={call.api_version}&$skiptoken={start + PAGE}"
        body["nextLink"] = f"{call.base}{call.path}?{query}"
    return Reply(200, body)


def delete(plane: ControlPlane, call: Call) -> Reply:
    """Delete a disk that is not attached; 204 where there is none."""
    plane.group(call.group)
    disk = plane.store.get(plane.resource_id(call.group, DISK, call.params["name"]))
    if disk is None:
        return Reply(204)
    if holders := owners(plane, disk):
        raise not_allowed(f"Disk {disk.name} is attached to VM {holders[0].id}.")
    disk.properties["provisioningState"] = "Deleting"
    plane.store.save(disk)
    op_id = plane.operations.start("disk-delete", disk.id, deletion(plane, disk))
    return Reply(202, headers=_headers(plane, call, op_id, disk))


def deletion(plane: ControlPlane, disk: Resource) -> Work:
    def effect() -> None:
        if not disk.hidden.get("os"):
            plane.backend.delete_disk(disk.key)

    def settle(error: ArmError | None) -> None:
        if error is None:
            plane.store.remove(disk.id)
        else:
            disk.properties["provisioningState"] = "Succeeded"
            plane.store.save(disk)

    return Work(effect, settle, (disk.id,))


def owners(plane: ControlPlane, disk: Resource) -> list[Resource]:
    """Machines that the disk is attached to (or being attached to, or detached from)."""
    return [vm for vm in plane.store.of_type(VM) if disk.key in disk_keys(vm)]


def disk_keys(vm: Resource) -> set[str]:
    """Ids of all disks of a machine, in lower case."""
    profile = vm.properties.get("storageProfile", {})
    entries = [*profile.get("dataDisks", []), profile.get("osDisk", {})]
    disk_ids = [(entry.get("managedDisk") or {}).get("id") for entry in entries]
    return {ids.key(disk_id) for disk_id in disk_ids if disk_id}


def in_use(plane: ControlPlane, disk: Resource) -> bool:
    """Whether a machine that holds resources (is not deallocated) has the disk."""
    return any(vm.hidden.get("power") != "deallocated" for vm in owners(plane, disk))


def link(plane: ControlPlane, disk: Resource) -> None:
    """Write owners and state into a disk's body, from what the machines' bodies say."""
    holders = owners(plane, disk)
    for key in ("managedBy", "managedByExtended"):
        disk.body.pop(key, None)
    disk.properties.pop("shareInfo", None)
    if holders:
        disk.body["managedBy"] = holders[0].id
        if int(disk.properties.get("maxShares") or 1) > 1:
            # shape from the REST specification, not seen on the wire
            disk.body["managedByExtended"] = [vm.id for vm in holders]
            disk.properties["shareInfo"] = [{"vmUri": vm.id} for vm in holders]
    state = "Attached" if in_use(plane, disk) else "Reserved" if holders else "Unattached"
    disk.properties["diskState"] = state
    if plane.store.get(disk.id) is not None:
        plane.store.save(disk)


def link_keys(plane: ControlPlane, keys: set[str]) -> None:
    """Do so for several disks."""
    for key in keys:
        disk = plane.store.get(key)
        if disk is not None:
            link(plane, disk)
