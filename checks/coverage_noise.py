"""Coverage of intervals under the noise of real machines: a part of `make coverage`.

Runs are drawn from the levels of the emulator's profiles with the emulator's own recipe (`emulator.noise`),
and their block log ratios go through the functions that the analysis uses. Within a run each trial is one
minute after the one before; where hours lie between blocks the noise clock is set on, as on the emulator.

"These disks" is compared with two truths: what the disks' ratio was in the hours measured, and what it is in
the long run. Where a disk's latency wanders, blocks near to each other share its state. No interval corrects
that, so the second is a known limit; where the wander lasts hours, hours between blocks are the remedy.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from checks import coverage_rule, simulate
from checks.coverage_rule import Cell
from checks.simulate import ARM, BASE, BASE_MS, SECONDS
from diskbook.design.vocabulary import Scope
from diskbook.stats import intervals
from diskbook_emulator import noise
from diskbook_emulator.profile import Noise, Wander, load_profile

OVERHEAD = 0.02
REPEATS = 2
DAY_H = 24.0
LONG_H = 100.0
"""Time constant from which on shifts of level say the same as a wander."""

REPLICATES, BLOCKS = (1, 2, 3, 5, 10), (2, 3, 5, 10)
QUICK_REPLICATES, QUICK_BLOCKS = (1, 3), (3, 5)

MEMORY = Noise(trial=0.012, second=0.03, wander=(Wander(hours=4.5, sd=0.02),))
"""Each disk wanders over 4.5 h: neighbours an hour apart correlate by 0.8, 3 h by 0.5, 12 h by 0.07."""

HOURS, LASTING = f"{Scope.THESE}, in these hours", f"{Scope.THESE}, in the long run"
CONSERVATIVE = (
    "what disks do between blocks counts as noise of blocks, though these hours are what is asked for"
)
KNOWN_LIMIT = (
    "blocks share the state of a disk that wanders, and nothing corrects that: say 'in these hours', "
    "leave hours between blocks, or take fresh disks"
)

Array = np.ndarray
TITLE = (
    "noise of real machines (Azure VM Noise 2024): coverage and half-width, NaN where refused "
    f"(?: known limit: {KNOWN_LIMIT})"
)


@dataclass(frozen=True)
class Condition:
    """Noise of a profile, with the hours that lie between blocks."""

    name: str
    levels: Noise


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """Coverage of a cell in one scope, and the median half-width of its intervals (relative)."""

    coverage: float
    half_width: float
    limit = KNOWN_LIMIT

    @property
    def is_refused(self) -> bool:
        """Whether no interval is given: one replicate says nothing about other disks."""
        return math.isnan(self.coverage)

    @property
    def is_known_limit(self) -> bool:
        """Whether it covers too little where nothing in the data can show it."""
        return self.claim == LASTING and coverage_rule.is_short(self.coverage, self.n_runs)

    @property
    def is_off(self) -> bool:
        """Whether it covers too little, or too much without a reason, beyond what the simulation may err."""
        wide = coverage_rule.is_wide(self.coverage, self.n_runs) and self.claim != HOURS
        return wide or (self.claim != LASTING and coverage_rule.is_short(self.coverage, self.n_runs))

    def said(self) -> list[str]:
        """What is said of it; also why it covers more than it says."""
        is_wide = self.claim == HOURS and self.coverage > coverage_rule.WIDE
        return super().said() + [f"conservative: {CONSERVATIVE}"] * is_wide


@dataclass(frozen=True)
class Drawn:
    """Runs of one design.

    - `log_latency`: log of the mean latency of each trial in ms, [run, replicate, block, repeat, arm].
    - `now`, `lasting`: true log ratio of each replicate's own disks, shape [run, replicate]: over the time of
      its blocks, what each disk does by itself meanwhile included, and in the long run.
    """

    log_latency: Array
    now: Array
    lasting: Array


def conditions() -> Iterator[Condition]:
    """List the noises: both profiles, blocks minutes to a day apart, shifts of level, a memory of hours."""
    for name in ("azure-noise-2024", "azure-noise-2024-burstable"):
        levels = load_profile(name).noise
        for words, hours in (("minutes", 0.0), ("3 h", 3.0), ("a day", DAY_H)):
            yield Condition(f"{name}, blocks {words} apart", replace(levels, hours_between_blocks=hours))
    levels = load_profile("azure-noise-2024").noise
    short = tuple(process for process in levels.wander if process.hours < LONG_H)
    shifting = replace(levels, wander=short, shifts_a_month=0.4, hours_between_blocks=DAY_H)
    yield Condition("azure-noise-2024, level shifts for the slowest wander, blocks a day apart", shifting)
    for hours in (1.0, 3.0, 12.0):
        alike = math.exp(-hours / MEMORY.wander[0].hours)
        words = f"a disk's memory of 4.5 h, blocks {hours:g} h apart, neighbours correlate by {alike:.2g}"
        yield Condition(words, replace(MEMORY, hours_between_blocks=hours))


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """List all cells; the quick ones are a few designs of each noise."""
    designs = itertools.product(QUICK_REPLICATES if quick else REPLICATES, QUICK_BLOCKS if quick else BLOCKS)
    for condition, (replicates, blocks) in itertools.product(conditions(), list(designs)):
        yield Cell(condition, replicates, blocks)


def draw(levels: Noise, replicates: int, blocks: int, n_runs: int, rng: np.random.Generator) -> Drawn:
    """Draw runs of a design: fresh machines with two disks each; the arm's is slower by `OVERHEAD`."""
    per_disk = (n_runs, replicates, 2)
    means = BASE_MS * np.array([1.0, 1.0 + OVERHEAD])
    machine = rng.normal(0, levels.machine, (n_runs, replicates, 1))
    slow_machine = noise.slow(levels, levels.shared, rng.random((n_runs, replicates)))[..., None]
    slow_disk = noise.slow(levels, 1 - levels.shared, rng.random((n_runs, 2, replicates)))
    slow = slow_machine + np.swapaxes(slow_disk, -1, -2)
    constant = machine + rng.normal(0, levels.disk, per_disk) + slow
    moved = _moves(levels, (n_runs, replicates), blocks, rng)
    per_block = 2 * REPEATS
    common = math.sqrt(levels.shared) * _minutes(levels, (n_runs, replicates, blocks), per_block, rng)
    own = math.sqrt(1 - levels.shared) * _minutes(levels, (*per_disk, blocks), per_block, rng)
    moved += np.swapaxes(own.mean(axis=-1), -1, -2)
    offset = rng.normal(0, levels.machine_us / 1000, (n_runs, replicates, 1))
    lasting = np.log(means * np.exp(constant) + offset)
    now = np.log(means * np.exp(constant[:, :, None] + moved) + offset[:, :, None])
    logs = np.log(means) + (constant[:, :, None] + moved)[:, :, :, None]
    logs = logs + _of_trials(levels, (n_runs, replicates, blocks, REPEATS, 2), rng)
    by_position = common[:, :, None] + own - own.mean(axis=-1, keepdims=True)
    logs = logs + _in_turn(by_position, logs.shape, rng)
    measured = np.log(np.exp(logs) + offset[:, :, None, None])
    return Drawn(measured, _ratio(now).mean(axis=-1), _ratio(lasting))


