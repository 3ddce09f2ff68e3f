"""What volumes and clusters need: nodes, witness, disks, room in the pool. Pure.

Sources: Microsoft's "Nested resiliency for Storage Spaces Direct", "Understanding cluster and pool quorum"
and "Use Storage Spaces Direct in guest virtual machine clusters" (windowsserverdocs, read 2026-11-21).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

from diskbook.design.model import LostMembers, Scenario, Volume
from diskbook.facts.rules import Violation

GUEST_NODES = range(2, 4)
"""Nodes that a cluster of virtual machines may have."""
LEAST_DISKS = 2
"""Data disks that each of them must have."""
NESTED_DISKS = 4
"""Disks a node that nested resiliency needs."""
COPIES: Mapping[str, int] = {
    "simple": 1,
    "two-way": 2,
    "three-way": 3,
    "nested-mirror": 4,
    "nested-parity": 4,
}
"""Copies of each byte; of a nested-parity volume those of its mirror tier."""
MOST_COLUMNS_OF_PARITY = 7
"""Disks a node over which a parity tier stripes at most: the documented efficiency rises no further."""
COMPUTER_NAME = 15
"""Characters of a NetBIOS name, which a Windows computer has."""
MOST_NAME = COMPUTER_NAME - len("r99-")
"""Characters of a machine's name, before which its replicate is written."""
_NODES = {"two-way": 2, "three-way": 3}


def check(scenario: Scenario) -> Iterator[Violation]:
    """Yield the rules that clusters and volumes break; of each with one sentence with the way out."""
    for cluster in scenario.cluster:
        where = f"[[cluster]] {cluster.name}: "
        if len(cluster.nodes) not in GUEST_NODES:
            sentence = (
                f"a cluster of virtual machines has 2 or 3 nodes, not {len(cluster.nodes)}; change nodes"
            )
            yield Violation("cluster-nodes", where + "nodes", sentence)
        if len(cluster.nodes) == 2 and cluster.witness == "none":
            sentence = 'two nodes need a witness, or both stop when either fails; write witness = "cloud"'
            yield Violation("cluster-witness", where + "witness", sentence)
    yield from _names_too_long(scenario)
    for volume in scenario.volume:
        yield from _of_volume(scenario, volume)
    yield from _pools_too_small(scenario)


def footprint_gib(volume: Volume, nodes: int, disks: int) -> float:
    """Return what all volumes of an entry take of the pool, in GiB.

    - `nodes`, `disks`: machines of the pool, and disks of each.

    A byte of a parity tier takes n / (n - 1) on each of two nodes, n the disks a node, at most 7
    ("Nested resiliency for Storage Spaces Direct": capacity efficiency).
    """
    if volume.kind != "nested-parity":
        return volume.count * COPIES[volume.kind] * volume.room_gib
    n = min(disks, MOST_COLUMNS_OF_PARITY)
    parity = nodes * (volume.parity_gib or 0) * Fraction(n, max(1, n - 1))
    return float(volume.count * (COPIES[volume.kind] * (volume.mirror_gib or 0) + parity))


def efficiency(volume: Volume, nodes: int, disks: int) -> float:
    """Return the usable share of the drives that the volumes of an entry lie on (`footprint_gib`)."""
    return volume.count * volume.room_gib / footprint_gib(volume, nodes, disks)


def _of_volume(scenario: Scenario, volume: Volume) -> Iterator[Violation]:
    where = f"[[volume]] {volume.name}: "
    nodes, disk = len(scenario.nodes_of(volume)), scenario.disk_named(volume.disk)
    if volume.nested and nodes != 2:
        sentence = (
            f"nested resiliency needs exactly two nodes, not {nodes}; take three-way, or another cluster"
        )
        yield Violation("nested-nodes", where + "kind", sentence)
    if volume.nested and disk.count < NESTED_DISKS:
        sentence = f"nested resiliency needs {NESTED_DISKS} disks a node, not {disk.count}; "
        sentence += f"raise count of {disk.name}"
        yield Violation("nested-disks", where + "disk", sentence)
    if nodes < _NODES.get(volume.kind, 1):
        least = _NODES[volume.kind]
        sentence = f"a {volume.kind} mirror needs at least {least} nodes, not {nodes}; add nodes"
        yield Violation("mirror-nodes", where + "kind", sentence)
    if volume.cluster is not None and disk.count < LEAST_DISKS:
        sentence = (
            f"each node needs at least {LEAST_DISKS} disks, not {disk.count}; raise count of {disk.name}"
        )
        yield Violation("pool-disks", where + "disk", sentence)
    yield from _of_disks(scenario, volume)


