"""Where things lie on a data disk: working sets, what checks write, regions of first I/Os, our mark last."""

from diskbook.design.model import Scenario, Workload
from diskbook.facts.units import MIB

MARK_ROOM = MIB
"""Bytes at the end of a disk that trials leave alone: the mark by which the disk is known."""
REGION_BYTES = 256 * MIB
"""Room for the numbered blocks of failover tests and of checks of reservations."""


ATTEMPTS = 2
"""Attempts at a trial; each that needs a region where nobody wrote gets another one."""


def _loads(scenario: Scenario, place: str) -> list[Workload]:
    """Workloads that one machine at a time offers to a disk or a volume, by the name of that."""
    return [load for arm, load in scenario.cells if place in (arm.disk, arm.volume) and not load.is_fleet]


def filled_bytes(scenario: Scenario, place: str) -> int:
    """Return how much of a disk or a volume is filled before its first trial: its largest working set."""
    return max((load.prefill_bytes for load in _loads(scenario, place)), default=0)


def overwritten_bytes(scenario: Scenario, place: str) -> int:
    """Return how much of that is then written over at random: all, unless the design says why not."""
    return 0 if scenario.design.no_overwrite else filled_bytes(scenario, place)


def working_set_end(scenario: Scenario, disk: str) -> int:
    """Return where the working sets of a disk end, in bytes."""
    loads = [load for load in _loads(scenario, disk) if load.region == "filled"]
    return max((load.working_set_bytes for load in loads), default=0)


def region_offset(scenario: Scenario, disk: str) -> int:
    """Return where the numbered blocks begin, in bytes: behind the working sets and what checks write."""
    checked = [item.size_mib for item in scenario.check if item.kind == "data-intact" and item.disk == disk]
    return working_set_end(scenario, disk) + max(checked, default=0) * MIB


def unwritten_offset(scenario: Scenario, disk: str) -> int:
    """Return where the regions begin that nobody writes to but the trials that are to be the first there."""
    return region_offset(scenario, disk) + REGION_BYTES


def unwritten_bytes(scenario: Scenario, disk: str) -> int:
    """Return the room that those trials need on a disk, with another region for each attempt."""
    loads = [load for load in _loads(scenario, disk) if load.region == "unwritten"]
    return ATTEMPTS * scenario.design.repeats * sum(load.blocks * load.working_set_bytes for load in loads)
