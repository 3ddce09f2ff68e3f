"""Coverage of the analysis's own intervals on simulated runs: the compute part of `make coverage`.

Simulated runs go through the functions that the analysis uses. "These disks" is compared with the realised
ratio of the very disks drawn, "disks like these" against the ratio of the kind. Whether an interval is
printed, flagged or refused is for the gates of the analysis to say: it depends on the data alone, never on
the noise that was planted.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from checks import coverage_rule, simulate
from checks.simulate import Design, Level, Simulated, Truth
from diskbook.design.vocabulary import GateStatus, Scope
from diskbook.stats import intervals, outliers, saturation
from diskbook.stats.gates import data, design
from diskbook.stats.strata import Strata

FEW_PRINTED = 0.2
"""Printed intervals for each simulated run below which they are too few to judge."""

UNSEEN_NOISE = (
    "noise that did not happen to occur shows in no data; "
    "5 replicates x 10 blocks are not enough to meet it where it is rare"
)
FEW_BLOCKS = 5
FEW_BLOCKS_WIDE = "few blocks hardly tell whether one machine is noisier than others: intervals allow for it"
"""Up to how many blocks intervals for these very disks may cover more than 98 %, with several replicates."""
WIDE_ONES_LEFT = "losses flag the narrow intervals, which they may move most, so that wide ones are left"
UNSEEN_LOSS = "a loss that did not happen to occur shows in no data"

LOST = (
    "few blocks are left that measured both arms, and losses that differ by chance are flagged, with a bound"
)
SELECTED = "losses that differ by arm are flagged, with a bound"
BY_ZONE = {
    "apart": "a zone that answers in one replicate only is no sample of its kind",
    "pooled": "replicates with different nearest zones are a mixture, to be read zone by zone",
    "unprobed": "the disk was read from one zone, so which one answers is hidden",
}
"""Why runs are refused or flagged, by what is done with a hidden nearest zone."""

Zones = Literal["apart", "pooled", "unprobed", "unknown"]
Methods = Mapping[str, Callable[[np.ndarray], intervals.Interval]]
ANALYSIS: Methods = {Scope.LIKE_THESE: intervals.over_replicates, Scope.THESE: intervals.within_replicates}
"""What the analysis computes in each scope (`diskbook.stats.ratios`)."""
TITLE = (
    "ratios: shares of runs, intervals that cover and that see a difference where there is none; "
    "NaN where none is printed"
)


@dataclass(frozen=True)
class Condition:
    """What is simulated in every design.

    - `zones`: where a hidden zone answers: "apart" compares replicates of each nearest zone by themselves,
      "pooled" all of them with the nearest zones known, "unprobed" all of them without, the analysis being
      told that the disk is zone-redundant, "unknown" without its being told.
    - `failed`, `slow_lost`, `slow_repeated`: shares of trials that fail (`simulate.Design`).
    - `known_limit`: why intervals may cover too little here where nothing in the data can show it; printed,
      not judged.
    - `refused`: why many runs get no interval here, or one that a gate flags.
    """

    name: str
    level: Level
    repeats: int = 2
    failed: float = 0.0
    slow_lost: float = 0.0
    slow_repeated: float = 0.0
    truth: Truth = field(default_factory=Truth)
    zones: Zones = "unknown"
    known_limit: str = ""
    refused: str = ""


class Cell(coverage_rule.Cell):
    """One design under one condition (`Condition`)."""

    @property
    def design(self) -> Design:
        """The design, with the trials that fail."""
        given = self.condition
        lost = given.failed, given.slow_lost, given.slow_repeated
        return Design(self.replicates, self.blocks, given.repeats, *lost)


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """What one scope of a design gave.

    - `n_printed`: intervals printed (up to three a run where zones are compared apart).
    - `refused`, `flagged`, `noisy`: shares of the runs (or zones): without an interval, with one that a gate
      flags, and with one that the gate of one-sided noise warns of (these are printed and judged).
    - `coverage`, `half_width`, `false`: of the intervals printed: share that holds the truth, median
      half-width (relative), and, with no true difference, the share that sees one.
    - `coverage_quiet`, `coverage_flagged`: share that holds the truth where the gate of one-sided noise saw
      nothing, and of flagged intervals.
    - `coverage_bound`: of all intervals, with the bound that is shown beside those whose losses differ by
      arm; NaN where none do.
    """

    n_printed: int
    refused: float
    flagged: float
    noisy: float
    coverage: float
    coverage_quiet: float
    coverage_flagged: float
    coverage_bound: float
    half_width: float
    false: float

    @property
    def limit(self) -> str:  # type: ignore[override]
        """Why it may cover too little."""
        return self.cell.condition.known_limit

    @property
    def why_wide(self) -> str:
        """Why intervals may cover more than 98 % here; empty where they may not."""
        if self.flagged > coverage_rule.OFTEN_REFUSED:
            return WIDE_ONES_LEFT
        is_open = self.claim == Scope.THESE and self.cell.replicates > 1
        return FEW_BLOCKS_WIDE if is_open and self.cell.blocks <= FEW_BLOCKS else ""

    @property
    def is_known_limit(self) -> bool:
        """Whether it covers too little where nothing in the data can show it."""
        return self._is_short and bool(self.cell.condition.known_limit)

    @property
    def is_refused(self) -> bool:
        """Whether gates flag or refuse nearly all intervals."""
        return self.n_printed < FEW_PRINTED * self.n_runs

    @property
    def is_off(self) -> bool:
        """Verdict on the printed intervals, and on the bounds of those that are flagged for their losses."""
        if coverage_rule.is_short(self.coverage_bound, (1 - self.refused) * self.n_runs):
            return True
        is_wide = coverage_rule.is_wide(self.coverage, self.n_printed) and not self.why_wide
        return not self.is_refused and (is_wide or (self._is_short and not self.is_known_limit))

    @property
    def is_conservative(self) -> bool:
        """Whether it covers more than it says."""
        return self.coverage > coverage_rule.WIDE and not (self.is_refused or self.is_off)

    @property
    def is_often_refused(self) -> bool:
        """Whether many runs are refused or flagged; of other disks one replicate says nothing anyway."""
        says_nothing = self.claim == Scope.LIKE_THESE and self.cell.replicates == 1
        return self.refused + self.flagged > coverage_rule.OFTEN_REFUSED and not says_nothing

    def said(self) -> list[str]:
        """What is said of it; also why it covers more than it says, and why many runs are refused."""
        wide = [f"conservative: {self.why_wide}"] * (self.is_conservative and bool(self.why_wide))
        refused = [self.cell.condition.refused or "NO REASON GIVEN"] * self.is_often_refused
        return [*super().said(), *wide, *refused]

    @property
    def _is_short(self) -> bool:
        return not self.is_refused and coverage_rule.is_short(self.coverage, self.n_printed)


def without_reason(rows: Iterable[Any]) -> list[str]:
    """Conditions of which many runs are refused or flagged, and nothing says why."""
    conditions = [row.cell.condition for row in rows if row.is_often_refused]
    return list(dict.fromkeys(condition.name for condition in conditions if not condition.refused))


def cells(*, quick: bool = False) -> Iterator[Cell]:
    replicates, blocks = ((1, 3), (2, 5)) if quick else ((1, 2, 3, 5, 10), (2, 3, 5, 10))
    yield from itertools.starmap(Cell, itertools.product(conditions(), replicates, blocks))


def conditions() -> Iterator[Condition]:
    """List what is simulated: noise levels, failed trials, one-sided noise and the hidden nearest zone."""
    for repeats in (2, 1):
        for failed in (0.0, 0.1):
            lost = ", one trial in ten failed" if failed else ""
            for level in simulate.LEVELS:
                words = f"{level.name}, {repeats} repeat{'s' * (repeats > 1)}{lost}"
                yield Condition(words, level, repeats, failed, refused=LOST if failed else "")
    for failed, lost in ((0.0, ""), (0.1, ", one trial in ten failed")):
        words = f"{simulate.ONE_SIDED.name}, 2 repeats{lost}"
        limit, refused = UNSEEN_NOISE, LOST if failed else ""
        yield Condition(words, simulate.ONE_SIDED, failed=failed, known_limit=limit, refused=refused)
    for level in (simulate.RARE_SLOW, simulate.OFTEN_SLOW):
        yield Condition(f"{level.name}, 2 repeats", level, known_limit=UNSEEN_NOISE)
    for repeats in (2, 1):
        words = f"{simulate.UNEQUAL.name}, {repeats} repeat{'s' * (repeats > 1)}"
        yield Condition(words, simulate.UNEQUAL, repeats)
    yield from _selected_conditions()
    yield from _zone_conditions()


def _selected_conditions() -> Iterator[Condition]:
    """Trials of one arm that are lost, or repeated, because they are slow."""
    mild = simulate.LEVELS[1]
    for repeats in (2, 1):
        words = f"{mild.name}, {repeats} repeat{'s' * (repeats > 1)}, the slowest"
        lost = Condition(
            f"{words} tenth of one arm lost", mild, repeats, known_limit=UNSEEN_LOSS, refused=SELECTED
        )
        yield replace(lost, slow_lost=0.1)
        yield replace(lost, name=f"{words} 16 % of one arm repeated", slow_repeated=0.16)


def _zone_conditions() -> Iterator[Condition]:
    """What is done with a hidden nearest zone."""
    mild, truth = simulate.LEVELS[1], Truth(hidden_zone=True)
    kinds: dict[Zones, str] = {
        "apart": "each zone apart",
        "pooled": "zones pooled",
        "unprobed": "read from one zone only",
    }
    for kind, words in kinds.items():
        name = f"{mild.name}, hidden zone, {words}"
        yield Condition(name, mild, truth=truth, zones=kind, refused=BY_ZONE[kind])


@dataclass(frozen=True)
class Outcome:
    """Intervals of one scope over all runs, their truth, and what gates say; arrays of one shape.

    - `interval`, `truth`: intervals of the log ratio, and what they should hold.
    - `flagged`, `noisy`: whether a gate flags the interval, and whether that of one-sided noise warns of it.
    - `moved`, `selected`: how far losses that differ by arm may have moved it, and whether it is flagged for
      that.
    """

    interval: intervals.Interval
    truth: np.ndarray
    flagged: np.ndarray
    noisy: np.ndarray
    moved: np.ndarray
    selected: np.ndarray

    @property
    def there(self) -> np.ndarray:
        """Runs that have an interval."""
        return ~np.isnan(self.interval.low)

    @property
    def printed(self) -> np.ndarray:
        """Runs whose interval is shown without a flag."""
        return self.there & ~self.flagged

    @property
    def covers(self) -> np.ndarray:
        """Runs whose interval holds the truth."""
        return (self.interval.low <= self.truth) & (self.truth <= self.interval.high)

    @property
    def bound_covers(self) -> np.ndarray:
        """Runs whose interval holds the truth, with the bound on what losses did where it is flagged."""
        moved = np.where(self.selected, self.moved, 0.0)
        low, high = self.interval.low - moved, self.interval.high + moved
        return (low <= self.truth) & (self.truth <= high)


def outcomes(
    simulated: Simulated, zones: Zones = "unknown", methods: Methods = ANALYSIS
) -> dict[str, Outcome]:
    """Put simulated runs of one design through the analysis, in each scope of `methods`."""
    log_ratios = simulate.block_log_ratios(simulated.log_latency)
    noisy, pair, nearest = _noisy(simulated, log_ratios), simulated.pair, simulated.nearest
    planned = np.ones(pair.shape, dtype=bool)
    general, mixed = np.full(len(pair), simulated.population), np.zeros(1, dtype=bool)
    if zones == "apart":
        every = len(simulated.by_zone)
        planned = np.concatenate([nearest == zone for zone in range(every)])
        log_ratios = np.where(planned[..., None], np.tile(log_ratios, (every, 1, 1)), np.nan)
        noisy, pair = np.tile(noisy, every), np.tile(pair, (every, 1))
        general = np.repeat(simulated.by_zone, len(nearest))
    elif zones == "pooled":
        mixed = np.array([_mixed(tuple(row)) for row in nearest.tolist()])
        general = np.where(mixed, general, simulated.by_zone[nearest[:, 0]])
    elif zones == "unprobed" and _hides_general(pair.shape[-1]):
        methods = {**methods, Scope.LIKE_THESE: _no_interval}
    intervals_of = {scope: method(log_ratios) for scope, method in methods.items()}
    moved = np.resize(_moved(simulated), pair.shape[0])
    halves = [(interval.high - interval.low) / 2 for interval in intervals_of.values()]
    selected = ~outliers.is_small(moved, *halves)
    flagged = mixed | _lost(log_ratios, planned) | selected
    withheld = _withheld(simulated, planned)
    intervals_of = {
        scope: intervals.Interval(*(np.where(withheld, np.nan, numbers) for numbers in interval))
        for scope, interval in intervals_of.items()
    }
    truths: dict[str, np.ndarray] = {Scope.LIKE_THESE: general, Scope.THESE: _of_present(pair, log_ratios)}
    return {
        scope: Outcome(interval, truths[scope], flagged, noisy, moved, selected)
        for scope, interval in intervals_of.items()
    }


def _of_present(pair: np.ndarray, log_ratios: np.ndarray) -> np.ndarray:
    """Mean of the true ratios of the replicates that have a block left, for each run."""
    present = ~np.isnan(log_ratios).all(axis=-1)
    with np.errstate(invalid="ignore"):
        mean: np.ndarray = np.where(present, pair, 0.0).sum(axis=-1) / present.sum(axis=-1)
    return mean


def _lost(log_ratios: np.ndarray, planned: np.ndarray) -> np.ndarray:
    """Runs with too many failed trials, as the gate of the analysis sees it."""
    blocks = (~np.isnan(log_ratios)).sum(axis=(-2, -1))
    all_blocks = planned.sum(axis=-1) * log_ratios.shape[-1]
    return np.array([_losses_fail(*pair) for pair in zip(blocks.tolist(), all_blocks.tolist(), strict=True)])


@functools.cache
def _losses_fail(n_blocks: int, n_blocks_all: int) -> bool:
    return data.losses_gate([], n_blocks, n_blocks_all).status is GateStatus.FAILED


def _moved(simulated: Simulated) -> np.ndarray:
    """How far losses that differ by arm may have moved the log ratio of each run, as the analysis has it."""
    logs, arm, base = simulated.log_latency, simulate.ARM, simulate.BASE
    share = (np.isnan(logs) | simulated.repeated).mean(axis=(1, 2, 3))
    return outliers.shift((share[:, arm], share[:, base]), logs[..., arm], logs[..., base])


def _withheld(simulated: Simulated, planned: np.ndarray) -> np.ndarray:
    """Runs whose ratio the analysis withholds, since the rate of an arm stands still as on a limit.

    A rate of single I/Os is the inverse of their latency, so that its log varies as much.
    """
    logs = simulated.log_latency
    squares = np.nansum((logs - _mean_of_replicate(logs)) ** 2, axis=(2, 3))
    df = np.maximum((~np.isnan(logs)).sum(axis=(2, 3)) - 1, 0)
    by_arm = [
        (np.tile(values, (len(planned) // len(logs), 1, 1)) * planned[..., None]).sum(axis=1)
        for values in (squares, df)
    ]
    still: np.ndarray = np.any(saturation.stands_still(*by_arm), axis=-1)
    return still


def _mean_of_replicate(logs: np.ndarray) -> np.ndarray:
    """Mean of each arm's trials in a replicate, shape [run, replicate, 1, 1, arm]; NaN where all failed."""
    there = ~np.isnan(logs)
    with np.errstate(invalid="ignore"):
        mean: np.ndarray = np.nansum(logs, axis=(2, 3), keepdims=True) / there.sum(axis=(2, 3), keepdims=True)
    return mean


