"""The recipe of the emulator's noise: from levels and a random generator to numbers. Pure.

The emulator draws with it for each entity by itself (`model.py`), the check of the intervals for many runs at
once (`checks.coverage_noise`); so both play the same noise. Values are logs of factors, unless
said otherwise.
"""

import math
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from diskbook_emulator.profile import Noise, Wander

TABLE_SECONDS = 3600  # the noise of seconds repeats after an hour
MONTH_H = 730.0
SLOW_RUN_FROM = 1.1
SLOW_RUN_TAIL = math.log(10) / math.log(5)
"""Of the slow runs of Azure VM Noise 2024 one in ten is slower by 50 % or more (a Pareto tail)."""

Array = NDArray[np.float64]


def seconds(noise: Noise, random: np.random.Generator) -> Array:
    """Noise of every second of a machine or disk: blocks, seconds, drift added; shape (TABLE_SECONDS,)."""
    count = math.ceil(TABLE_SECONDS / noise.block_s) + 1
    heights = knots(noise, random, (count,))
    heights[-1] = heights[0]  # the table repeats
    every = np.arange(TABLE_SECONDS)
    blocks = np.interp(every, np.linspace(0, TABLE_SECONDS, count), heights)
    return blocks + _autoregressive(noise, random) + wave(noise, every, random.uniform())


def knots(noise: Noise, random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Values `block_s` apart; straight lines join them, so that no trial sees a jump.

    The lines have 2/3 of the variance of the knots.
    """
    return random.normal(0.0, noise.block * math.sqrt(1.5), shape)


def _autoregressive(noise: Noise, random: np.random.Generator) -> Array:
    shocks = random.normal(0.0, noise.second, TABLE_SECONDS)
    shocks[1:] *= math.sqrt(1.0 - noise.phi**2)  # the first is a draw from the stationary distribution
    return np.array(list(accumulate(shocks, lambda before, shock: noise.phi * before + shock)))


def wave(noise: Noise, at_s: NDArray[np.number], start: float | Array) -> Array:
    """Drift: one slow wave an hour with this standard deviation; `start` in 0 to 1 is where it begins."""
    angle = 2 * np.pi * (at_s / TABLE_SECONDS + start)
    drift: Array = noise.drift * math.sqrt(2.0) * np.sin(angle)
    return drift


def moves(noise: Noise, share: float, random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Slow moves at the beginning of each block, along the last axis: wander, and shifts of level.

    - `noise`: levels, and the hours between blocks.
    - `share`: share of the variance of the wander, and of the rate of shifts, that is meant.
    - `random`: as many blocks more draw the same ones first, in one dimension.
    - `shape`: its last axis is blocks.
    """
    place = noise.wander, noise.hours_between_blocks
    normals, chances = random.spawn(2)
    wander = _ornstein_uhlenbeck(*place, normals.normal(size=(*shape, len(noise.wander))))
    total: Array = math.sqrt(share) * wander
    rate = share * noise.shifts_a_month / MONTH_H
    up = np.where(chances.random(shape[:-1]) < 0.5, 1.0, -1.0)[..., None]
    counts = chances.poisson(rate * noise.hours_between_blocks, shape)
    counts[..., 0] = 0
    return total + noise.shift * up * (counts.cumsum(axis=-1) % 2)


def _ornstein_uhlenbeck(processes: tuple[Wander, ...], hours: float, shocks: Array) -> Array:
    """Sum of processes at steps of so many hours; `shocks` are standard normal, [..., step, process].

    Exact at the steps: x' = x r + s sqrt(1 - r^2) z with r = exp(-hours / time constant), stationary from the
    first (D. T. Gillespie, Exact numerical simulation of the Ornstein-Uhlenbeck process, Phys. Rev. E 54,
    2084, 1996).
    """
    keep = np.exp([-hours / process.hours for process in processes])
    values = shocks * np.array([process.sd for process in processes])
    values[..., 1:, :] *= np.sqrt(1 - keep**2)
    for step in range(1, values.shape[-2]):
        values[..., step, :] += keep * values[..., step - 1, :]
    total: Array = values.sum(axis=-1)
    return total


def slow(noise: Noise, share: float, chances: Array) -> Array:
    """How much slower each of successive fresh machines, or disks, is: nothing for most.

    A Markov chain along the last axis, whose share of slow ones is the same from the first on.

    - `noise`: share of slow pairs, the share after a slow one, and the factor on their IOPS.
    - `share`: share of the slow pairs that is meant: the machine's, or the disk's.
    - `chances`: uniform in 0 to 1.
    """
    rate = share * noise.slow_pairs
    after_slow = max(rate, noise.slow_pair_next)
    after_usual = rate * (1 - after_slow) / (1 - rate) if rate < 1 else 1.0
    slow = chances < rate
    for place in range(1, chances.shape[-1]):
        limit = np.where(slow[..., place - 1], after_slow, after_usual)
        slow[..., place] = chances[..., place] < limit
    return np.where(slow, -math.log(noise.slow_pair_factor), 0.0)


def slow_runs(noise: Noise, random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """How much slower each of so many trials is by itself: nothing for most, 10 % and more for a few."""
    slow, tail = random.random((2, *shape))
    excess = (SLOW_RUN_FROM - 1) * (1 - tail) ** (-1 / SLOW_RUN_TAIL)
    factor = np.minimum(1 + excess, noise.slow_run_up_to)
    return np.where(slow < noise.slow_runs, np.log(factor), 0.0)


def credit_share(noise: Noise, random: np.random.Generator) -> float:
    """Share of its burst credit that a fresh machine begins with."""
    chance, left = random.random(2)
    if chance < noise.credit_empty:
        return 0.0
    return float(left) if chance < noise.credit_empty + noise.credit_partial else 1.0
