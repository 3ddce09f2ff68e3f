"""Virtual machines: create, change, show, delete, attach and detach."""

import copy
import secrets

from diskbook.facts import catalog
from diskbook.facts.rules import VmAsk
from diskbook_emulator.arm import attach, disks, ids, power, vm_body
from diskbook_emulator.arm.cleanup import VM
from diskbook_emulator.arm.disk_rules import ask_of, check_new
from diskbook_emulator.arm.errors import ArmError, not_allowed
from diskbook_emulator.arm.network_fill import nics
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply, poll_headers
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.arm.vm_rules import check_new_vm, check_resize, check_ultra, controller_of
from diskbook_emulator.arm.windows_setup import check_profile
from diskbook_emulator.types import Json, VmAddress

RETRY_AFTER_S = 10


def put(plane: ControlPlane, call: Call) -> Reply:
    """Create a machine, or change an existing one."""
    plane.writable_group(call.group)
    existing = plane.store.get(plane.resource_id(call.group, VM, call.params["name"]))
    if existing is not None and _stillborn(existing):
        _forget(plane, existing)
    elif existing is not None:
        return _change(plane, call, existing, call.body)
    return _create(plane, call)


def _stillborn(vm: Resource) -> bool:
    """Whether a machine's creation failed: asking again creates it (from our knowledge, not read)."""
    return vm.properties.get("provisioningState") == "Failed" and not vm.hidden.get("created")


def _forget(plane: ControlPlane, vm: Resource) -> None:
    plane.store.remove(vm.id)
    disks.link_keys(plane, disks.disk_keys(vm))
    for nic in nics(plane, vm):
        nic.properties.pop("virtualMachine", None)
        plane.store.save(nic)


def _create(plane: ControlPlane, call: Call) -> Reply:
    region = plane.region(str(call.body.get("location", "")))
    check_new_vm(plane, call.params["name"], call.body, region, plane.today)
    if vm_body.is_windows(call.body):
        check_profile(call.params["name"], call.body)
    size = catalog.vm_size(call.body["properties"]["hardwareProfile"]["vmSize"])
    storage = call.body["properties"]["storageProfile"]
    storage["diskControllerType"] = controller_of(storage, size)
    vm = vm_body.new_body(
        plane.resource_id(call.group, VM, call.params["name"]), call.params["name"], call.body, region.name
    )
    disks = (call.body["properties"]["storageProfile"] or {}).get("dataDisks") or []
    change = attach.plan(plane, vm, disks)
    plane.store.save(vm_body.written(vm))
    attach.begin(plane, vm, change)
    for nic in nics(plane, vm):
        nic.properties["virtualMachine"] = {"id": vm.id}
        plane.store.save(nic)
    answer = vm_body.seen(plane.store, vm)
    kind = "vm-create-zonal" if vm.zone else "vm-create"
    op_id = plane.operations.start(kind, vm.id, creation(plane, vm, change))
    return Reply(201, answer, headers(plane, call, op_id, vm, monitor=False))


def creation(plane: ControlPlane, vm: Resource, change: attach.Change) -> Work:
    """Build the work of creating a machine with the data disks of a change."""
    addresses: list[VmAddress] = []

    def effect() -> None:
        addresses.append(plane.backend.start_vm(vm_body.spec_of(vm)))
        try:
            for entry in change.final:
                attach.attach_entry(plane, vm, entry)
        except (OSError, RuntimeError):
            plane.backend.stop_vm(vm.key)
            raise

    def settle(error: ArmError | None) -> None:
        if plane.store.get(vm.id) is not vm:
            return
        if error is not None:
            # as in Azure, a machine that could not be created stays, Failed
            vm.properties["provisioningState"] = "Failed"
            vm.hidden["power"] = "stopped"
            attach.end(plane, vm_body.written(vm), change)
            return
        vm.hidden["power"] = "running"
        vm.hidden["created"] = True
        _make_os_disk(plane, vm)
        power.address_known(plane, vm, addresses[0])
        vm.properties["provisioningState"] = "Succeeded"
        attach.end(plane, vm_body.written(vm), change)
        disks.link_keys(plane, disks.disk_keys(vm))

    return Work(effect, settle, (vm.id,))