@functools.cache
def _mixed(nearest: tuple[int, ...]) -> bool:
    """Whether replicates with these nearest zones are a mixture, as the gate of the analysis sees it."""
    strata = Strata({number: f"zone {zone}" for number, zone in enumerate(nearest)}, inferred=True)
    return design.nearest_gate(strata, len(nearest)).status is GateStatus.FAILED


def _hides_general(replicates: int) -> bool:
    """Whether the analysis refuses a general interval for a disk that was read from one zone only."""
    strata = Strata(dict.fromkeys(range(replicates), "zone"), inferred=False, unprobed=("arm",))
    return bool(design.hides_general([design.nearest_gate(strata, replicates)]))


def _no_interval(log_ratios: np.ndarray) -> intervals.Interval:
    return intervals.Interval(*[np.full(log_ratios.shape[:-2], np.nan)] * 5)


def _noisy(simulated: Simulated, log_ratios: np.ndarray) -> np.ndarray:
    """Runs that the gate of one-sided noise warns of."""
    logs, there = simulated.log_latency, ~np.isnan(log_ratios)
    far = outliers.count(logs[..., simulate.ARM], logs[..., simulate.BASE])
    warned = np.zeros(len(logs), dtype=bool)
    for run in np.flatnonzero(far.one_sided).tolist():
        counts = outliers.OutlierCounts(far.arm[run], far.base[run])
        warned[run] = data.noise_gate(("arm", "base"), counts, there[run]).status is GateStatus.FAILED
    return warned