def _names_too_long(scenario: Scenario) -> Iterator[Violation]:
    """Machines of pools whose names in Azure are not names of computers: steps of the cluster go by these."""
    pooled = dict.fromkeys(name for volume in scenario.volume for name in scenario.nodes_of(volume))
    for name in pooled:
        if len(name) > MOST_NAME:
            sentence = (
                f"Windows takes {COMPUTER_NAME} characters for a computer, r1- to r99- before it counted; "
                f"take at most {MOST_NAME} for a machine of a pool"
            )
            yield Violation("node-name", f"[[machine]] {name}: name", sentence)


def _of_disks(scenario: Scenario, volume: Volume) -> Iterator[Violation]:
    where, disk = f"[[volume]] {volume.name}: ", scenario.disk_named(volume.disk)
    if disk.ephemeral:
        sentence = (
            f"{disk.name} is local storage, which is gone with its machine; take managed disks for a pool"
        )
        yield Violation("pool-local", where + "disk", sentence)
    if disk.cache != "None":
        sentence = f"a host would cache {disk.name} unknown to the pool; leave its cache out"
        yield Violation("pool-cache", where + "disk", sentence)
    if disk.max_shares > 1:
        sentence = f"{disk.name} is shared, and a pool's disk is one node's; leave its max_shares out"
        yield Violation("pool-shared", where + "disk", sentence)
    for name in scenario.nodes_of(volume):
        if scenario.machine_named(name).os != "windows":
            sentence = (
                f'machine {name} runs Linux, and Storage Spaces is Windows\'; write os = "windows" there'
            )
            yield Violation("pool-system", where + ("machine" if volume.machine else "cluster"), sentence)
    columns = disk.count // 2 if volume.nested else disk.count  # each node has two copies
    if volume.columns > columns:
        sentence = (
            f"{volume.columns} columns of a {volume.kind} volume do not fit on {disk.count} disks a node; "
        )
        yield Violation("columns", where + "columns", sentence + f"take at most {columns}")


def _pools_too_small(scenario: Scenario) -> Iterator[Violation]:
    """Pools that the volumes on them do not fit in."""
    pools: dict[tuple[tuple[str, ...], str], list[Volume]] = {}
    for volume in scenario.volume:
        pools.setdefault((scenario.nodes_of(volume), volume.disk), []).append(volume)
    for (nodes, name), volumes in pools.items():
        disk = scenario.disk_named(name)
        room = len(nodes) * disk.count * disk.size_gib
        taken = sum(footprint_gib(volume, len(nodes), disk.count) for volume in volumes)
        if taken > room:
            sentence = (
                f"{taken:,.0f} GiB with all copies do not fit in the pool of {room:,} GiB; "
                "make the volumes smaller, or raise count or size_gib of the disk"
            )
            yield Violation("pool-size", f"[[volume]] {volumes[-1].name}: disk", sentence)


LOST: tuple[LostMembers, ...] = get_args(LostMembers)
WORDS: Mapping[str, str] = {
    "drive": "one drive",
    "two-drives": "two drives of one node",
    "drive-each": "a drive of each of two nodes",
    "node": "one node",
    "node-and-drive": "a node and a drive of another",
    "two-nodes": "two nodes",
}
BOUNDS: Mapping[str, int] = {"single-parity": 3, "dual-parity": 4}
"""Kinds that are told by the rule alone, with the nodes that they need: no run makes them."""
LEAST_NODES: Mapping[str, int] = {"drive-each": 2, "node": 2, "node-and-drive": 2, "two-nodes": 3}
"""Nodes without which there is nothing of that sort to lose, or nobody left to ask."""
_FAULTS: Mapping[str, int] = {
    "simple": 0,
    "two-way": 1,
    "three-way": 2,
    "single-parity": 1,
    "dual-parity": 2,
}
"""Nodes that may be lost, or have lost any of their drives."""


