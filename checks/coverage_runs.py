"""Coverage of ratios of ratios, and of the spread between runs: a part of `make coverage`.

Pairs of runs are simulated with one truth, or with a planted ratio of ratios, and judged by the functions
that `diskbook compare` uses, alone and as one of seven comparisons. Of pairs with one truth at most 5 % may
show a difference, whatever their numbers of replicates and their spreads. A planted ratio of ratios of 1.10
is to be found in 80 % at the size that `diskbook plan` names for it. Pairs without a verdict are counted.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from checks import coverage_rule, simulate
from checks.simulate import LEVELS, Design, Level, Truth
from diskbook.stats import intervals, power, ratio_of_ratios, ratios

PLANTED, FOUND = 0.10, 0.80
HEADLINE = np.arange(7) < 3
"""Comparisons of the runs that are judged as a family: three headline ones, four others."""
SIZES = ((3, 3), (5, 5), (3, 10), (10, 10))
NUMBERS = (2, 3, 5, 10, 20)
TIMES = (1.0, 1.5, 2.0, 3.0, 5.0)
"""Standard deviations of the second run's replicates over those of the first."""
BLOCKS = 3
PAIR = "ratio of ratios, disks like these"
WILD = replace(LEVELS[2], name="C strong, disk pairs apart by 8 %", disk=0.08)
SD = 0.05
"""Of replicates that are drawn as they are, without the blocks and trials behind them."""
RUNS_OF_SPREAD = (
    *((replicates,) * runs for runs, replicates in ((3, 2), (3, 5), (5, 3), (20, 2), (20, 5))),
    *((10, 10, 3), (3, 20, 20, 20)),
)
TITLE = (
    "runs beside runs: coverage of nominal 95 % intervals; pairs that show a difference, by one comparison "
    "and by any of seven; NaN for no verdict"
)


class Cell(NamedTuple):
    """Two runs, or several whose spread is asked for.

    - `level`: noise of blocks and trials; None for replicates that are drawn as they are.
    - `replicates`: of each run.
    - `planted`: ratio of ratios less 1.
    - `times`: standard deviation of the replicates of the runs of fewest replicates (of a pair: the second)
      over that of the others.
    - `spread`: standard deviation between runs over that of their replicates; NaN for a pair.
    """

    level: Level | None
    replicates: tuple[int, ...]
    planted: float = 0.0
    times: float = 1.0
    spread: float = math.nan

    @property
    def name(self) -> str:
        """The condition in words."""
        unlike = "equal spreads" if self.times == 1 else f"spreads {self.times:g} times apart"
        if not math.isnan(self.spread):
            return f"spread between runs {self.spread:g} times that of replicates, {unlike}"
        what = f"ratio of ratios {1 + self.planted:g} planted" if self.planted else "one truth"
        return f"{self.level.name if self.level else unlike}, {what}"

    @property
    def size(self) -> str:
        """Replicates of each run."""
        return "+".join(map(str, self.replicates))

    @property
    def is_unjudged(self) -> bool:
        """Whether a pair has too few replicates for a verdict."""
        return math.isnan(self.spread) and min(self.replicates) < ratio_of_ratios.LEAST_REPLICATES


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """What the runs of a cell gave.

    - `coverage`: share of intervals that hold the truth.
    - `shown`, `family`: share that shows a difference, by one comparison and by any of seven; NaN without a
      verdict.
    - `false`: share of pairs of one truth that shows one.
    """

    coverage: float
    shown: float = math.nan
    family: float = math.nan
    false: float = math.nan

    @property
    def is_off(self) -> bool:
        """Whether intervals or verdicts are not as they are to be."""
        cell, n = self.cell, self.n_runs
        is_judged = not math.isnan(self.shown)
        if coverage_rule.is_short(self.coverage, n) or (cell.is_unjudged and is_judged):
            return True
        if cell.planted:
            return coverage_rule.is_less(self.shown, FOUND, n)
        return coverage_rule.is_more(max(self.shown, self.family), ratios.ALPHA, n)


