"""Coverage of intervals of percentile ratios: a part of `make coverage`.

Trials are simulated I/O by I/O, put into fio's bins, and read back by the functions that the analysis uses.
The arm's latencies are the base's times a planted ratio, and so is each of its percentiles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from diskbook.stats import intervals
from diskbook.stats.percentiles import BINS_AN_OCTAVE, of_trials

LOWEST = 0.93
SURE = 3.0  # standard errors of the simulation by which a cell must fall short to fail
RATIO = 1.3
SPREAD = 0.15  # of the latencies of a trial, in logs
BURST, SECONDS = 3.0, 30  # a burst makes a second of a trial so many times as slow
IOS = {0.5: 3_000, 0.99: 3_000, 0.999: 12_000}
DESIGNS = ((1, 4), (3, 3), (5, 5))
BASE_NS = 1e6


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
    def is_short(self) -> bool:
        """Whether it covers too little, beyond what the simulation may err."""
        return self.coverage < LOWEST - SURE * math.sqrt(LOWEST * (1 - LOWEST) / self.n_runs)


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """List all cells; the quick ones are those of few I/Os."""
    quantiles, designs = list(IOS)[: 2 if quick else None], DESIGNS[: 2 if quick else None]
    for quantile, trial, bursts, design in itertools.product(quantiles, (0.002, 0.02), (0.0, 0.05), designs):
        yield Cell(quantile, trial, bursts, *design)


def measure(cell: Cell, n_runs: int, seed: int) -> Row:
    """Simulate runs of one cell; "these disks", whose truth is the planted ratio."""
    logs = np.log([_percentiles(cell, np.random.default_rng([seed, run])) for run in range(n_runs)])
    interval = intervals.within_replicates(logs[..., 1] - logs[..., 0])
    covers = (interval.low <= math.log(RATIO)) & (math.log(RATIO) <= interval.high)
    half = np.expm1((interval.high - interval.low) / 2)
    return Row(cell, n_runs, float(covers.mean()), float(np.median(half)))


def _percentiles(cell: Cell, rng: np.random.Generator) -> np.ndarray:
    """Percentile of every trial of one run, [replicate, block, arm]."""
    shape, ios = (cell.replicates, cell.blocks, 2), IOS[cell.quantile]
    slow = np.repeat(rng.random((*shape, SECONDS)) < cell.bursts, ios // SECONDS, axis=-1)
    values = rng.lognormal(math.log(BASE_NS), SPREAD, (*shape, ios)) * np.where(slow, BURST, 1.0)
    values *= np.exp(rng.normal(0, cell.trial, (*shape, 1)))
    values[..., 1, :] *= RATIO
    table: np.ndarray = of_trials(_bins(values.reshape(-1, ios)), cell.quantile).to_numpy().reshape(shape)
    return table


def _bins(values_ns: np.ndarray) -> pd.DataFrame:
    """Histograms of trials in fio's bins, told by their middle; trials are numbered."""
    width = np.exp2(np.floor(np.log2(values_ns))) / BINS_AN_OCTAVE
    middle = np.floor(values_ns / width) * width + width / 2
    trial = np.repeat(np.arange(len(values_ns)), values_ns.shape[1])
    counted = pd.DataFrame({"trial": trial, "lat_ns": middle.ravel()}).value_counts(sort=False)
    return counted.rename("count").reset_index().assign(direction="read")


def _text(row: Row) -> str:
    design = f"{row.cell.replicates} x {row.cell.blocks}"
    return f"{design}: {100 * row.coverage:5.1f} ±{100 * row.half_width:.1f}" + " !" * row.is_short


def text(rows: list[Row]) -> str:
    """A line a noise and quantile, designs across."""
    lines = ["percentile ratios, these disks: coverage and half-width in %, by replicates x blocks"]
    for key, group in itertools.groupby(rows, key=lambda row: row.cell[:3]):
        quantile, trial, bursts = key
        across = "  ".join(map(_text, group))
        lines.append(f"  p{100 * quantile:g}, trials ±{trial:.1%}, {bursts:.0%} of seconds slow: {across}")
    return "\n".join(lines)
