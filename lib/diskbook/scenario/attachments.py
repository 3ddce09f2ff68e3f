"""Which disks are attached anew in a block, and when: equally often for all disks that are compared.

An attach is a treatment: what Azure does to a disk in the background after it is not documented. Where one
disk of a comparison has to move between machines, every disk that it is compared with is detached and
attached as often, one that stays on its own machine (a sham cycle), and every visit of an arm, one arm in one
repeat of a block, begins right after an attach. Where no disk of a comparison moves, none is attached anew:
all are attached before the first block.

Volumes and their pools, ephemeral OS disks and disks of the user's own hosts stay where they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from diskbook.reference.catalog import OWN_DISK
from diskbook.scenario.model import Scenario
from diskbook.scenario.schedule import Block, PlannedTrial


def cycled(scenario: Scenario) -> list[frozenset[str]]:
    """Disks that are attached anew, in sets of those that comparisons join; one of each set has to move."""
    disks = [disk for disk in scenario.data_disks if disk.sku != OWN_DISK]
    machines = {
        disk.name: {arm.machine for arm in scenario.arm if arm.disk == disk.name}
        for disk in disks
        if not scenario.pool_machines(disk.name)
    }
    moving = {disk.name for disk in disks if len(machines.get(disk.name, ())) > disk.max_shares}
    return [group for group in _joined(scenario, machines) if group & moving]


def cycles(scenario: Scenario, block: Block) -> dict[int, int]:
    """How often a disk is attached anew right before a trial, by the trial's position in the block.

    Each disk of a set (`cycled`) is so as often as the one with the most visits has visits; where it has
    fewer, the rest of its cycles come right before its own visits, spread over them. Trials that are left out
    have none: those within a visit, and those of disks that stay.
    """
    first = _first_trials(scenario, block)
    planned: dict[int, int] = {}
    for group in cycled(scenario):
        visits = {disk: positions for disk, positions in first.items() if disk in group}
        most = max((len(positions) for positions in visits.values()), default=0)
        for positions in visits.values():
            each, more = divmod(most, len(positions))
            planned |= {at: each + (number < more) for number, at in enumerate(positions)}
    return planned


def places_before(scenario: Scenario, block: Block) -> list[tuple[str, str]]:
    """Where disks are to be filled before a block, each with the machine: pairs in the order of their visits.

    A disk that is attached anew in the block is so at its first visit; one that stays is attached to all its
    machines, so that the time since its attach is the time in the run, for all of them.
    """
    staying = {disk.name for disk in scenario.data_disks if disk.sku != OWN_DISK}
    renewed = frozenset().union(*cycled(scenario))
    places: dict[tuple[str, str], None] = {}
    for trial in block.trials:
        arm = scenario.arm_named(trial.arm)
        is_placed = any(disk == arm.disk for disk, _ in places)
        if arm.disk in staying and not (arm.disk in renewed and is_placed):
            places[arm.disk, arm.machine] = None
    return list(places)


def per_block(scenario: Scenario, blocks: Iterable[Block]) -> Counter[str]:
    """How many times each disk is attached anew over blocks."""
    counts: Counter[str] = Counter()
    for block in blocks:
        arm_at = {trial.position: scenario.arm_named(trial.arm) for trial in block.trials}
        for position, times in cycles(scenario, block).items():
            counts[arm_at[position].disk] += times
    return counts


def _joined(scenario: Scenario, disks: Mapping[str, object]) -> list[frozenset[str]]:
    """Sets of disks that comparisons join, directly or by others."""
    groups = [frozenset({name}) for name in disks]
    for item in scenario.comparison:
        pair = {scenario.arm_named(name).disk for name in (item.arm, item.base_arm)} & disks.keys()
        touched = [group for group in groups if group & pair]
        groups = [group for group in groups if not group & pair]
        groups += [frozenset().union(*touched)] if touched else []
    return groups


def _first_trials(scenario: Scenario, block: Block) -> dict[str, list[int]]:
    """Positions of the first trial of every visit, by disk, in order.

    An arm that ends one repeat and begins the next has two visits, as all others have.
    """
    begun: set[tuple[int, str]] = set()
    first: dict[str, list[int]] = {}
    for trial in block.trials:
        if _visit(trial) not in begun:
            begun.add(_visit(trial))
            first.setdefault(scenario.arm_named(trial.arm).disk, []).append(trial.position)
    return first


def _visit(trial: PlannedTrial) -> tuple[int, str]:
    return trial.repeat, trial.arm
