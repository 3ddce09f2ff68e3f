"""Coverage of intervals of percentile ratios: a part of `make coverage`.

The I/Os of each trial are drawn into fio's bins, by the chance of each bin, and read back by the functions
that the analysis uses. The arm's latencies are the base's times a planted ratio, and so is each of its
percentiles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from diskbook.selftest import coverage_rule
from diskbook.stats import intervals
from diskbook.stats.percentiles import BINS_AN_OCTAVE, of_trials

RATIO = 1.3
SPREAD = 0.15  # of the latencies of a trial, in logs
BURST, SECONDS = 3.0, 30  # a burst makes a second of a trial so many times as slow
IOS = {0.5: 3_000, 0.99: 3_000, 0.999: 12_000}
DESIGNS = ((1, 4), (3, 3), (5, 5))
BASE_NS = 1e6
LOW_NS, HIGH_NS = 2.0**18, 2.0**23
"""Octaves that hold all latencies, from a quarter of the median to twice that of a burst."""
TRIALS_AT_ONCE = 4_000


class Cell(NamedTuple):
    """One design under one noise.

    Attributes
    ----------
    trial, bursts
        Noise of a trial as a whole (in logs), and the share of its seconds that are slow.
    """

    quantile: float
    trial: float
    bursts: float
    replicates: int
    blocks: int


class Row(NamedTuple):
    """Coverage of one cell, and the median half-width of its intervals (relative)."""

    cell: Cell
    n_runs: int
    coverage: float
    half_width: float

    @property
    def is_off(self) -> bool:
        """Whether it covers too little, or too much, beyond what the simulation may err."""
        coverage, n = self.coverage, self.n_runs
        return coverage_rule.is_short(coverage, n) or coverage_rule.is_wide(coverage, n)


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """List all cells; the quick ones are those of few I/Os."""
    quantiles, designs = list(IOS)[: 2 if quick else None], DESIGNS[: 2 if quick else None]
    for quantile, trial, bursts, design in itertools.product(quantiles, (0.002, 0.02), (0.0, 0.05), designs):
        yield Cell(quantile, trial, bursts, *design)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate runs of one cell; "these disks", whose truth is the planted ratio."""
    rng = np.random.default_rng([seed, round(1e4 * cell.quantile), round(1e4 * cell.trial), cell.blocks])
    batch = max(1, TRIALS_AT_ONCE // (2 * cell.replicates * cell.blocks))
    sizes = [min(batch, n_runs - first) for first in range(0, n_runs, batch)]
    logs = np.log(np.concatenate([_percentiles(cell, size, rng) for size in sizes]))
    interval = intervals.within_replicates(logs[..., 1] - logs[..., 0])
    covers = (interval.low <= math.log(RATIO)) & (math.log(RATIO) <= interval.high)
    half = np.expm1((interval.high - interval.low) / 2)
    return [Row(cell, n_runs, float(covers.mean()), float(np.median(half)))]


def _percentiles(cell: Cell, n_runs: int, rng: np.random.Generator) -> np.ndarray:
    """Percentile of every trial, [run, replicate, block, arm]."""
    shape = (n_runs, cell.replicates, cell.blocks, 2)
    factor = np.exp(rng.normal(0, cell.trial, shape)) * np.array([1.0, RATIO])
    slow = rng.binomial(SECONDS, cell.bursts, shape) * (IOS[cell.quantile] // SECONDS)
    bins = _bins(factor.ravel(), IOS[cell.quantile] - slow.ravel(), slow.ravel(), rng)
    table: np.ndarray = of_trials(bins, cell.quantile).to_numpy().reshape(shape)
    return table


def _bins(factor: np.ndarray, fast: np.ndarray, slow: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Histograms of trials in fio's bins, told by their middle: so many fast and slow I/Os, drawn by bin."""
    octaves = 2.0 ** np.arange(math.log2(LOW_NS), math.log2(HIGH_NS))
    edges = np.append((octaves[:, None] * (1 + np.arange(BINS_AN_OCTAVE) / BINS_AN_OCTAVE)).ravel(), HIGH_NS)
    counts = rng.multinomial(fast, _chances(edges, BASE_NS * factor))
    counts += rng.multinomial(slow, _chances(edges, BASE_NS * BURST * factor))
    trial, place = np.nonzero(counts)
    middle = (edges[:-1] + edges[1:]) / 2
    columns = {"trial": trial, "lat_ns": middle[place], "count": counts[trial, place], "direction": "read"}
    return pd.DataFrame(columns)


def _chances(edges: np.ndarray, median_ns: np.ndarray) -> np.ndarray:
    """Chance of each bin, [trial, bin], for latencies around a median; the outermost bins take the rest."""
    below = special.ndtr((np.log(edges) - np.log(median_ns)[:, None]) / SPREAD)
    below[:, 0], below[:, -1] = 0.0, 1.0
    chances: np.ndarray = np.diff(below)
    return chances


def _text(row: Row) -> str:
    design = f"{row.cell.replicates} x {row.cell.blocks}"
    return f"{design}: {100 * row.coverage:5.1f} ±{100 * row.half_width:.1f}" + " !" * row.is_off


def text(rows: list[Row]) -> str:
    """A line a noise and quantile, designs across."""
    lines = ["percentile ratios, these disks: coverage and half-width in %, by replicates x blocks"]
    for key, group in itertools.groupby(rows, key=lambda row: row.cell[:3]):
        quantile, trial, bursts = key
        across = "  ".join(map(_text, group))
        lines.append(f"  p{100 * quantile:g}, trials ±{trial:.1%}, {bursts:.0%} of seconds slow: {across}")
    return "\n".join(lines)
