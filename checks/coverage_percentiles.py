"""Coverage of intervals of percentile ratios: a part of `make coverage`.

The I/Os of each trial are drawn into fio's bins, by the chance of each bin, and read back by the functions
that the analysis uses. The arm's latencies are the base's times a planted ratio, and so is each of its
percentiles. Where bursts hit the arm alone, the ratio of a typical trial and that of all I/Os are others, and
unlike each other: the first is then taken from many simulated trials, and is what the interval must hold.
"""

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from checks import coverage_rule
from diskbook.stats import intervals
from diskbook.stats.percentiles import BINS_AN_OCTAVE, is_apart, of_trials, percentile

RATIO = 1.3
SPREAD = 0.15  # of the latencies of a trial, in logs
BURST, SECONDS = 3.0, 30  # a burst makes a second of a trial so many times as slow
IOS = {0.5: 3_000, 0.99: 3_000, 0.999: 12_000}
DESIGNS = ((1, 4), (3, 3), (5, 5))
BASE_NS = 1e6
LOW_NS, HIGH_NS = 2.0**18, 2.0**23
"""Octaves that hold all latencies, from a quarter of the median to twice that of a burst."""
TRIALS_AT_ONCE = 4_000
TRUTH_BLOCKS = 5_000
"""Blocks from which the ratio of a typical trial is taken, where it is not the planted one."""
CLAIM = "percentile ratio of a typical trial, these disks"
KNOWN_LIMIT = (
    "few blocks may all meet the bursts of the arm, or none may, and nothing shows it: measure 5 x 5 or more"
)
TITLE = (
    "percentile ratios of a typical trial, these disks: coverage, half-width, and share of runs in which the "
    f"ratio of all I/Os is another (?: known limit: {KNOWN_LIMIT})"
)


class Cell(NamedTuple):
    """One design under one noise.

    - `trial`, `bursts`: noise of a trial as a whole (in logs), and the share of its seconds that are slow.
    - `one_arm`: whether the arm alone has bursts; else both have.
    """

    quantile: float
    trial: float
    bursts: float
    replicates: int
    blocks: int
    one_arm: bool = False

    @property
    def name(self) -> str:
        """Name the percentile and its noise."""
        where = ", in one arm" * self.one_arm
        return f"p{100 * self.quantile:g}, trials ±{self.trial:.1%}, {self.bursts:.0%} of seconds slow{where}"

    @property
    def size(self) -> str:
        """Replicates and blocks."""
        return f"{self.replicates} x {self.blocks}"


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """Coverage of one cell, the median half-width of its intervals (relative), and the share of runs marked.

    `apart` are those whose ratios of a typical trial and of all I/Os disagree (`percentiles.is_apart`).
    """

    coverage: float
    half_width: float
    apart: float = 0.0
    limit = KNOWN_LIMIT

    @property
    def is_known_limit(self) -> bool:
        """Whether it covers too little because few blocks met bursts of one arm, or did not."""
        few = self.cell.replicates * self.cell.blocks < 25
        return self.cell.one_arm and few and coverage_rule.is_short(self.coverage, self.n_runs)

    @property
    def is_off(self) -> bool:
        """Whether it covers too little, or too much, beyond what the simulation may err."""
        coverage, n = self.coverage, self.n_runs
        short = coverage_rule.is_short(coverage, n) and not self.is_known_limit
        return short or coverage_rule.is_wide(coverage, n)


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """List all cells; the quick ones are those of few I/Os."""
    quantiles, designs = list(IOS)[: 2 if quick else None], DESIGNS[: 2 if quick else None]
    for quantile, trial, bursts, design in itertools.product(quantiles, (0.002, 0.02), (0.0, 0.05), designs):
        yield Cell(quantile, trial, bursts, *design)
    for quantile, design in itertools.product(quantiles, designs):
        yield Cell(quantile, 0.02, 0.05, *design, one_arm=True)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate runs of one cell; "these disks", whose truth is that of a typical trial."""
    rng = np.random.default_rng([seed, round(1e4 * cell.quantile), round(1e4 * cell.trial), cell.blocks])
    batch = max(1, TRIALS_AT_ONCE // (2 * cell.replicates * cell.blocks))
    sizes = [min(batch, n_runs - first) for first in range(0, n_runs, batch)]
    parts = [_log_ratios(cell, size, rng) for size in sizes]
    typical, all_ios = (np.concatenate(part) for part in zip(*parts, strict=True))
    truth = _truth(cell._replace(replicates=1, blocks=TRUTH_BLOCKS)) if cell.one_arm else math.log(RATIO)
    interval = intervals.within_replicates(typical)
    apart = [is_apart(*pair) for pair in np.exp(np.column_stack([interval.mean, all_ios])).tolist()]
    return [Row(cell, CLAIM, n_runs, *coverage_rule.covered(interval, truth), float(np.mean(apart)))]


@functools.cache
def _truth(cell: Cell) -> float:
    """Log ratio of a typical trial of one long run."""
    return float(_log_ratios(cell, 1, np.random.default_rng(1))[0].mean())


def _log_ratios(cell: Cell, n_runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Log ratios of percentiles: of the trials of each block [run, replicate, block], of all I/Os [run]."""
    shape = (n_runs, cell.replicates, cell.blocks, 2)
    factor = np.exp(rng.normal(0, cell.trial, shape)) * np.array([1.0, RATIO])
    bursts = np.array([0.0 if cell.one_arm else cell.bursts, cell.bursts])
    slow = rng.binomial(SECONDS, bursts, shape) * (IOS[cell.quantile] // SECONDS)
    lat_ns, counts = _histograms(factor.ravel(), IOS[cell.quantile] - slow.ravel(), slow.ravel(), rng)
    trial, place = np.nonzero(counts)
    columns = {"trial": trial, "lat_ns": lat_ns[place], "count": counts[trial, place], "direction": "read"}
    of_trial = np.log(of_trials(pd.DataFrame(columns), cell.quantile).to_numpy().reshape(shape))
    of_arm = counts.reshape(n_runs, -1, 2, len(lat_ns)).sum(axis=1)
    all_ios = np.log([[percentile(lat_ns, bins, cell.quantile) for bins in of_run] for of_run in of_arm])
    return of_trial[..., 1] - of_trial[..., 0], all_ios[:, 1] - all_ios[:, 0]


def _histograms(
    factor: np.ndarray, fast: np.ndarray, slow: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Middles of fio's bins, and for each trial so many fast and slow I/Os, drawn by bin, [trial, bin]."""
    octaves = 2.0 ** np.arange(math.log2(LOW_NS), math.log2(HIGH_NS))
    edges = np.append((octaves[:, None] * (1 + np.arange(BINS_AN_OCTAVE) / BINS_AN_OCTAVE)).ravel(), HIGH_NS)
    counts = rng.multinomial(fast, _chances(edges, BASE_NS * factor))
    counts += rng.multinomial(slow, _chances(edges, BASE_NS * BURST * factor))
    return (edges[:-1] + edges[1:]) / 2, counts


def _chances(edges: np.ndarray, median_ns: np.ndarray) -> np.ndarray:
    """Chance of each bin, [trial, bin], for latencies around a median; the outermost bins take the rest."""
    below = special.ndtr((np.log(edges) - np.log(median_ns)[:, None]) / SPREAD)
    below[:, 0], below[:, -1] = 0.0, 1.0
    chances: np.ndarray = np.diff(below)
    return chances
