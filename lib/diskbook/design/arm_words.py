"""Arms in words: what sentences, tables and figures call them."""

from __future__ import annotations

from diskbook.design import volume_words
from diskbook.design.model import Scenario


def label(scenario: Scenario, name: str) -> str:
    """Name an arm in words: its own label, else "LRS, zone 1", "second LRS, zone 1".

    That of a volume says kind, nodes and disks, as in "three-way, 3 x 4 disks".
    """
    arm = scenario.arm_named(name)
    if arm.label is not None:
        return arm.label
    if arm.volume:
        return volume_words.label(scenario, arm)
    disk, machine = scenario.disk_named(arm.disk), scenario.machine_named(arm.machine)
    redundancy = "ephemeral OS disk" if disk.ephemeral else disk.sku.rpartition("_")[2]
    alike = [item.name for item in scenario.disk if (item.sku, item.zone) == (disk.sku, disk.zone)]
    words = redundancy if alike.index(disk.name) == 0 else f"{_ordinal(alike.index(disk.name))} {redundancy}"
    return f"{words}, zone {machine.zone}" if machine.zone else words


def _ordinal(position: int) -> str:
    return ("first", "second", "third", "fourth")[position] if position < 4 else f"{position + 1}th"
