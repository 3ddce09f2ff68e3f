"""The plan of a run: which trial comes when, drawn from the seed and fixed before the first one.

A block holds every cell `repeats` times, close in time: arms in a random order, then in its reverse, and
so on in turn, so that a drift within the block meets all arms alike. Blocks come in pairs, of which the
second has the order of the first reversed, and replicates likewise: of any two arms each leads in half of the
blocks, so that what an arm leaves behind meets both alike. Workloads come in random order, the same for all
arms of a block and repeat, so that a workload comes as long after an attach, and after the same others, in
each of them. docs/glossary.md has the definitions.

Where arms have placements, a block has the arms of one placement. Placements come in an order drawn for each
replicate, and then in its reverse (z1 z2 z3 z3 z2 z1), each time with half of their blocks. A drift over the
replicate then meets all placements alike, and disks move between groups of blocks only. Blocks that are hours
apart (`design.spread`), or after which the run is judged (`design.look_unit`), come in rounds: all placements
once, then in the reverse order.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from diskbook.design.model import Scenario, Workload


@dataclass(frozen=True)
class PlannedTrial:
    """One trial to be run. Numbers count from 1; `position` counts within the block.

    One for `evidence` is for metrics of the platform alone, one that is `early` comes right after an attach
    (`Trial.early`): no comparison, interval or figure has either.
    `round` is the number of the block among those of its placement, 0 without placements. The table of trials
    has it as the block, so that the first blocks of all placements make pairs.
    """

    replicate: int
    block: int
    repeat: int
    position: int
    arm: str
    workload: str
    evidence: bool = False
    early: bool = False
    round: int = 0

    def name(self, attempt: int) -> str:
        """Identify the trial and its attempt; also the name of its raw files."""
        place = f"r{self.replicate}-b{self.block:02d}-p{self.position:03d}"
        return f"{place}-{self.arm}-{self.workload}-a{attempt}"


@dataclass(frozen=True)
class Block:
    """The unit of completion: a block that is cut short is repeated whole.

    A trial for evidence is a block of its own, numbered after those that are compared.
    """

    replicate: int
    block: int
    trials: tuple[PlannedTrial, ...]

    @property
    def evidence(self) -> bool:
        """Whether it is there for metrics of the platform alone."""
        return all(trial.evidence for trial in self.trials)

    @property
    def round(self) -> int:
        """Its number among the blocks of its placement; without placements, its number."""
        return next((trial.round for trial in self.trials), None) or self.block

    def numbered(self, replicate: int) -> "Block":
        """Return the same block as part of another replicate: the one that a resumed run measures it on."""
        trials = tuple(replace(trial, replicate=replicate) for trial in self.trials)
        return Block(replicate, self.block, trials)


def plan(scenario: Scenario, *, balanced: bool = True) -> "list[Block]":
    """Draw the order of all trials from the scenario's seed.

    - `scenario`: with `design.seed`, `design.replicates` and `design.repeats`; a workload's `blocks` says in
      how many blocks, counted from the first, it is measured.
    - `balanced`: whether blocks come in pairs, and workloads in one order for all arms; runs that began
      before they did keep the order of theirs.

    Returns in the order of execution. Equal scenarios give equal plans.
    """
    return [
        _block(scenario, replicate, block, place, balanced)
        for replicate in range(1, scenario.design.replicates + 1)
        for block, place in enumerate(_places(scenario, replicate), 1)
    ]


def placements(scenario: Scenario) -> dict[str, list[str]]:
    """Names of the arms of each placement, in the file's order; all arms in one where none has a name."""
    arms: dict[str, list[str]] = {}
    for arm in scenario.arm:
        arms.setdefault(arm.placement or "", []).append(arm.name)
    return arms


def n_blocks(scenario: Scenario) -> int:
    """Count the blocks of one replicate, over all placements, without those for evidence."""
    return len(_places(scenario, 1))


def placement_groups(scenario: Scenario, replicate: int = 1) -> list[str]:
    """Placements of a replicate in their order, once for all blocks in a row; [""] without placements."""
    return [name for name, _ in groupby(place for place, _ in _places(scenario, replicate))]


def _places(scenario: Scenario, replicate: int) -> list[tuple[str, int]]:
    """Placement of each block of a replicate, in order, and its number among the blocks of that placement."""
    arms = placements(scenario)
    last = {
        name: max((load.blocks for load in scenario.workload if any(map(load.meets, of_place))), default=0)
        for name, of_place in arms.items()
    }
    most = max(last.values(), default=0)
    in_rounds = scenario.gap_h or scenario.design.look_unit == "blocks"
    size = 1 if in_rounds else max(1, math.ceil(most / 2))
    names = list(arms)
    # Blocks draw with their number, which is never 0.
    drawn = np.random.default_rng([scenario.design.seed, replicate, 0]).permutation(len(names))
    names = [names[place] for place in drawn]
    places = []
    for turn, first in enumerate(range(1, most + 1, size)):
        for name in reversed(names) if turn % 2 else names:
            places += [(name, number) for number in range(first, first + size) if number <= last[name]]
    return places


