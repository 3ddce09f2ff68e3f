"""Virtual machines: create, change, show, delete, attach and detach."""

import copy
import secrets
from collections.abc import Callable

from diskbook.facts import catalog
from diskbook.facts.rules import VmAsk
from diskbook_emulator.arm import attach, company, disks, ids, vm_body
from diskbook_emulator.arm.disk_rules import ask_of, check_new
from diskbook_emulator.arm.errors import ArmError, bad_request, not_allowed
from diskbook_emulator.arm.network import address_ids, nics, remove as remove_network
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import (
    VM,
    Call,
    ControlPlane,
    Reply,
    data_disks,
    poll_headers,
    remove_vm,
    running,
)
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.arm.vm_body import SSH_PORT_TAG, spec_of
from diskbook_emulator.arm.vm_rules import (
    check_new_vm,
    check_profile,
    check_resize,
    check_ultra,
    controller_of,
)
from diskbook_emulator.types import Json, VmAddress

# action: (name of its delay, power state after it)
ACTIONS = {
    "start": ("vm-start", "running"),
    "powerOff": ("vm-stop", "stopped"),
    "deallocate": ("vm-deallocate", "deallocated"),
    "restart": ("vm-restart", "running"),
}


def act(plane: ControlPlane, call: Call) -> Reply:
    """Do one of the actions; an operation with an empty result."""
    vm = plane.find(call.group, VM, call.params["name"])
    action = call.params["action"]
    _check_power(vm, action)
    # A query of powerOff, from the REST specification: the machine is not shut down but cut off.
    cut = call.query.get("skipShutdown", "").lower() == "true"
    op_id = plane.operations.start(ACTIONS[action][0], vm.id, power_work(plane, vm, action, notice=not cut))
    headers = poll_headers(plane, call, op_id, str(vm.body["location"]))
    return Reply(202, headers=headers | {"Azure-AsyncNotification": "Enabled"})


def power_work(plane: ControlPlane, vm: Resource, action: str, notice: bool = False) -> Work:
    """Build the work of an action; with `notice` a machine is shut down before it is stopped."""
    return Work(
        _power_effect(plane, vm, action, notice), _power_settle(plane, vm, ACTIONS[action][1]), (vm.id,)
    )


def _check_power(vm: Resource, action: str) -> None:
    # wordings in this function are from our knowledge, not read
    if vm.properties["provisioningState"] == "Deleting":
        raise not_allowed(f"VM '{vm.name}' is being deleted.")
    ephemeral = vm.properties["storageProfile"]["osDisk"].get("diffDiskSettings")
    if action == "deallocate" and ephemeral:
        raise bad_request(
            f"Deallocate of VM '{vm.name}' is not supported because its OS disk is ephemeral.",
            "OperationNotAllowed",
        )
    if action == "restart" and not running(vm):
        raise not_allowed(f"VM '{vm.name}' is not running and cannot be restarted.")


def _power_effect(plane: ControlPlane, vm: Resource, action: str, notice: bool) -> Callable[[], None]:
    def effect() -> None:
        if action != "start" and running(vm):
            plane.backend.stop_vm(vm.key, notice=notice and action in ("powerOff", "deallocate"))
        if action == "restart" or (action == "start" and not running(vm)):
            boot(plane, vm)

    return effect


def boot(plane: ControlPlane, vm: Resource) -> None:
    """Start a machine at the backend and attach its disks again."""
    at = plane.backend.start_vm(spec_of(vm))
    for entry in data_disks(vm):
        attach.attach_entry(plane, vm, entry)
    with plane.store.lock:
        address_known(plane, vm, at)


def _power_settle(plane: ControlPlane, vm: Resource, power: str) -> Callable[[ArmError | None], None]:
    def settle(error: ArmError | None) -> None:
        if plane.store.get(vm.id) is not vm:
            return
        vm.hidden["power"] = power if error is None else "stopped"
        plane.store.save(vm)
        disks.link_keys(plane, disks.disk_keys(vm))

    return settle


