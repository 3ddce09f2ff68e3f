"""Names of arms and volumes as sentences, tables and figures show them."""

from diskbook.design.model import Arm, Scenario, Volume


def shape(scenario: Scenario, volume: Volume) -> str:
    """Kind, nodes and disks of a volume, e.g. "three-way, 3 x 4 disks"."""
    nodes, disks = len(scenario.nodes_of(volume)), scenario.disk_named(volume.disk).count
    return f"{volume.kind}, {f'{nodes} x ' if nodes > 1 else ''}{disks} disk{'s' * (disks > 1)}"


def pool(scenario: Scenario, volume: Volume) -> str:
    """The disks of a volume's pool, e.g. "3 x 4 Premium_LRS 1024 GiB"."""
    disk, nodes = scenario.disk_named(volume.disk), len(scenario.nodes_of(volume))
    return f"{f'{nodes} x ' if nodes > 1 else ''}{disk.count} {disk.sku} {disk.size_gib} GiB"


def made(scenario: Scenario, volume: Volume) -> str:
    """What is made, e.g. "m, three-way, 256 GiB in 4 columns on 3 x 4 Premium_LRS 1024 GiB of n1, n2, n3"."""
    tiers = (
        f"{volume.mirror_gib:g} + {volume.parity_gib:g}" if volume.mirror_gib and volume.parity_gib else ""
    )
    size = tiers or f"{volume.room_gib:g}"
    several = f"{volume.count} x " if volume.count > 1 else ""
    return (
        f"{several}{volume.name}, {volume.kind}, {size} GiB in {volume.columns} columns on "
        f"{pool(scenario, volume)} of {', '.join(scenario.nodes_of(volume))}"
    )


def is_remote(arm: Arm) -> bool:
    """Whether another node than that of the load owns the arm's volume."""
    return not arm.aligned or (arm.owner is not None and arm.owner != arm.machine)


def volume_label(scenario: Scenario, arm: Arm) -> str:
    """Name an arm on a volume, e.g. "three-way, 3 x 4 disks, owner away, 3 zones"."""
    volume = scenario.volume_named(arm.volume)
    zones = {scenario.machine_named(name).zone for name in scenario.nodes_of(volume)}
    spread = f", {len(zones)} zones" if len(zones) > 1 else ""
    several = f"{volume.count} x " if volume.count > 1 else ""
    return f"{several}{shape(scenario, volume)}{', owner away' * is_remote(arm)}{spread}"


def label(scenario: Scenario, name: str) -> str:
    """Name an arm in words: its own label, else "LRS, zone 1", "second LRS, zone 1".

    That of a volume says kind, nodes and disks, as in "three-way, 3 x 4 disks".
    """
    arm = scenario.arm_named(name)
    if arm.label is not None:
        return arm.label
    if arm.volume:
        return volume_label(scenario, arm)
    disk, machine = scenario.disk_named(arm.disk), scenario.machine_named(arm.machine)
    redundancy = "ephemeral OS disk" if disk.ephemeral else disk.sku.rpartition("_")[2]
    alike = [item.name for item in scenario.disk if (item.sku, item.zone) == (disk.sku, disk.zone)]
    words = redundancy if alike.index(disk.name) == 0 else f"{_ordinal(alike.index(disk.name))} {redundancy}"
    return f"{words}, zone {machine.zone}" if machine.zone else words


def _ordinal(position: int) -> str:
    return ("first", "second", "third", "fourth")[position] if position < 4 else f"{position + 1}th"
