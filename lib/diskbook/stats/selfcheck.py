"""Coverage of the analysis's own intervals on simulated runs: the compute part of `diskbook.coverage`.

Simulated runs go through the functions that the analysis uses. "These disks" is held against the realised
ratio of the very disks drawn, "disks like these" against the ratio of the kind. Whether an interval is
printed, flagged or refused depends on the data alone, never on the noise that was planted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from diskbook.stats import gates, intervals, simulate
from diskbook.stats.intervals import Interval
from diskbook.stats.ratios import LIKE_THESE, THESE
from diskbook.stats.simulate import Design, Level, Simulated, Truth

LOWEST, HIGHEST = 0.93, 0.97
FEW_PRINTED = 0.1
"""Share of runs below which printed intervals are too few to judge."""

Methods = Mapping[str, Callable[[np.ndarray], Interval]]
ANALYSIS: Methods = {LIKE_THESE: intervals.over_replicates, THESE: intervals.within_replicates}
"""What the analysis computes in each scope (`diskbook.stats.ratios`)."""


@dataclass(frozen=True)
class Condition:
    """What is simulated in every design.

    Attributes
    ----------
    stratified
        Whether replicates are compared by nearest zone, each zone apart.
    known_limit
        Why intervals may cover too little here, where no data could show it; printed, not judged.
    """

    name: str
    level: Level
    repeats: int = 2
    failed: float = 0.0
    truth: Truth = field(default_factory=Truth)
    stratified: bool = False
    known_limit: str = ""


@dataclass(frozen=True)
class Row:
    """What one scope of a design gave. Shares are of runs (`refused`, `flagged`) or of intervals printed."""

    condition: Condition
    design: Design
    scope: str
    n: int
    refused: float
    flagged: float
    coverage: float
    half_width: float
    false_positive: float

    @property
    def status(self) -> str:
        """Verdict on the printed intervals."""
        if 1 - self.refused - self.flagged < FEW_PRINTED:
            return "flagged" if self.flagged > self.refused else "refused"
        if self.coverage < LOWEST:
            return "known limit" if self.condition.known_limit else "FAILED"
        return "conservative" if self.coverage > HIGHEST else "ok"


def conditions() -> Iterator[Condition]:
    """List what is simulated: noise levels, failed trials, one-sided noise and the hidden nearest zone."""
    for repeats in (2, 1):
        for failed in (0.0, 0.1):
            lost = ", one trial in ten failed" if failed else ""
            for level in simulate.LEVELS:
                words = f"{level.name}, {repeats} repeat{'s' * (repeats > 1)}{lost}"
                yield Condition(words, level, repeats, failed)
    limit = "a gate cannot see noise that did not happen to occur"
    for failed, lost in ((0.0, ""), (0.1, ", one trial in ten failed")):
        words = f"{simulate.ONE_SIDED.name}, 2 repeats{lost}"
        yield Condition(words, simulate.ONE_SIDED, failed=failed, known_limit=limit)
    mild, hidden = simulate.LEVELS[1], Truth(hidden_zone=True)
    for stratified, how in ((True, "each nearest zone apart"), (False, "nearest zones pooled")):
        yield Condition(f"{mild.name}, hidden zone, {how}", mild, truth=hidden, stratified=stratified)


@dataclass(frozen=True)
class Outcome:
    """Intervals of one scope over all runs, their truth, and which are flagged; arrays of one shape."""

    found: Interval
    truth: np.ndarray
    flagged: np.ndarray

    @property
    def printed(self) -> np.ndarray:
        """Runs whose interval is shown without a flag."""
        return ~np.isnan(self.found.low) & ~self.flagged

    @property
    def covers(self) -> np.ndarray:
        """Runs whose interval holds the truth."""
        return (self.found.low <= self.truth) & (self.truth <= self.found.high)


def outcomes(simulated: Simulated, stratified: bool, methods: Methods = ANALYSIS) -> dict[str, Outcome]:
    """Put simulated runs through the analysis, in both scopes.

    Parameters
    ----------
    simulated
        Runs of one design.
    stratified
        Whether each nearest zone is compared apart: a run then gives an interval for each zone it met.
    methods
        Interval of each scope; those of the analysis by default.
    """
    log_ratios = simulate.block_log_ratios(simulated.log_latency)
    pair, general = simulated.pair, np.full(len(log_ratios), simulated.population)
    planned = np.ones(pair.shape, dtype=bool)
    if stratified:
        zones = range(len(simulated.by_zone))
        planned = np.concatenate([simulated.nearest == zone for zone in zones])
        log_ratios = np.where(planned[..., None], np.tile(log_ratios, (len(zones), 1, 1)), np.nan)
        pair, general = np.tile(pair, (len(zones), 1)), np.repeat(simulated.by_zone, len(pair))
    present = ~np.isnan(log_ratios).all(axis=-1)
    with np.errstate(invalid="ignore"):
        these = np.where(present, pair, 0.0).sum(axis=-1) / present.sum(axis=-1)
    flagged = _lost(log_ratios, planned)
    truths = {LIKE_THESE: general, THESE: these}
    return {scope: Outcome(method(log_ratios), truths[scope], flagged) for scope, method in methods.items()}


def _lost(log_ratios: np.ndarray, planned: np.ndarray) -> np.ndarray:
    """Runs with too many failed trials, as the gate of the analysis sees it."""
    blocks = (~np.isnan(log_ratios)).sum(axis=(-2, -1))
    all_blocks = planned.sum(axis=-1) * log_ratios.shape[-1]
    return np.array([_losses_fail(*pair) for pair in zip(blocks.tolist(), all_blocks.tolist(), strict=True)])


@functools.cache
def _losses_fail(n_blocks: int, n_blocks_all: int) -> bool:
    return gates.losses_gate([], n_blocks, n_blocks_all).status == "failed"


def measure(condition: Condition, design: Design, n_runs: int, seed: int, methods: Methods) -> list[Row]:
    """Simulate one cell: coverage and width at the true overhead, false positives at none."""
    rng = np.random.default_rng([seed, *condition.name.encode(), design.replicates, design.blocks])
    runs = simulate.simulate(condition.level, design, condition.truth, n_runs, rng)
    equal = Truth(0.0, condition.truth.hidden_zone)
    nulls = simulate.simulate(condition.level, design, equal, n_runs, rng)
    found = outcomes(runs, condition.stratified, methods)
    null = outcomes(nulls, condition.stratified, methods)
    return [_row(condition, design, scope, found[scope], null[scope]) for scope in methods]


def _row(condition: Condition, design: Design, scope: str, one: Outcome, null: Outcome) -> Row:
    printed = one.printed
    half_widths = np.expm1((one.found.high - one.found.low) / 2)[printed]
    return Row(
        condition,
        design,
        scope,
        n=len(printed),
        refused=float(np.isnan(one.found.low).mean()),
        flagged=float((one.flagged & ~np.isnan(one.found.low)).mean()),
        coverage=_mean(one.covers[printed]),
        half_width=float(np.median(half_widths)) if printed.any() else float("nan"),
        false_positive=_mean(~null.covers[null.printed]),
    )


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")
