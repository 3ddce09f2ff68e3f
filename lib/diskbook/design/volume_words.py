"""Volumes in words: what a label, a plan or a table calls them."""

from __future__ import annotations

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


def label(scenario: Scenario, arm: Arm) -> str:
    """Name an arm on a volume, e.g. "three-way, 3 x 4 disks, owner away, 3 zones"."""
    volume = scenario.volume_named(arm.volume)
    zones = {scenario.machine_named(name).zone for name in scenario.nodes_of(volume)}
    spread = f", {len(zones)} zones" if len(zones) > 1 else ""
    several = f"{volume.count} x " if volume.count > 1 else ""
    return f"{several}{shape(scenario, volume)}{', owner away' * is_remote(arm)}{spread}"