def evidence_blocks(scenario: Scenario, cells: Sequence[tuple[str, str]]) -> list[Block]:
    """Plan one trial for evidence of each cell, after all others; replicates have the cells in turn.

    - `scenario`: with `design.replicates`; without `design.evidence_s` there are none.
    - `cells`: arm and workload of each (`throttling.expected`).
    """
    last = n_blocks(scenario)
    replicates = scenario.design.replicates
    blocks = []
    for number, (arm, workload) in enumerate(cells if scenario.design.evidence_s else ()):
        turn, replicate = divmod(number, replicates)
        trial = PlannedTrial(replicate + 1, last + 1 + turn, 1, 1, arm, workload, evidence=True)
        blocks.append(Block(replicate + 1, last + 1 + turn, (trial,)))
    return blocks


def offered(scenario: Scenario, trial: PlannedTrial) -> Workload:
    """Return the load of a trial: its workload, which one for evidence has for `design.evidence_s`."""
    load = scenario.workload_named(trial.workload)
    return for_evidence(load, scenario.design.evidence_s) if trial.evidence else load


def for_evidence(load: Workload, seconds: float | None) -> Workload:
    """Return a workload as a trial for evidence of so many seconds has it; as it is where there are none."""
    return load if not seconds else load.model_copy(update={"runtime_s": float(seconds)})


def _block(scenario: Scenario, replicate: int, block: int, place: tuple[str, int], balanced: bool) -> Block:
    # A generator a block: the plan of a block does not depend on how many were drawn before it.
    rng = np.random.default_rng([scenario.design.seed, replicate, block])
    by_place, (name, number) = placements(scenario), place
    workloads = [workload for workload in scenario.workload if number <= workload.blocks]
    order = list(by_place[name])
    rng.shuffle(order)
    if balanced:
        drawn_for = [scenario.design.seed, *([list(by_place).index(name)] if name else [])]
        order = _balanced(by_place[name], drawn_for, replicate, number)
    steps = (_steps if balanced else _steps_by_arm)(order, workloads, scenario.design.repeats, rng)
    trials = tuple(
        PlannedTrial(replicate, block, repeat, position, arm, workload, round=number if name else 0)
        for position, (repeat, arm, workload) in enumerate(steps, 1)
    )
    return Block(replicate, block, trials)


def _balanced(arms: list[str], seeds: list[int], replicate: int, block: int) -> list[str]:
    """Order of the arms: one draw for two blocks of two replicates, reversed in the other block or replicate.

    So an odd number of blocks has one lead more, also of a workload that comes in some blocks only.
    """
    pair, mirrored = divmod(replicate - 1, 2), divmod(block - 1, 2)
    rng = np.random.default_rng([*seeds, pair[0], mirrored[0], len(arms)])
    order = [arms[index] for index in rng.permutation(len(arms))]
    return order[::-1] if pair[1] != mirrored[1] else order


def _steps(
    order: list[str], workloads: list[Workload], repeats: int, rng: np.random.Generator
) -> Iterator[tuple[int, str, str]]:
    for repeat in range(1, repeats + 1):
        drawn = [workloads[index] for index in rng.permutation(len(workloads))]
        for arm in order if repeat % 2 else reversed(order):
            yield from ((repeat, arm, workload.name) for workload in drawn if workload.meets(arm))


def _steps_by_arm(
    order: list[str], workloads: list[Workload], repeats: int, rng: np.random.Generator
) -> Iterator[tuple[int, str, str]]:
    """Steps with an order of workloads for each arm, as plans had them before they were written down."""
    for repeat in range(1, repeats + 1):
        for arm in order if repeat % 2 else reversed(order):
            names = [workload.name for workload in workloads if workload.meets(arm)]
            for index in rng.permutation(len(names)):
                yield repeat, arm, names[index]


def waiting_s(scenario: Scenario, start_s: float = 0.6) -> float:
    """Time that one replicate waits between its blocks (`design.spread`), in seconds.

    A block is due so long after the one before it began, so that its trials are part of that time. Where arms
    have placements, this is the time between rounds, each with a block of every placement.
    """
    gap_s, last = 3600 * scenario.gap_h, scenario.most_blocks
    if not gap_s:
        return 0.0
    cells = [(load.blocks, load.ramp_s + load.runtime_s + start_s) for _, load in scenario.cells]
    busy_s = (
        scenario.design.repeats * sum(cell_s for blocks, cell_s in cells if block <= blocks)
        for block in range(1, last)
    )
    return sum(max(0.0, gap_s - each) for each in busy_s)


def seconds(scenario: Scenario, start_s: float = 0.6) -> float:
    """Time that the trials of one run take, in seconds, without provisioning.

    `start_s` is what a tool's start and the fetching of its output cost.
    """
    times = scenario.design.repeats * scenario.design.replicates
    return times * sum(load.blocks * (load.ramp_s + load.runtime_s + start_s) for _, load in scenario.cells)
