"""The physical side of deleting: which calls of the backend take machines and disks away."""

from collections.abc import Callable

from diskbook_emulator.arm.plane import ControlPlane
from diskbook_emulator.arm.state import Resource

VM = "Microsoft.Compute/virtualMachines"
DISK = "Microsoft.Compute/disks"


def running(vm: Resource) -> bool:
    """Whether the machine is up, so that the backend holds its attachments."""
    return vm.hidden.get("power") == "running"


def data_disks(vm: Resource) -> list[dict[str, object]]:
    """Data disks of a machine, as its body lists them."""
    disks: list[dict[str, object]] = vm.properties.get("storageProfile", {}).get("dataDisks", [])
    return disks


def luns(vm: Resource) -> list[int]:
    return [int(str(entry["lun"])) for entry in data_disks(vm)]


def remove_all(plane: ControlPlane, members: list[Resource]) -> Callable[[], None]:
    """Return the effect that takes all machines, then all disks of a list away."""
    machines = [member for member in members if member.type == VM]
    disks = [member for member in members if member.type == DISK and not member.hidden.get("os")]

    def effect() -> None:
        for vm in machines:
            remove_vm(plane, vm)
        for disk in disks:
            plane.backend.delete_disk(disk.key)

    return effect


def remove_vm(plane: ControlPlane, vm: Resource) -> None:
    """Detach a machine's disks and delete it, at the backend."""
    if running(vm):
        for lun in luns(vm):
            plane.backend.detach(vm.key, lun)
    plane.backend.delete_vm(vm.key)
