"""Coverage of knees: a part of `make coverage`.

Curves over depths are simulated with a known latency and cap, bent at their corner as real ones are, with
noise by block and by trial, and put through the functions that the analysis uses. Two blocks give no
interval. Where the disk itself is the limit its rate bends smoothly: a known limit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from diskbook.selftest import coverage_rule
from diskbook.stats import knee

DEPTHS = 8.0 * np.array([1, 2, 4, 6, 8, 10, 12, 14, 16, 18])
QUICK_DEPTHS = 8.0 * np.array([1, 4, 8, 12, 18])
LATENCY_MS = 4.03
CAP = 0.0005
"""Standard deviation of the log of a rate on a cap: real ones are flat."""
CORNER = 12.0
"""How sharply a rate bends: 6 % are lost where loop and cap cross (4 and 10 % were seen)."""
MOST_TOO_DEEP = 0.05
KNOWN_LIMIT = f"knees of smooth bends are up to {MOST_TOO_DEEP:.0%} too deep"
WIDEST = 0.10
"""Half-width that five blocks are to stay within, where blocks differ by `CALM` at most."""
CALM = 0.05


class Cell(NamedTuple):
    """A curve and its noise: cap in IOPS, blocks, standard deviations of logs of blocks and trials."""

    cap_iops: float
    blocks: int
    block: float
    trial: float
    smooth: bool = False
    few_depths: bool = False

    @property
    def knee(self) -> float:
        """The planted knee, in I/Os in flight."""
        return self.cap_iops * LATENCY_MS / 1000.0

    @property
    def is_due(self) -> bool:
        """Whether its interval is to be no wider than `WIDEST`."""
        return self.blocks >= 5 and math.hypot(self.block, self.trial) <= CALM


class Row(NamedTuple):
    """What intervals of a knee cover, their median half-width, share of runs without one, relative bias."""

    cell: Cell
    n_runs: int
    coverage: float
    half_width: float
    refused: float
    too_deep: float = 0.0

    @property
    def is_refused(self) -> bool:
        """Whether no run gave an interval, as it is to be with too few blocks."""
        return self.refused == 1.0

    @property
    def is_known_limit(self) -> bool:
        """Whether a smooth bend puts the knee too deep, by no more than is said."""
        return self.cell.smooth and 0 < self.too_deep <= MOST_TOO_DEEP

    @property
    def is_off(self) -> bool:
        """Whether coverage or width are not as they are to be, or too few blocks gave an interval."""
        if self.cell.smooth:
            return not self.is_known_limit
        if self.cell.blocks < knee.LEAST_BLOCKS:
            return not self.is_refused
        judged = self.n_runs * (1 - self.refused)
        wrong = coverage_rule.is_short(self.coverage, judged) or coverage_rule.is_wide(self.coverage, judged)
        return self.refused > 0 or wrong or (self.cell.is_due and self.half_width > WIDEST)


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """List what is simulated: caps of 20,000 IOPS and of 800 and 500 MB/s at 64K, 2 to 10 blocks."""
    noises = ((0.02, 0.01),) if quick else ((0.005, 0.01), (0.02, 0.01), (0.045, 0.02), (0.08, 0.03))
    caps = (20_400.0,) if quick else (20_400.0, 12_450.0, 7_780.0)
    for cap, blocks, noise in itertools.product(caps, (2, 5) if quick else (2, 3, 5, 10), noises):
        for few in (True,) if quick else (True, False):
            yield Cell(cap, blocks, *noise, few_depths=few)
    for cap in (7_780.0, 4_000.0):
        yield Cell(cap, 5, 0.02, 0.01, smooth=True)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate runs of one curve, and look for its knee in each."""
    rng = np.random.default_rng(
        [seed, round(cell.cap_iops), cell.blocks, round(1e4 * cell.block), cell.few_depths]
    )
    depths = QUICK_DEPTHS if cell.few_depths else DEPTHS
    shape = (n_runs, 1, cell.blocks, len(depths))
    noise = rng.normal(0, cell.block, (*shape[:3], 1)) + rng.normal(0, cell.trial, shape)
    latency_ms = LATENCY_MS * np.exp(noise)
    most = cell.cap_iops * np.exp(rng.normal(0, CAP, shape))
    iops = (_one_server if cell.smooth else _cut_off)(depths, latency_ms, most)
    on_cap = depths > 1.15 * cell.knee  # as labels have it: above 95 % of the limit, and flat
    read = knee.curves(depths, iops, 1000.0 * depths / iops, on_cap)
    bounds = knee.interval(read.log_knees)
    known = ~np.isnan(bounds.low)
    if not known.any():
        return [Row(cell, n_runs, math.nan, math.nan, 1.0)]
    truth = math.log(cell.knee)
    covers = (bounds.low[known] <= truth) & (truth <= bounds.high[known])
    half = np.exp((bounds.high - bounds.low)[known] / 2) - 1
    numbers = covers.mean(), np.median(half), 1 - known.mean(), np.expm1(bounds.mean[known].mean() - truth)
    return [Row(cell, n_runs, *map(float, numbers))]


def _cut_off(depths: np.ndarray, latency_ms: np.ndarray, cap_iops: np.ndarray) -> np.ndarray:
    """Rates of closed loops [..., depth] whose limit cuts them off; in IOPS."""
    rates: np.ndarray = cap_iops / (1 + (cap_iops * latency_ms / (1000.0 * depths)) ** CORNER) ** (1 / CORNER)
    return rates


def _one_server(depths: np.ndarray, latency_ms: np.ndarray, cap_iops: np.ndarray) -> np.ndarray:
    """Rates of closed loops [..., depth] that meet in one queue: exact mean value analysis; in IOPS.

    M. Reiser, S. S. Lavenberg, Mean-value analysis of closed multichain queuing networks, JACM 27, 1980.
    """
    serve_ms = 1000.0 / cap_iops
    waiting, rates = np.zeros_like(latency_ms), np.zeros_like(latency_ms)
    for in_flight in range(1, int(depths.max()) + 1):
        per_ms = in_flight / (latency_ms + serve_ms * waiting)
        waiting = per_ms * serve_ms * (1 + waiting)
        rates = np.where(depths == in_flight, 1000.0 * per_ms, rates)
    return rates


def text(rows: list[Row]) -> str:
    """A line a curve, noise and number of blocks."""
    lines = [
        "knees: coverage of nominal 95 % intervals in %, median half-width in %",
        f"  {'cap, IOPS':>10}{'depths':>8}{'blocks':>8}{'block sd':>10}{'trial sd':>10}",
    ]
    for row in rows:
        cell = row.cell
        depths = len(QUICK_DEPTHS if cell.few_depths else DEPTHS)
        place = f"{cell.cap_iops:10,.0f}{depths:8}{cell.blocks:8}{cell.block:10.1%}{cell.trial:10.1%}"
        numbers = "refused" if row.is_refused else f"{100 * row.coverage:.1f} ±{100 * row.half_width:.2f}"
        limit = f" ? smooth bend, {row.too_deep:+.1%}" * row.is_known_limit
        lines.append(f"  {place}  {numbers}{limit}" + " !" * row.is_off)
    return "\n".join(lines)
