"""Which disks are attached again in a block, and when: equally often for all disks that are compared.

An attach is a treatment: what Azure does to a disk in the background after it is not documented. Where one
disk of a comparison has to move between machines within a block, every disk that it is compared with is
detached and attached as often, one that stays on its own machine (a sham cycle), and every visit of an arm,
one arm in one repeat of a block, begins right after an attach. Where no disk of a comparison moves within a
block, none is attached again: all are attached before the first block.

Where arms have placements (`Arm.placement`), a block has the arms of one of them. Their disks are attached
before the block and stay, so that no sham cycles are needed. A disk moves only when the placement changes.

Volumes and their pools, ephemeral OS disks and disks of the user's own hosts stay where they are.

Trials right after an attach are planned as well, to compare with those after settling.

A disk settles for `design.settle_s` after an attach, and its trials come then. Before them one trial of a
compared load is measured right after the attach. The disk settles meanwhile, so it costs little time. It
has the status "early": the gate "attachment" alone reads it, and no comparison, interval or figure has it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from diskbook.design import schedule
from diskbook.design.model import Scenario, Workload
from diskbook.facts.catalog import OWN_DISK


def cycled(scenario: Scenario) -> list[frozenset[str]]:
    """Disks that are attached again in a block, in sets of those that comparisons join; one of each moves."""
    alone = [disk for disk in scenario.data_disks if disk.sku != OWN_DISK]
    alone = [disk for disk in alone if not scenario.pool_machines(disk.name)]
    moving = set[str]()
    for arms in schedule.placements(scenario).values():
        moving |= _moving(scenario, arms)
    return [group for group in _joined(scenario, {disk.name: disk for disk in alone}) if group & moving]


def moved_between(scenario: Scenario) -> frozenset[str]:
    """Disks that move when the placement changes, and stay where they are in each block."""
    return _moving(scenario, [arm.name for arm in scenario.arm]) - frozenset().union(*cycled(scenario))


def _moving(scenario: Scenario, arms: Iterable[str]) -> frozenset[str]:
    """Disks that cannot be attached to all machines of some arms at the same time."""
    machines: dict[str, set[str]] = {}
    for arm in map(scenario.arm_named, arms):
        machines.setdefault(arm.disk, set()).add(arm.machine)
    movable = [disk for disk in scenario.data_disks if disk.sku != OWN_DISK]
    return frozenset(disk.name for disk in movable if len(machines.get(disk.name, ())) > disk.max_shares)


def cycles(scenario: Scenario, block: schedule.Block) -> dict[int, int]:
    """How often a disk is attached again right before a trial, by the trial's position in the block.

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


def places_before(scenario: Scenario, block: schedule.Block) -> list[tuple[str, str]]:
    """Where disks are to be filled before a block, each with the machine: pairs in the order of their visits.

    A disk that is attached again in the block is so at its first visit; one that stays is attached to all its
    machines, so that the time since its attach is the time in the run, for all of them. So are the disks that
    stay on machines of other placements, so that each is filled and attached long before it is measured.
    """
    staying = {disk.name for disk in scenario.data_disks if disk.sku != OWN_DISK}
    renewed, between = frozenset().union(*cycled(scenario)), moved_between(scenario)
    arms = [scenario.arm_named(trial.arm) for trial in block.trials]
    arms += [arm for arm in scenario.arm if between and not block.evidence and arm.disk not in between]
    places: dict[tuple[str, str], None] = {}
    for arm in arms:
        is_placed = any(disk == arm.disk for disk, _ in places)
        if arm.disk in staying and not (arm.disk in renewed and is_placed):
            places[arm.disk, arm.machine] = None
    return list(places)


def per_block(scenario: Scenario, blocks: Iterable[schedule.Block]) -> Counter[str]:
    """How many times each disk is attached again over blocks."""
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


def _first_trials(scenario: Scenario, block: schedule.Block) -> dict[str, list[int]]:
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


def _visit(trial: schedule.PlannedTrial) -> tuple[int, str]:
    return trial.repeat, trial.arm


def plan_after_attach(scenario: Scenario) -> list[schedule.Block]:
    """Plan a run (`schedule.plan`) with a trial right after the attaches of each visit (`added`)."""
    return [added_after_attach(scenario, block) for block in schedule.plan(scenario)]


def added_after_attach(scenario: Scenario, block: schedule.Block) -> schedule.Block:
    """Begin each visit of a disk that is attached again with one trial more, right after the attach.

    The compared loads have it in turn over blocks and repeats, all arms the same one, so that each arm of a
    comparison has as many. There is none without a time to settle (`design.settle_s`).
    """
    if not scenario.design.settle_s:
        return block
    visits, there = cycles(scenario, block), {trial.workload for trial in block.trials}
    loads = [load for load in checked_after_attach(scenario) if load.name in there]
    trials: list[schedule.PlannedTrial] = []
    for trial in block.trials:
        turn = (trial.replicate + trial.block) * scenario.design.repeats + trial.repeat
        if trial.position in visits and loads and (load := loads[turn % len(loads)]).meets(trial.arm):
            trials.append(replace(trial, workload=load.name, early=True))
        trials.append(trial)
    numbered = (replace(trial, position=position) for position, trial in enumerate(trials, 1))
    return replace(block, trials=tuple(numbered))


def checked_after_attach(scenario: Scenario) -> list[Workload]:
    """Loads that are measured right after an attach: those of headlines, else those of comparisons."""
    compared = {item.workload for item in scenario.comparison}
    headline = {item.workload for item in scenario.comparison if item.family == "headline"}
    names = headline or compared
    return [load for load in scenario.workload if load.name in names and load.cache_state == "any"]


def trial_s(scenario: Scenario, start_s: float = 0.6) -> float:
    """Time of the longest trial right after an attach, in seconds; 0 where there is none."""
    loads = checked_after_attach(scenario) if scenario.design.settle_s else []
    return max((load.ramp_s + load.runtime_s + start_s for load in loads), default=0.0)