def _make_os_disk(plane: ControlPlane, vm: Resource) -> None:
    """Make the implicit OS disk. An ephemeral one lives on the host and is no resource (our knowledge)."""
    entry = vm.properties["storageProfile"]["osDisk"]
    name = entry.setdefault("name", f"{vm.name}_OsDisk_1_{secrets.token_hex(16)}")
    if entry.get("diffDiskSettings") or "id" in entry["managedDisk"]:
        return
    body: Json = {
        "sku": {"name": entry["managedDisk"]["storageAccountType"]},
        "properties": {"creationData": {"createOption": "FromImage"}, "diskSizeGB": entry["diskSizeGB"]},
    }
    if vm.zone and not body["sku"]["name"].endswith("_ZRS"):
        body["zones"] = [vm.zone]
    check_new(ask_of(body), plane.region(str(vm.body["location"])))
    disk = disks.build(plane, ids.group_of(vm.id), name, body, str(vm.body["location"]))
    disk.hidden["os"] = True
    disk.properties.update(provisioningState="Succeeded", osType=entry["osType"])
    entry["managedDisk"]["id"] = plane.store.save(disk).id


def patch(plane: ControlPlane, call: Call) -> Reply:
    vm = plane.find(call.group, VM, call.params["name"])
    return _change(plane, call, vm, call.body)


def _change(plane: ControlPlane, call: Call, vm: Resource, wish: Json) -> Reply:
    _refuse_busy(vm)
    wished = wish.get("properties") or {}
    if wish.get("zones") and wish["zones"] != (vm.body.get("zones") or []):
        raise ArmError(
            409, "PropertyChangeNotAllowed", "Changing property 'zones' is not allowed.", target="zones"
        )
    size = (wished.get("hardwareProfile") or {}).get("vmSize")
    if size:
        check_resize(plane, vm, size)
    disks = (wished.get("storageProfile") or {}).get("dataDisks")
    if (wished.get("additionalCapabilities") or {}).get("ultraSSDEnabled"):
        present = vm.properties["hardwareProfile"]["vmSize"]
        check_ultra(VmAsk(size or present, vm.zone), plane.region(str(vm.body["location"])))
    change = attach.plan(plane, vm, vm.properties["storageProfile"]["dataDisks"] if disks is None else disks)
    vm.hidden["previous"] = copy.deepcopy(vm.body)
    _merge(vm, wish, size)
    vm.properties["provisioningState"] = "Updating"
    attach.begin(plane, vm_body.written(vm), change)
    op_id = plane.operations.start(change.kind, vm.id, _update(plane, vm, change))
    return Reply(200, vm_body.seen(plane.store, vm), headers(plane, call, op_id, vm, monitor=False))


def _merge(vm: Resource, wish: Json, size: str | None) -> None:
    """Take over what an update may change besides the data disks."""
    if wish.get("tags") is not None:
        port = vm.body.get("tags", {}).get(vm_body.SSH_PORT_TAG)
        vm.body["tags"] = dict(wish["tags"]) | ({vm_body.SSH_PORT_TAG: port} if port else {})
    if size:
        vm.properties["hardwareProfile"]["vmSize"] = size
    wished = wish.get("properties") or {}
    if wished.get("additionalCapabilities") is not None:
        vm.properties["additionalCapabilities"] = wished["additionalCapabilities"]
    if wished.get("networkProfile") is not None:
        vm.properties["networkProfile"] = wished["networkProfile"]
    os_disk = (wished.get("storageProfile") or {}).get("osDisk") or {}
    if os_disk.get("deleteOption"):
        vm.properties["storageProfile"]["osDisk"]["deleteOption"] = os_disk["deleteOption"]


