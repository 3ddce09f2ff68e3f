"""What an ephemeral OS disk needs of a scenario. Pure.

It lies on the local disk of its machine, or in its host cache, costs nothing, and is gone with the machine
(Azure's documentation "Ephemeral OS disks for Azure VMs"). It is measured by a file on it, so the system
needs room beside the working set.
"""

from __future__ import annotations

from collections.abc import Iterator

from diskbook.design.model import Check, Disk, Drill, Machine, Scenario
from diskbook.facts import catalog
from diskbook.facts.disk_options import OPTIONS

SYSTEM_GIB = 16
"""Room for the system: the image of Ubuntu Server takes some 3 GiB, logs and packages more."""
IMAGE_GIB = 30
"""An OS disk is no smaller than its image; that of Ubuntu Server has 30 GiB."""
_FIXED = {"zone": None, **{option.name: option.default for option in OPTIONS}, "cache": "None"}

Problem = tuple[str, str, str]


def problems(scenario: Scenario) -> list[Problem]:
    """Say what stands in the way: name of the disk, its field, and one sentence with the way out."""
    return [problem for disk in scenario.disk if disk.ephemeral for problem in _of_disk(scenario, disk)]


def _of_disk(scenario: Scenario, disk: Disk) -> Iterator[Problem]:
    for field, value in _FIXED.items():
        if getattr(disk, field) != value:
            yield disk.name, field, f"an {disk.sku} disk has no such setting; leave {field} out"
    moves: list[Check | Drill] = [*scenario.check, *scenario.drill]
    for other in moves:
        if other.disk == disk.name:
            yield disk.name, "sku", f"the disk of '{other.name}' is to be attached, and an OS disk stays put"
    users = {arm.machine for arm in scenario.arm if arm.disk == disk.name}
    if len(users) != 1:
        yield disk.name, "sku", f"an {disk.sku} disk belongs to one machine; {len(users)} have arms on it"
        return
    machine = scenario.machine_named(users.pop())
    if scenario.os_disk_of(machine.name) is not disk:
        yield disk.name, "sku", f"machine {machine.name} has one OS disk already; leave this one out"
    yield from _on_machine(scenario, disk, machine)


def _on_machine(scenario: Scenario, disk: Disk, machine: Machine) -> Iterator[Problem]:
    if machine.os != "linux":
        yield disk.name, "sku", f"machine {machine.name} runs Windows; its OS disk is not measured"
    for drill in scenario.drill:
        if machine.name in (drill.machine, drill.from_machine):
            sentence = f"machine {machine.name} takes part in the drill {drill.name}, which deallocates; "
            yield disk.name, "sku", sentence + "a machine with an ephemeral OS disk cannot be"
    size = catalog.find_vm_size(machine.size)
    if size is None:
        yield disk.name, "sku", f"the local disk of {machine.size} is in no table; take a size of the table"
        return
    if size.placement(disk.size_gib) is None:
        room = max(size.os_disk_room_gib.values(), default=0)
        yield disk.name, "size_gib", _no_room(size.name, room, disk.size_gib)
    largest = max((load.working_set_gib for arm, load in scenario.cells if arm.disk == disk.name), default=0)
    if disk.size_gib < max(IMAGE_GIB, largest + SYSTEM_GIB):
        least = max(IMAGE_GIB, largest + SYSTEM_GIB)
        sentence = f"the system and a working set of {largest:g} GiB need {least:g} GiB; make it larger"
        yield disk.name, "size_gib", sentence


def _no_room(size: str, room_gib: int, asked_gib: int) -> str:
    if not room_gib:
        return f"{size} has neither local disk nor cache for an OS disk; take a size that has, as E4ads_v5"
    return f"{size} holds an OS disk of up to {room_gib} GiB, not {asked_gib}; make it smaller"