def measure(cell: Cell, n_runs: int, seed: int, methods: Methods | None = None) -> list[Row]:
    """Simulate one cell: coverage and width at the true overhead, false positives at none."""
    condition, design, methods = cell.condition, cell.design, methods or ANALYSIS
    rng = np.random.default_rng([seed, *condition.name.encode(), design.replicates, design.blocks])
    runs = simulate.simulate(condition.level, design, condition.truth, n_runs, rng)
    equal = Truth(0.0, condition.truth.hidden_zone)
    nulls = simulate.simulate(condition.level, design, equal, n_runs, rng)
    by_scope = outcomes(runs, condition.zones, methods)
    null = outcomes(nulls, condition.zones, methods)
    return [_row(cell, n_runs, scope, by_scope[scope], null[scope]) for scope in methods]


def _row(cell: Cell, n_runs: int, scope: str, outcome: Outcome, null: Outcome) -> Row:
    printed = outcome.printed
    coverage, half_width = coverage_rule.covered(outcome.interval, outcome.truth, printed)
    return Row(
        cell,
        scope,
        n_runs,
        n_printed=int(printed.sum()),
        refused=float((~outcome.there).mean()),
        flagged=float((outcome.flagged & outcome.there).mean()),
        noisy=float((outcome.noisy & printed).mean()),
        coverage=coverage,
        coverage_quiet=_mean(outcome.covers[printed & ~outcome.noisy]),
        coverage_flagged=_mean(outcome.covers[outcome.flagged & outcome.there]),
        coverage_bound=_mean(outcome.bound_covers[outcome.there]) if outcome.selected.any() else math.nan,
        half_width=half_width,
        false=_mean(~null.covers[null.printed]),
    )


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")