def _refuse_busy(vm: Resource) -> None:
    if vm.properties.get("provisioningState") == "Deleting":
        # wording from our knowledge, not read
        raise not_allowed(f"VM '{vm.name}' is being deleted.")
    if vm.hidden.get("previous") or vm.properties.get("provisioningState") in ("Creating", "Updating"):
        # wording from our knowledge, not read
        raise ArmError(
            409,
            "Conflict",
            f"The request failed due to conflict with a concurrent request on VM '{vm.name}'. "
            "Wait until its operation has ended and try again.",
        )


def _update(plane: ControlPlane, vm: Resource, change: attach.Change) -> Work:
    def effect() -> None:
        attach.apply(plane, vm, change)

    def settle(error: ArmError | None) -> None:
        if plane.store.get(vm.id) is not vm:
            return
        if error is None:
            vm.hidden.pop("previous", None)
            vm.properties["provisioningState"] = "Succeeded"
            attach.end(plane, vm_body.written(vm), change)
        else:
            undo(plane, vm, change.keys)

    return Work(effect, settle, (vm.id, *change.keys))


def undo(plane: ControlPlane, vm: Resource, keys: set[str]) -> None:
    """Put a machine's body back to what it was before a change that failed."""
    previous = vm.hidden.pop("previous", None)
    vm.hidden.pop("leaving", None)
    if previous is not None:
        vm.body = previous | {"etag": vm.body["etag"]}
    vm.properties["provisioningState"] = "Failed"
    plane.store.save(vm_body.written(vm))
    disks.link_keys(plane, keys)


def attach_detach(plane: ControlPlane, call: Call) -> Reply:
    """Attach and detach data disks without the rest of the machine's body.

    Azure's answers of 2026 are played: 200 at once, with the storage profile during the change and one header
    for polling. The finished operation has no output.
    """
    vm = plane.find(call.group, VM, call.params["name"])
    _refuse_busy(vm)
    change = attach.plan(plane, vm, attach.wanted_by_request(vm, call.body))
    vm.hidden["previous"] = copy.deepcopy(vm.body)
    vm.properties["provisioningState"] = "Updating"
    attach.begin(plane, vm_body.written(vm), change)
    op_id = plane.operations.start(change.kind, vm.id, _update(plane, vm, change))
    answer = headers(plane, call, op_id, vm, monitor=False, retry_after_s=None)
    return Reply(200, _profile(plane, vm, call.body), answer | {"ETag": vm.body["etag"]})


def _profile(plane: ControlPlane, vm: Resource, asked: Json) -> Json:
    """Show a machine's storage profile, with the way that was asked for where a disk leaves."""
    profile: Json = vm_body.seen(plane.store, vm)["properties"]["storageProfile"]
    leaving = asked.get("dataDisksToDetach") or []
    options = {ids.key(str(row["diskId"])): row.get("detachOption") for row in leaving}
    for entry in profile["dataDisks"]:
        option = options.get(ids.key(str(entry["managedDisk"]["id"])))
        if entry.get("toBeDetached") and option:
            entry["detachOption"] = option
    return profile


def headers(
    plane: ControlPlane,
    call: Call,
    op_id: str,
    vm: Resource,
    monitor: bool = True,
    retry_after_s: int | None = RETRY_AFTER_S,
) -> dict[str, str]:
    """Build the headers of an accepted operation of a machine."""
    location = str(vm.body["location"])
    made = poll_headers(plane, call, op_id, location, retry_after_s=retry_after_s, monitor=monitor)
    return made | {"Azure-AsyncNotification": "Enabled"}


def get(plane: ControlPlane, call: Call) -> Reply:
    """Show a machine, with its instance view if asked."""
    vm = plane.find(call.group, VM, call.params["name"])
    body = vm_body.seen(plane.store, vm)
    if "instanceview" in call.query.get("$expand", "").lower():
        body["properties"]["instanceView"] = vm_body.instance_view(vm)
    return Reply(200, body, {"ETag": body["etag"]} if "etag" in body else {})


def view(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, vm_body.instance_view(plane.find(call.group, VM, call.params["name"])))


def listing(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, {"value": [vm_body.seen(plane.store, vm) for vm in plane.listed(call, VM)]})