def _ratio(logs: Array) -> Array:
    difference: Array = logs[..., ARM] - logs[..., BASE]
    return difference


def _moves(levels: Noise, shape: tuple[int, int], blocks: int, rng: np.random.Generator) -> Array:
    """Slow moves of every disk, [run, replicate, block, arm]: its own, and its machine's."""
    common = noise.moves(levels, levels.shared, rng, (*shape, blocks))
    own = noise.moves(levels, 1 - levels.shared, rng, (*shape, 2, blocks))
    moved: Array = common[..., None] + np.swapaxes(own, -1, -2)
    return moved


def _of_trials(levels: Noise, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """What trials have by themselves; shape as `log_latency`."""
    of_seconds = simulate.sd_of_mean(levels.second, levels.phi, SECONDS)
    own: Array = rng.normal(0, math.hypot(levels.trial, of_seconds), shape)
    return own + noise.slow_runs(levels, rng, shape)


def _in_turn(by_position: Array, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Values at the places in a block at which arms were measured; `shape` as `log_latency`.

    - `by_position`: values of each minute of a block, [run, replicate, arm, block, position].
    """
    first = rng.integers(0, 2, shape[:3])[..., None, None]
    repeat, arm = np.arange(shape[3])[:, None], np.arange(2)
    position = 2 * repeat + (first + repeat + arm) % 2
    taken: Array = np.take_along_axis(by_position, np.moveaxis(position, -1, 2), axis=-1)
    return np.moveaxis(taken, 2, -1)


def _minutes(levels: Noise, shape: tuple[int, ...], per_block: int, rng: np.random.Generator) -> Array:
    """Blocks and drift of the emulator's noise, averaged over each trial of a block.

    - `shape`: of what has such noise by itself; its last axis is blocks.

    Returns numpy.ndarray, shape (*shape, per_block)
    """
    apart = levels.hours_between_blocks > 0
    steps = round(SECONDS / levels.block_s)
    heights = noise.knots(levels, rng, (*shape, per_block * steps + 1))
    if not apart:
        heights[..., 1:, 0] = heights[..., :-1, -1]
    middles = (heights[..., :-1] + heights[..., 1:]) / 2
    means = middles.reshape(*shape, per_block, steps).mean(axis=-1)
    at_s = SECONDS * (np.arange(per_block) + 0.5)
    starts = rng.random((*shape[:-1], shape[-1] if apart else 1, 1))
    blocks = np.zeros((shape[-1], 1)) if apart else np.arange(shape[-1])[:, None] * per_block * SECONDS
    total: Array = means + noise.wave(levels, at_s + blocks, starts)
    return total


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate one cell, in each scope."""
    condition, replicates, blocks = cell
    rng = np.random.default_rng([seed, *condition.name.encode(), replicates, blocks])
    drawn = draw(condition.levels, replicates, blocks, n_runs, rng)
    log_ratios = simulate.block_log_ratios(drawn.log_latency)
    these, general = intervals.within_replicates(log_ratios), intervals.over_replicates(log_ratios)
    truths = (
        (HOURS, these, drawn.now.mean(axis=-1)),
        (LASTING, these, drawn.lasting.mean(axis=-1)),
        (str(Scope.LIKE_THESE), general, np.full(n_runs, math.log1p(OVERHEAD))),
    )
    return [
        Row(cell, scope, n_runs, *coverage_rule.covered(interval, truth, ~np.isnan(interval.low)))
        for scope, interval, truth in truths
    ]
