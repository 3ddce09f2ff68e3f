"""What a volume outlives: by where its copies lie, and by the majority of its pool. Pure.

Source: "Nested resiliency for Storage Spaces Direct", "Fault tolerance and storage efficiency" and
"Understanding cluster and pool quorum" (windowsserverdocs, read 2026-11-21). What is lost is lost at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from diskbook.design.model import LostMembers, Scenario, Volume

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
    """Tell whether a volume of a scenario stays online."""
    clusters = [item for item in scenario.cluster if item.name == volume.cluster]
    witness = any(item.witness != "none" for item in clusters)
    nodes, drives = len(scenario.nodes_of(volume)), scenario.disk_named(volume.disk).count
    return survives(volume.kind, nodes, drives, lost, witness=witness)
