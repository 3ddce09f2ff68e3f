"""Whether widths that are said with 80 % come true: a part of `make coverage`.

A report says how narrow an interval gets with more of the same, and `diskbook plan` how narrow a fresh run
will be, from a pilot. Runs are simulated, continued or measured again, and it is counted how often the
interval is as narrow as was said, or narrower: 75 to 90 % are to be.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checks import coverage_rule, simulate
from checks.simulate import LEVELS, Design, Level, Truth
from diskbook.stats import intervals, power

FEWEST, MOST = 0.75, 0.90
"""Share of runs in which an outlook is to come true."""
UNITS = (2, 3, 5, 10)
BLOCKS = 3
REPLICATES_MORE, BLOCKS_MORE, FRESH = "replicates more", "blocks more", "a fresh run, from a pilot"
KNOWN_LIMIT = "rare slow trials that did not occur yet are in no spread"
TITLE = (
    "outlooks: share of runs in which a width that is said with 80 % comes true "
    f"(?: known limit: {KNOWN_LIMIT})"
)


class Cell(NamedTuple):
    """A noise, what is said, replicates or blocks measured, and those to come."""

    level: Level
    claim: str
    n: int
    more: int

    @property
    def name(self) -> str:
        """Name of the noise."""
        return self.level.name

    @property
    def size(self) -> str:
        """What was measured, and what comes."""
        return f"{self.n} then {self.more}"


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """Share of runs in which what was said came true."""

    coverage: float
    limit = KNOWN_LIMIT

    @property
    def is_known_limit(self) -> bool:
        """Whether the noise has slow trials, and less is kept."""
        return self.cell.level.noisy > 0 and coverage_rule.is_less(self.coverage, FEWEST, self.n_runs)

    @property
    def is_off(self) -> bool:
        """Whether the promise holds in too few runs, or in too many."""
        is_short = coverage_rule.is_less(self.coverage, FEWEST, self.n_runs) and not self.is_known_limit
        return is_short or coverage_rule.is_more(self.coverage, MOST, self.n_runs)


def cells(*, quick: bool = False) -> Iterator[Cell]:
    for level in LEVELS[:2] if quick else LEVELS:
        for claim in (REPLICATES_MORE, BLOCKS_MORE, FRESH):
            for n in UNITS[1:2] if quick else UNITS:
                for more in (3, 10) if claim == FRESH else power.MORE:
                    yield Cell(level, claim, n, more)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate runs with what follows them, and hold the one against what the other says."""
    rng = np.random.default_rng([seed, cell.n, cell.more, round(1e4 * cell.level.disk)])
    replicates, blocks = cell.n + cell.more, BLOCKS
    if cell.claim == BLOCKS_MORE:
        replicates, blocks = 1, cell.n + cell.more
    values = simulate.block_log_ratios(
        simulate.simulate(cell.level, Design(replicates, blocks), Truth(), n_runs, rng).log_latency
    )
    units = values.mean(axis=1 if cell.claim == BLOCKS_MORE else 2)
    promised, shown = _said(cell, units[:, : cell.n]), units[:, cell.n if cell.claim == FRESH else 0 :]
    return [Row(cell, cell.claim, n_runs, float((_half(shown) <= promised).mean()))]


def _said(cell: Cell, units: np.ndarray) -> np.ndarray:
    """Half-widths that are said after the first units."""
    if cell.claim != FRESH:
        return np.asarray(power.narrowed(_half(units), cell.n, cell.more, cell.n - 1))
    of_one = power.half_width_of(1.0, cell.more, df_pilot=cell.n - 1)
    return np.asarray(math.log1p(of_one) * units.std(axis=1, ddof=1))


def _half(units: np.ndarray) -> np.ndarray:
    """Half-widths on the log scale."""
    shown = intervals.t_interval(units)
    return np.asarray((shown.high - shown.low) / 2)
