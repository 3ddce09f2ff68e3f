"""Coverage of knees: a part of `make coverage`.

Curves over depths are simulated with a known latency and cap, bent at their corner as real ones are, with
noise by block and by trial, and put through the functions that the analysis uses. Two blocks give no
interval. Where the disk itself is the limit its rate bends smoothly: a known limit.

Trials of volumes are played I/O by I/O: without a ramp, counted until their time is up, over disks that
chance loads unevenly.
"""

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checks import coverage_rule
from diskbook.stats import knee
from diskbook.stats.intervals import Interval
from diskbook_emulator.shm import CATCH_UP_NS
from diskbook_emulator.volumes import expected_write_ms

DEPTHS = 8.0 * np.array([1, 2, 4, 6, 8, 10, 12, 14, 16, 18])
QUICK_DEPTHS = 8.0 * np.array([1, 4, 8, 12, 18])
LATENCY_MS = 4.03
CAP = 0.0005
"""Standard deviation of the log of a rate on a cap: real ones are flat."""
CORNER = 12.0
"""How sharply a rate bends: 6 % are lost where loop and cap cross (4 and 10 % were seen)."""
RUNTIME_S = 1.0
SIGMA = 0.2
PLAYED = 64  # trials of a volume at each depth
POOLS = ((10_200.0, 2, 3), (20_400.0, 4, 1), (20_400.0, 4, 3))
"""Volumes: cap in IOPS, disks that share it, copies that a write waits for."""
MOST_TOO_DEEP = 0.05
KNOWN_LIMIT = f"knees of smooth bends are up to {MOST_TOO_DEEP:.0%} too deep"
WIDEST = 0.10
"""Half-width that five blocks are to stay within, where blocks differ by `CALM` at most."""
CALM = 0.05
TITLE = (
    "knees: coverage of nominal 95 % intervals, median half-width, runs without one, relative bias; NaN "
    f"where all are refused (?: known limit: {KNOWN_LIMIT})"
)


class Cell(NamedTuple):
    """A curve and its noise: cap in IOPS, blocks, standard deviations of logs of blocks and trials."""

    cap_iops: float
    blocks: int
    block: float
    trial: float
    smooth: bool = False
    few_depths: bool = False
    disks: int = 1
    copies: int = 1

    @property
    def depths(self) -> np.ndarray:
        """I/Os in flight of each point of the curve."""
        return QUICK_DEPTHS if self.few_depths else DEPTHS

    @property
    def latency_ms(self) -> float:
        """Mean latency of an I/O that does not wait: that of its slowest copy."""
        return expected_write_ms([LATENCY_MS] * self.copies, SIGMA, [0.0] * self.copies)

    @property
    def knee(self) -> float:
        """The planted knee, in I/Os in flight."""
        return self.cap_iops * self.latency_ms / 1000.0

    @property
    def name(self) -> str:
        """Blocks, noise and what bends the curve, in words."""
        bend = ", smooth bend" * self.smooth + ", volume without a ramp" * (self.disks > 1)
        return f"{self.blocks} blocks ±{self.block:.1%}, trials ±{self.trial:.1%}{bend}"

    @property
    def size(self) -> str:
        """Cap, number of depths, disks and copies, in words."""
        return f"cap {self.cap_iops:,.0f} IOPS{', few depths' * self.few_depths}{self.pool}"

    @property
    def pool(self) -> str:
        """Disks and copies of a volume, in words; empty for a single disk."""
        return f", {self.disks} disks, copies {self.copies}" * (self.disks > 1)

    @property
    def is_due(self) -> bool:
        """Whether its interval is to be no wider than `WIDEST`."""
        return self.blocks >= 5 and math.hypot(self.block, self.trial) <= CALM


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """What intervals of a knee cover, their median half-width, share of runs without one, relative bias."""

    coverage: float
    half_width: float
    refused: float
    too_deep: float = 0.0
    limit = KNOWN_LIMIT

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
        # What a pool may lose is allowed for in full, and one that loses less is covered more often.
        is_wide = self.cell.disks == 1 and coverage_rule.is_wide(self.coverage, judged)
        wrong = coverage_rule.is_short(self.coverage, judged) or is_wide
        return self.refused > 0 or wrong or (self.cell.is_due and self.half_width > WIDEST)


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """List what is simulated: caps of 20,000 IOPS and of 800 and 500 MB/s at 64K, 2 to 10 blocks."""
    noises = ((0.02, 0.01),) if quick else ((0.005, 0.01), (0.02, 0.01), (0.045, 0.02), (0.08, 0.03))
    caps = (20_400.0,) if quick else (20_400.0, 12_450.0, 7_780.0)
    for cap, blocks, noise in itertools.product(caps, (2, 5) if quick else (2, 3, 5, 10), noises):
        for few in (True,) if quick else (True, False):
            yield Cell(cap, blocks, *noise, few_depths=few)
    volumes = (POOLS[:1], (5,), noises) if quick else (POOLS, (3, 5, 10), noises[:2])
    for (cap, disks, copies), blocks, (block, trial) in itertools.product(*volumes):
        yield Cell(cap, blocks, block, trial, few_depths=quick, disks=disks, copies=copies)
    for cap in (7_780.0, 4_000.0):
        yield Cell(cap, 5, 0.02, 0.01, smooth=True)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate runs of one curve, and look for its knee in each."""
    rng = np.random.default_rng(
        [seed, round(cell.cap_iops), cell.blocks, round(1e4 * cell.block), cell.few_depths]
    )
    depths = cell.depths
    shape = (n_runs, 1, cell.blocks, len(depths))
    noise = rng.normal(0, cell.block, (*shape[:3], 1)) + rng.normal(0, cell.trial, shape)
    on_cap = depths > 1.15 * cell.knee  # as labels have it: above 95 % of the limit, and flat
    if cell.disks > 1:
        read = knee.curves(depths, *_pooled(cell, noise, rng), on_cap, 1 / (1000.0 * RUNTIME_S))
        bounds = knee.of_pool(knee.interval(read.log_knees))
    else:
        latency_ms = LATENCY_MS * np.exp(noise)
        most = cell.cap_iops * np.exp(rng.normal(0, CAP, shape))
        iops = (_one_server if cell.smooth else _cut_off)(depths, latency_ms, most)
        bounds = knee.interval(knee.curves(depths, iops, 1000.0 * depths / iops, on_cap).log_knees)
    return [_row(cell, n_runs, bounds)]


def _row(cell: Cell, n_runs: int, bounds: Interval) -> Row:
    """Compare intervals of the log of the knee with the planted one."""
    known, truth = ~np.isnan(bounds.low), math.log(cell.knee)
    numbers = coverage_rule.covered(bounds, truth, known)
    if not known.any():
        return Row(cell, "knee, these disks", n_runs, *numbers, 1.0)
    too_deep = float(np.expm1(bounds.mean[known].mean() - truth))
    return Row(cell, "knee, these disks", n_runs, *numbers, float(1 - known.mean()), too_deep)


def _pooled(cell: Cell, noise: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rates (IOPS) and latencies (ms) of trials on a volume whose latency is off by `noise` (logs)."""
    rates, latencies = trials(cell.cap_iops, cell.disks, cell.copies, cell.few_depths)
    drawn, at = rng.integers(PLAYED, size=noise.shape), np.arange(len(cell.depths))
    # Slower disks bend the curve at a greater depth: it is read where as large a part of its knee is.
    depth, known = np.log(cell.depths) - noise, np.log(cell.depths)
    per_io = [np.interp(depth, known, np.log(part.mean(axis=0) / cell.depths)) for part in (rates, latencies)]
    iops = np.exp(depth + per_io[0]) * (rates / rates.mean(axis=0))[drawn, at]
    latency_ms = np.exp(depth + per_io[1] + noise) * (latencies / latencies.mean(axis=0))[drawn, at]
    return iops, latency_ms


