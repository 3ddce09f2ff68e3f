"""Bringing a control plane back after a restart: machines up, disks attached, operations ended."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from diskbook_emulator.arm import (
    attach,
    disks,
    extensions,
    groups,
    network,
    power,
    schedules,
    vm_delete,
    vms,
)
from diskbook_emulator.arm.cleanup import VM, running
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import ControlPlane, creation
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.types import Json

log = logging.getLogger(__name__)
WORKERS = 8
_POWER_KINDS = {kind: action for action, (kind, _) in power.ACTIONS.items()}
_CHANGES = ("disk-attach", "disk-detach", "vm-update")


def restore(plane: ControlPlane) -> None:
    """Bring everything back.

    A change of a machine that was under way is undone and its operation ends Failed. Machines that ran are
    started with their disks attached. All other operations are taken up again, under their old ids.
    """
    cut_off = plane.operations.unfinished()
    for body in cut_off:
        if body["kind"] in _CHANGES:
            _undo(plane, body)
        elif body["kind"] in ("vm-delete", "group-delete"):
            _not_running(plane, body["target"])
    machines = [vm for vm in plane.store.of_type(VM) if running(vm)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda vm: _boot(plane, vm), machines))
    for body in cut_off:
        if body["kind"] not in _CHANGES:
            plane.operations.resume(body, _work(plane, body))


def _undo(plane: ControlPlane, body: Json) -> None:
    vm = plane.store.get(body["target"])
    if vm is not None:
        keys = disks.disk_keys(vm)
        vms.undo(plane, vm, keys | disks.disk_keys(vm))
    plane.operations.abandon(body, "The emulator was restarted during this operation. Try again.")


def _not_running(plane: ControlPlane, target: str) -> None:
    """Leave machines down that are about to be deleted."""
    for vm in plane.store.of_type(VM):
        if vm.key.startswith(target.lower()):
            vm.hidden["power"] = "stopped"
            plane.store.save(vm)


def _boot(plane: ControlPlane, vm: Resource) -> None:
    try:
        power.boot(plane, vm)
    except (OSError, RuntimeError) as error:
        log.error("machine %s does not come back: %s", vm.name, error)
        vm.hidden["power"] = "stopped"
        vm.properties["provisioningState"] = "Failed"
        plane.store.save(vm)


def _work(plane: ControlPlane, body: Json) -> Work:
    """Build the work of an operation again, from its kind and target."""
    resource = plane.store.get(body["target"])
    kind = body["kind"]
    if resource is None:
        return Work()
    if kind in _POWER_KINDS:
        return power.work(plane, resource, _POWER_KINDS[kind])
    if kind.startswith("vm-create"):
        final = tuple(resource.properties["storageProfile"]["dataDisks"])
        return vms.creation(plane, resource, attach.Change((), final, final))
    builders: dict[str, Callable[[ControlPlane, Resource], Work]] = {
        "disk-create": creation,
        "disk-update": disks.update,
        "disk-delete": disks.deletion,
        "vm-delete": vm_delete.deletion,
        "vm-extension": extensions.creation,
        "group-delete": groups.deletion,
        "network-delete": network.deletion,
        "storage-account": creation,
        schedules.GUEST: schedules.shutdown,
    }
    if kind in builders:
        return builders[kind](plane, resource)
    return creation(plane, resource, new=False)