@dataclass(frozen=True)
class Members:
    """What is lost: nodes by number, and drives by those of their node and their own there, all from 0."""

    nodes: tuple[int, ...] = ()
    drives: tuple[tuple[int, int], ...] = ()

    @property
    def hit(self) -> set[int]:
        """Nodes that are lost, or have lost a drive."""
        return {*self.nodes, *(node for node, _ in self.drives)}

    def drives_of(self, node: int) -> int:
        """Count the drives that a node has lost."""
        return sum(own == node for own, _ in self.drives)


_MEMBERS: Mapping[str, Members] = {
    "drive": Members(drives=((1, 0),)),
    "two-drives": Members(drives=((1, 0), (1, 1))),
    "drive-each": Members(drives=((0, 0), (1, 0))),
    "node": Members(nodes=(1,)),
    "node-and-drive": Members(nodes=(1,), drives=((0, 0),)),
    "two-nodes": Members(nodes=(1, 2)),
}


def members(lost: str, nodes: int = 2) -> Members:
    """Return the members that are taken away; the first node is never, so that it can be asked."""
    chosen = _MEMBERS[lost]
    return chosen if nodes > 1 else Members(drives=tuple((0, number) for _, number in chosen.drives))


def is_possible(lost: str, nodes: int, drives: int) -> bool:
    """Tell whether nodes with so many drives each can lose that, and one of them be left with a drive."""
    gone = members(lost, nodes)
    return nodes >= LEAST_NODES.get(lost, 1) and all(number + 1 < drives for _, number in gone.drives)


def survives(kind: str, nodes: int, drives: int, lost: str, *, witness: bool = True) -> bool:
    """Tell whether a volume stays online without these members.

    - `kind`: of volumes, or of `BOUNDS`.
    - `nodes`, `drives`: nodes of its pool, and drives of each.
    - `lost`: one of `LOST`.
    - `witness`: whether the cluster has one.

    A mirror of k copies has them on different nodes: it stands k - 1 nodes that are lost or have lost
    drives, however many. A nested volume is whole on a node that has lost one drive at most. The pool needs
    the majority of its drives ("Understanding cluster and pool quorum"), so three nodes never stand the
    loss of two at once, whatever the copies.
    """
    gone = members(lost, nodes)
    return pool_holds(nodes, drives, gone, witness=witness) and _data_hold(kind, nodes, gone)


def _data_hold(kind: str, nodes: int, gone: Members) -> bool:
    """Whether everything can be read from somewhere, wherever it lies."""
    if kind in _FAULTS:
        return len(gone.hit) <= _FAULTS[kind]
    return any(node not in gone.nodes and gone.drives_of(node) <= 1 for node in range(nodes))


def pool_holds(nodes: int, drives: int, gone: Members, *, witness: bool) -> bool:
    """Tell whether the pool keeps its majority; of two nodes with a witness either may be lost.

    Four nodes or more with a witness also stand the loss of half of all drives, since a vote decides.
    """
    if nodes <= 2:
        return len(gone.nodes) < nodes and (witness or not gone.nodes)
    left = sum(drives - gone.drives_of(node) for node in range(nodes) if node not in gone.nodes)
    least = drives * nodes / 2
    return left > least or (nodes > 3 and witness and left == least)


def of_volume(scenario: Scenario, volume: Volume, lost: str) -> bool:
    clusters = [item for item in scenario.cluster if item.name == volume.cluster]
    witness = any(item.witness != "none" for item in clusters)
    nodes, drives = len(scenario.nodes_of(volume)), scenario.disk_named(volume.disk).count
    return survives(volume.kind, nodes, drives, lost, witness=witness)
