"""Calls of one replicate that attach and detach disks: for pools, in blocks, failover tests and losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from diskbook.cost import durations
from diskbook.design.model import Scenario
from diskbook.facts import neighbours


@dataclass(frozen=True)
class AttachCalls:
    """Calls by what they are for, and how often each disk is detached.

    One call attaches or detaches all disks of a pool on one machine; other disks take a call each. The
    scenario's checks, which each replicate makes once, are left out.
    """

    pools: int
    blocks: float
    drills: float
    losses: int
    detached: Mapping[str, float]

    @property
    def total(self) -> float:
        """All of them."""
        return self.pools + self.blocks + self.drills + self.losses


def of_replicate(scenario: Scenario) -> AttachCalls:
    """Count the attach and detach calls of one replicate."""
    blocks, drills = durations.moves_by_disk(scenario), durations.moves_of_drills(scenario)
    losses = neighbours.volume_rules.all_taken_away(scenario) if scenario.loss else ()
    taken = [disks for loss in losses for disks in loss.disks.values()]
    detached: Counter[str] = Counter(disk for disks in taken for disk in disks)
    for moves in (blocks, drills):
        detached.update({disk: off for disk, (_, off) in moves.items()})  # type: ignore[arg-type]
    return AttachCalls(
        pools=sum(len(scenario.pool_machines(disk.name)) for disk in scenario.data_disks),
        blocks=sum(map(sum, blocks.values())),
        drills=sum(map(sum, drills.values())),
        losses=2 * len(taken),
        detached=detached,
    )
