"""Runs that stop at a planned look: a part of `make coverage`.

Each run looks at its headline comparisons after so many blocks, and stops once all show a difference. Judged
are false alarms at any look, and the intervals of the look at which it stopped.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from checks import coverage_rule
from diskbook.stats import intervals, ratios
from diskbook.stats.gates.plan import constant_level, over_all_looks

LOOKS = ((2, 3, 4, 5), (5, 10), (5, 10, 20, 40), (9, 18, 27, 36))
EFFECTS = (0.0, 0.5, 1.0)
"""True log ratios, in standard deviations of a block's."""
MOST_FALSE, LEAST_COVERAGE = 0.06, 0.94
TITLE = (
    "planned looks: shares of runs with a false alarm at any look, repeated intervals that cover, naive ones "
    "beside them, how many times as wide as these they are, and blocks until the run stopped"
)


class Cell(NamedTuple):
    """Blocks at each look, number of headline comparisons, and their true effect."""

    looks: tuple[int, ...]
    headlines: int
    effect: float

    @property
    def name(self) -> str:
        """After how many blocks it looks, and what there is to find."""
        return f"looks after {', '.join(map(str, self.looks))} blocks, effect {self.effect:g} s.d."

    @property
    def size(self) -> str:
        """How many comparisons are judged together."""
        return f"{self.headlines} of the headline"


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """What the runs of a cell gave; `false` is NaN where there is a difference to find."""

    false: float
    coverage: float
    naive_covers: float
    width_ratio: float
    blocks: float

    @property
    def is_off(self) -> bool:
        """Whether runs raise false alarms, or repeated intervals cover too little."""
        n = self.n_runs * self.cell.headlines
        is_often = coverage_rule.is_more(self.false, MOST_FALSE, self.n_runs)
        return is_often or coverage_rule.is_less(self.coverage, LEAST_COVERAGE, n)


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """Designs that are simulated."""
    yield from map(Cell._make, product(LOOKS[2:3] if quick else LOOKS, (1, 5), EFFECTS))


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate runs, and stop each at its first look at which every comparison shows a difference."""
    rng = np.random.default_rng([seed, *cell.looks, cell.headlines, round(10 * cell.effect)])
    values = rng.normal(cell.effect, 1.0, (n_runs, cell.headlines, cell.looks[-1]))
    level = 1 - constant_level(cell.looks)
    stopped, alarmed = np.zeros((2, n_runs), dtype=bool)
    covers, naive_covers, widths = np.zeros((3, n_runs, cell.headlines))
    blocks = np.zeros(n_runs)
    for look in cell.looks:
        own, naive = (intervals.over_blocks(values[..., :look], each) for each in (level, intervals.LEVEL))
        p = over_all_looks(intervals.p_difference(own), cell.looks)
        shown = np.apply_along_axis(ratios.holm, -1, p) < ratios.ALPHA
        alarmed |= shown.any(axis=-1)
        stops = ~stopped & (shown.all(axis=-1) | (look == cell.looks[-1]))
        for held, interval in ((covers, own), (naive_covers, naive)):
            held[stops] = ((interval.low <= cell.effect) & (cell.effect <= interval.high))[stops]
        widths[stops] = ((own.high - own.low) / (naive.high - naive.low))[stops]
        blocks[stops] = look
        stopped |= stops
    false = math.nan if cell.effect else float(alarmed.mean())
    shares = (float(each.mean()) for each in (covers, naive_covers, widths, blocks / cell.looks[-1]))
    return [Row(cell, "ratio at the look that stops", n_runs, false, *shares)]