def cells(*, quick: bool = False) -> Iterator[Cell]:
    for level in LEVELS[1:2] if quick else LEVELS:
        for sizes in SIZES[:2] if quick else SIZES:
            yield Cell(level, sizes)
    for level in LEVELS[2:3] if quick else (*LEVELS[1:], WILD):
        yield Cell(level, (planned(level),) * 2, planted=PLANTED)
    for times in TIMES[::3] if quick else TIMES:
        yield Cell(None, (planned(None),) * 2, PLANTED, times)
        for numbers in itertools.product(NUMBERS[:3] if quick else NUMBERS, repeat=2):
            yield Cell(None, numbers, times=times)
    for runs in RUNS_OF_SPREAD[::5] if quick else RUNS_OF_SPREAD:
        for times in TIMES[:1] if len(set(runs)) == 1 else (1.0, 3.0):
            for spread in (0.0, 1.0) if quick else (0.0, 0.5, 1.0, 2.0):
                yield Cell(None, runs, times=times, spread=spread)


def planned(level: Level | None) -> int:
    """Replicates that `diskbook plan` names for the planted ratio of ratios, one of seven."""
    alpha = float(ratio_of_ratios.hardest_levels(HEADLINE)[0])
    if level is None:
        return power.for_two_runs(SD, PLANTED, FOUND, alpha=alpha)
    rng = np.random.default_rng(7)
    values = simulate.block_log_ratios(
        simulate.simulate(level, Design(40, BLOCKS), Truth(), 200, rng).log_latency
    )
    spread = power.Spread(level.disk, float(np.sqrt(values.var(axis=-1, ddof=1).mean())))
    return power.for_two_runs(spread.sd_replicate(BLOCKS), PLANTED, FOUND, alpha=alpha)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate runs, and judge each pair, or their spread."""
    rng = np.random.default_rng([seed, *cell.replicates, round(1e4 * cell.level.disk) if cell.level else 0])
    if not math.isnan(cell.spread):
        return [_spread(cell, n_runs, rng)]
    differences = [_difference(cell, n_runs, rng) for _ in HEADLINE[: 1 if cell.planted else None]]
    coverage, _ = coverage_rule.covered(differences[0], math.log1p(cell.planted))
    p = np.array([ratio_of_ratios.p_difference(item) for item in differences]).T
    levels = ratio_of_ratios.hardest_levels(HEADLINE)[: p.shape[1]]
    shown = p[:, 0] < (levels[0] if cell.planted else ratios.ALPHA)
    if not np.isfinite(p).any():
        return [Row(cell, PAIR, n_runs, coverage)]
    share, family = float(shown.mean()), float((p < levels).any(axis=1).mean())
    return [Row(cell, PAIR, n_runs, coverage, share, family, math.nan if cell.planted else share)]


def _difference(cell: Cell, n_runs: int, rng: np.random.Generator) -> intervals.Interval:
    """Ratios of ratios of simulated pairs."""
    overheads = Truth().overhead, math.expm1(math.log1p(Truth().overhead) + math.log1p(cell.planted))
    sd = SD / math.sqrt((1 + cell.times**2) / 2)  # the root mean square of both is SD
    first, other = (
        intervals.over_replicates(
            rng.normal(math.log1p(overhead), times * sd, (n_runs, size, 1))
            if cell.level is None
            else simulate.block_log_ratios(
                simulate.simulate(cell.level, Design(size, BLOCKS), Truth(overhead), n_runs, rng).log_latency
            )
        )
        for size, overhead, times in zip(cell.replicates, overheads, (1.0, cell.times), strict=True)
    )
    return ratio_of_ratios.interval(first, other)


def _spread(cell: Cell, n_runs: int, rng: np.random.Generator) -> Row:
    """Intervals of the spread between runs; most replicates have a standard deviation of 1 here."""
    sizes = np.array(cell.replicates)
    sds = np.where(sizes == sizes.min(), cell.times, 1.0)
    between = rng.normal(0, cell.spread, (n_runs, len(sizes)))
    runs = [
        intervals.over_replicates(rng.normal(0, sd, (n_runs, size, 1)))
        for size, sd in zip(sizes, sds, strict=True)
    ]
    means = between + np.column_stack([run.mean for run in runs])
    errors = np.column_stack([run.se for run in runs])
    spreads = [ratio_of_ratios.between_runs(*run, sizes - 1.0) for run in zip(means, errors, strict=True)]
    covers = float(np.mean([item.low <= cell.spread <= item.high for item in spreads]))
    shown = float(np.mean([item.p < ratios.ALPHA for item in spreads]))
    return Row(cell, "spread between runs", n_runs, covers, math.nan if cell.spread else shown)
