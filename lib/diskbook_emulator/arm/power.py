"""Power of virtual machines: start, power off, deallocate, restart."""

from collections.abc import Callable

from diskbook_emulator.arm import attach, company, disks
from diskbook_emulator.arm.cleanup import VM, data_disks, running
from diskbook_emulator.arm.errors import ArmError, bad_request, not_allowed
from diskbook_emulator.arm.network_fill import address_ids, nics
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply, poll_headers
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.arm.vm_body import SSH_PORT_TAG, spec_of
from diskbook_emulator.types import VmAddress

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
    _check(vm, action)
    # A query of powerOff, from the REST specification: the machine is not shut down but cut off.
    cut = call.query.get("skipShutdown", "").lower() == "true"
    op_id = plane.operations.start(ACTIONS[action][0], vm.id, work(plane, vm, action, notice=not cut))
    headers = poll_headers(plane, call, op_id, str(vm.body["location"]))
    return Reply(202, headers=headers | {"Azure-AsyncNotification": "Enabled"})


def work(plane: ControlPlane, vm: Resource, action: str, notice: bool = False) -> Work:
    """Build the work of an action; with `notice` a machine is shut down before it is stopped."""
    return Work(_effect(plane, vm, action, notice), _settle(plane, vm, ACTIONS[action][1]), (vm.id,))


def _check(vm: Resource, action: str) -> None:
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


def _effect(plane: ControlPlane, vm: Resource, action: str, notice: bool) -> Callable[[], None]:
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


def _settle(plane: ControlPlane, vm: Resource, power: str) -> Callable[[ArmError | None], None]:
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