def address_known(plane: ControlPlane, vm: Resource, at: VmAddress) -> None:
    """Write where the machine's sshd listens into its public address and its tag.

    That of a machine in a company's subnet only the jump host gets to know.
    """
    for nic in nics(plane, vm)[:1]:
        private = company.private_address(nic)
        if private is not None:
            plane.backend.reached_privately(vm.key, private, at)
            plane.store.save(vm)
            return
    vm.body.setdefault("tags", {})[SSH_PORT_TAG] = str(at.port)
    plane.store.save(vm)
    for nic in nics(plane, vm)[:1]:
        for address_id in address_ids(nic)[:1]:
            address = plane.store.get(address_id)
            if address is not None:
                address.properties["ipAddress"] = at.address
                plane.store.save(address)


RETRY_AFTER_S = 10


def put(plane: ControlPlane, call: Call) -> Reply:
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
        address_known(plane, vm, addresses[0])
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


# ---- deletion, with what deleteOptions name


def delete(plane: ControlPlane, call: Call) -> Reply:
    """Delete a machine, and what its deleteOptions name; 204 where there is none."""
    plane.group(call.group)
    vm = plane.store.get(plane.resource_id(call.group, VM, call.params["name"]))
    if vm is None:
        return Reply(204)
    vm.properties["provisioningState"] = "Deleting"
    plane.store.save(vm)
    op_id = plane.operations.start("vm-delete", vm.id, deletion(plane, vm))
    return Reply(202, headers=headers(plane, call, op_id, vm))


def deletion(plane: ControlPlane, vm: Resource) -> Work:
    doomed_keys = _doomed_disks(vm)

    def effect() -> None:
        remove_vm(plane, vm)
        with plane.store.lock:
            data = [
                disk for key in doomed_keys if (disk := plane.store.get(key)) and not disk.hidden.get("os")
            ]
        for disk in data:
            plane.backend.delete_disk(disk.key)

    def settle(error: ArmError | None) -> None:
        if error is not None:
            vm.properties["provisioningState"] = "Failed"
            plane.store.save(vm)
        else:
            _forget_all(plane, vm, doomed_keys)

    return Work(effect, settle, (vm.id,))


def _doomed_disks(vm: Resource) -> set[str]:
    profile = vm.properties["storageProfile"]
    entries = [*data_disks(vm), profile["osDisk"]]
    return {
        ids.key(str(entry["managedDisk"]["id"]))
        for entry in entries
        if entry.get("deleteOption") == "Delete" and (entry.get("managedDisk") or {}).get("id")
    }


def _forget_all(plane: ControlPlane, vm: Resource, doomed_keys: set[str]) -> None:
    interfaces = nics(plane, vm)
    plane.store.remove(vm.id)
    for extension in [
        resource for resource in plane.store.resources.values() if resource.key.startswith(f"{vm.key}/")
    ]:
        plane.store.remove(extension.id)
    for key in doomed_keys:
        plane.store.remove(key)
    disks.link_keys(plane, disks.disk_keys(vm))
    doomed_nics = {
        ids.key(row["id"])
        for row in vm.properties["networkProfile"]["networkInterfaces"]
        if (row.get("properties") or {}).get("deleteOption") == "Delete"
    }
    for nic in interfaces:
        nic.properties.pop("virtualMachine", None)
        plane.store.save(nic)
        if nic.key in doomed_nics:
            _forget_nic(plane, nic)


def _forget_nic(plane: ControlPlane, nic: Resource) -> None:
    remove_network(plane, nic)
    for row in nic.properties["ipConfigurations"]:
        reference = row["properties"].get("publicIPAddress") or {}
        address = plane.store.get(str(reference.get("id", "")))
        if address is None:
            continue
        # The option is set either where the interface refers to the address, or on the address itself.
        asked = (reference.get("properties") or {}).get("deleteOption")
        if "Delete" in (asked, address.properties.get("deleteOption")):
            plane.store.remove(address.id)