@functools.cache
def trials(cap_iops: float, disks: int, copies: int, few_depths: bool) -> tuple[np.ndarray, np.ndarray]:
    """Play trials of a volume: rates (IOPS) and mean latencies (ms), [trial, depth]."""
    depths = (QUICK_DEPTHS if few_depths else DEPTHS).astype(int)
    played = [play(depth, cap_iops, disks, copies) for depth in depths]
    rates, latencies = (np.stack(part, axis=1) for part in zip(*played, strict=True))
    return rates, latencies


def play(
    depth: int, cap_iops: float, disks: int, copies: int, ramp_s: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Play trials of a closed loop on disks that share a cap; each I/O goes to any of them, once per copy.

    Disks are the emulator's: they make up for what they did not use for a moment. What ends from the end of
    the ramp on counts, until the time is up.

    Returns rates in IOPS and mean latencies in ms, one per trial.
    """
    rng, rows, each = np.random.default_rng([depth, disks, copies]), np.arange(PLAYED), np.arange(copies)
    credit_s = CATCH_UP_NS / 1e9
    free = np.full((PLAYED, copies, disks), credit_s)  # when a disk will have served all that it took
    ends, began = np.zeros((PLAYED, depth)), np.zeros((PLAYED, depth))
    count, waited = np.zeros(PLAYED), np.zeros(PLAYED)
    while True:
        first = ends.argmin(axis=1)
        now = ends[rows, first]
        if now.min() > ramp_s + RUNTIME_S:
            return count / RUNTIME_S, 1000.0 * waited / count
        counts = (now > ramp_s) & (now <= ramp_s + RUNTIME_S)
        count, waited = count + counts, waited + counts * (now - began[rows, first])
        place = (rows[:, None], each, rng.integers(disks, size=(PLAYED, copies)))
        start = np.maximum(free[place], now[:, None])
        free[place] = start + disks / cap_iops
        latency_s = LATENCY_MS / 1000.0 * rng.lognormal(-(SIGMA**2) / 2, SIGMA, (PLAYED, copies))
        began[rows, first] = now
        ends[rows, first] = (np.maximum(now[:, None], start - credit_s) + latency_s).max(axis=1)


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
