"""Coverage of ratios of ratios, and of the spread between runs: a part of `make coverage`.

Pairs of runs are simulated with one truth, or with a planted ratio of ratios, and put through the functions
that `diskbook compare` uses, alone and as one of seven comparisons; of pairs with one truth 2 to 7 % are to
show a difference. A planted ratio of ratios of 1.10 is to be found in 80 % at the size that `diskbook plan`
names for it. Where two runs spread unlike, and have unequal numbers of replicates, less is promised.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from diskbook.selftest import coverage_rule, simulate
from diskbook.selftest.simulate import LEVELS, Design, Level, Truth
from diskbook.stats import intervals, power, ratio_of_ratios, verdicts
from diskbook.stats.intervals import Interval
from diskbook.stats.power import Spread

FEWEST, MOST = 0.02, 0.07
"""Share of pairs with one truth that show a difference."""
PLANTED, FOUND = 0.10, 0.80
HEADLINE, OTHERS = 3, 4
"""Comparisons of the runs that are judged as a family."""
SIZES = ((2, 2), (3, 3), (2, 5), (5, 5), (3, 10), (10, 10))
BLOCKS = 3
WILD = replace(LEVELS[2], name="C strong, disk pairs apart by 8 %", disk=0.08)
KNOWN_LIMIT = "runs that spread unlike and have unequal numbers of replicates: the footnote says so"
RUNS_OF_SPREAD = ((3, 2), (3, 5), (5, 3), (20, 2), (20, 5))


class Cell(NamedTuple):
    """Two runs: their noise, replicates of each, blocks of each replicate, and what is planted.

    `unlike` is the noise of the second run, where it is another. `spread` is the s.d. between runs over that
    of their replicates, where the spread of `first` runs of `other` replicates is asked for in place of a
    pair.
    """

    level: Level
    first: int
    other: int
    planted: float = 0.0
    unlike: Level | None = None
    spread: float = math.nan

    @property
    def name(self) -> str:
        """The condition in words."""
        if not math.isnan(self.spread):
            return f"spread between runs {self.spread:g} times that of replicates"
        then = f", then {self.unlike.name}" if self.unlike else ""
        what = f", ratio of ratios {1 + self.planted:g} planted" if self.planted else ", one truth"
        return f"{self.level.name}{then}{what}"


class Row(NamedTuple):
    """What pairs of a cell gave.

    Attributes
    ----------
    coverage
        Share of intervals that hold the truth.
    shown, family
        Share of pairs that show a difference, by one comparison and by any of seven; NaN of spreads.
    """

    cell: Cell
    n_runs: int
    coverage: float
    shown: float = math.nan
    family: float = math.nan

    @property
    def is_known_limit(self) -> bool:
        """Whether less is promised here."""
        return self.cell.unlike is not None and self.cell.first != self.cell.other

    @property
    def is_off(self) -> bool:
        """Whether intervals or verdicts are not as they are to be."""
        if self.is_known_limit:
            return False
        short = coverage_rule.is_short(self.coverage, self.n_runs)
        if not math.isnan(self.cell.spread) or self.cell.unlike:
            return short
        if self.cell.planted:
            return short or self.shown < FOUND - coverage_rule.error(FOUND, self.n_runs)
        return short or any(self._is_outside(share) for share in (self.shown, self.family))

    def _is_outside(self, share: float) -> bool:
        low, high = (coverage_rule.error(bound, self.n_runs) for bound in (FEWEST, MOST))
        return not FEWEST - low <= share <= MOST + high


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """List what is simulated."""
    for level in LEVELS[1:2] if quick else LEVELS:
        for first, other in SIZES[:2] if quick else SIZES:
            yield Cell(level, first, other)
    for level in LEVELS[2:3] if quick else (*LEVELS[1:], WILD):
        number = planned(level)
        yield Cell(level, number, number, planted=PLANTED)
    yield Cell(LEVELS[1], 3, 3, unlike=LEVELS[2])
    yield Cell(LEVELS[2], 2, 5, unlike=LEVELS[1])
    for runs, replicates in RUNS_OF_SPREAD[:1] if quick else RUNS_OF_SPREAD:
        for spread in (0.0, 1.0) if quick else (0.0, 0.5, 1.0, 2.0):
            yield Cell(LEVELS[1], runs, replicates, spread=spread)


def planned(level: Level) -> int:
    """Replicates that `diskbook plan` names for the planted ratio of ratios, from the level's own spread."""
    rng = np.random.default_rng(7)
    values = simulate.block_log_ratios(
        simulate.simulate(level, Design(40, BLOCKS), Truth(), 200, rng).log_latency
    )
    spread = Spread(level.disk, float(np.sqrt(values.var(axis=-1, ddof=1).mean())))
    return power.for_two_runs(spread.sd_replicate(BLOCKS), PLANTED, FOUND)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate pairs of runs, and judge each."""
    rng = np.random.default_rng([seed, cell.first, cell.other, round(1e4 * cell.level.disk)])
    if not math.isnan(cell.spread):
        return [_spread(cell, n_runs, rng)]
    alone = 1 if cell.planted or cell.unlike else HEADLINE + OTHERS
    differences = [_difference(cell, n_runs, rng) for _ in range(alone)]
    p = np.array([intervals.p_difference(item) for item in differences]).T
    truth = math.log1p(cell.planted)
    covers = (differences[0].low <= truth) & (truth <= differences[0].high)
    shown = float((p[:, 0] < verdicts.ALPHA).mean())
    headline = np.arange(alone) < HEADLINE
    families = [(ratio_of_ratios.adjusted(row, headline) < verdicts.ALPHA).any() for row in p]
    return [Row(cell, n_runs, float(covers.mean()), shown, float(np.mean(families)))]


def _difference(cell: Cell, n_runs: int, rng: np.random.Generator) -> Interval:
    """Ratios of ratios of simulated pairs."""
    overheads = Truth().overhead, math.expm1(math.log1p(Truth().overhead) + math.log1p(cell.planted))
    levels, sizes = (cell.level, cell.unlike or cell.level), (cell.first, cell.other)
    first, other = (
        intervals.over_replicates(
            simulate.block_log_ratios(
                simulate.simulate(level, Design(size, BLOCKS), Truth(overhead), n_runs, rng).log_latency
            )
        )
        for level, size, overhead in zip(levels, sizes, overheads, strict=True)
    )
    return ratio_of_ratios.of_kinds(first, other)


def _spread(cell: Cell, n_runs: int, rng: np.random.Generator) -> Row:
    """Intervals of the spread between runs; replicates have a standard deviation of 1 here."""
    shape = n_runs, cell.first, cell.other
    values = rng.normal(0, cell.spread, (*shape[:2], 1)) + rng.normal(0, 1, shape)
    df = np.full(cell.first, cell.other - 1.0)
    spreads = [
        ratio_of_ratios.between_runs(run.mean(axis=-1), run.var(axis=-1, ddof=1), df) for run in values
    ]
    covers = [item.low <= cell.spread <= item.high for item in spreads]
    return Row(cell, n_runs, float(np.mean(covers)))


def text(rows: list[Row]) -> str:
    """A line a condition and size."""
    lines = [
        "runs beside runs: coverage of nominal 95 % intervals in %; pairs that show a difference in %, by "
        "one comparison and by any of seven"
    ]
    for row in rows:
        cell = row.cell
        marks = " ?" * row.is_known_limit + " !" * row.is_off
        if not math.isnan(cell.spread):
            size = f"{cell.first} runs x {cell.other}"
            lines.append(f"  {cell.name:64}{size:>14}{100 * row.coverage:7.1f}{marks}")
            continue
        size = f"{cell.first}+{cell.other}"
        shares = f"{100 * row.shown:7.1f}{100 * row.family:7.1f}"
        lines.append(f"  {cell.name:64}{size:>14}{100 * row.coverage:7.1f}{shares}{marks}")
    return "\n".join(lines)
