"""Outliers: runs far out. Symmetric noise cancels in a ratio, outliers in one arm only do not.

Also how far trials that were lost or repeated, by arm, may have moved a ratio.

Who loses the slow trials of one arm, or repeats them until they are fast, makes that arm faster than it is,
and no data left shows by how much. The bound here is in the manner of Manski (1990, "Nonparametric bounds
on treatment effects"; Horowitz and Manski 2000 for missing outcomes): every trial that was lost or repeated
is taken to have been as far out as the farthest trial that was kept. What both arms lost alike cancels in
their ratio, so that the difference of the shares counts, and only where one arm lost half as much again as
the other.

Simulated (noise A, B and D, 1,000 runs a design): with the slowest 10 % of one arm lost, or the slowest 16
% repeated, intervals cover down to 1 %; those that are flagged here cover 93 to 100 % once the bound is
added. With one trial in ten lost at random in both arms the shift is large beside the interval in 25 to 75
% of runs of 1 x 3 to 3 x 5 and in 20 to 45 % of those of 5 x 10 and 10 x 10. Blind to a loss that did not
happen to occur: the runs that are not flagged, in small designs, cover 85 to 97 %.
"""

from typing import NamedTuple

import numpy as np

from diskbook.design.grid import mean_over_repeats

OUTLIER_SD = 10.0
"""Robust standard deviations beyond which a run counts as noise of another kind."""
MIN_REPLICATES, MIN_BLOCKS = 5, 10
"""With this much, intervals that saw such runs cover 92 % or more, up to 3 times slower ones too.

Those of runs that met none by chance do not, so that over all 5 x 10 cover 68 to 91 % (these disks; 86 to
93 % disks like these) where 1 to 5 % of one arm's runs are up to 3 times slower, and 86 to 95 % where they
are up to 1.5 times slower; 10 x 10 cover 67 to 95 % (3,000 simulated runs a design).
"""
MIN_RUNS = 6
_FLOOR = 1e-4


class OutlierCounts(NamedTuple):
    """Number of outliers, of the arm and of the base arm; shape [...] each."""

    arm: np.ndarray
    base: np.ndarray

    @property
    def one_sided(self) -> np.ndarray:
        """Whether only one of the arms has any."""
        one_sided: np.ndarray = (self.arm > 0) != (self.base > 0)
        return one_sided


def count(arm: np.ndarray, base: np.ndarray) -> OutlierCounts:
    """Count the runs of each arm that lie beyond 10 robust standard deviations.

    Each run is compared with the median of its own arm and replicate, since machines and disks differ; the
    spread is 1.4826 x the median absolute deviation over both arms (floor 0.01 %), which a few outliers do
    not move. The nearest run of each replicate is left out of it: of three runs one is the median itself, so
    that plain normal noise would flag 5 % of runs of 3 x 3 (now none of 4,000 simulated). A rule of thumb:
    blind to noise that did not happen to occur, and to noise in most runs.

    - `arm`, `base`: log metric of every run, shape [..., replicate, block, repeat], NaN where there is none.
    """
    if min(*arm.shape[-3:], arm.shape[-2] * arm.shape[-1] - 1) < 1:  # no run, or one in each replicate
        return OutlierCounts(*np.zeros((2, *arm.shape[:-3]), dtype=int))
    distances = [_from_median(values) for values in (arm, base)]
    farther = np.concatenate([np.sort(part, axis=-1)[..., 1:] for part in distances], axis=-1)
    spread = np.fmax(1.4826 * median(farther.reshape(*farther.shape[:-2], -1)), _FLOOR)
    enough = sum((~np.isnan(part)).sum(axis=(-2, -1)) for part in distances) >= MIN_RUNS
    counts = [(part > OUTLIER_SD * spread[..., None, None]).sum(axis=(-2, -1)) for part in distances]
    return OutlierCounts(*(np.where(enough, number, 0) for number in counts))


def _from_median(values: np.ndarray) -> np.ndarray:
    """Distance of each run from the median of its replicate, shape [..., replicate, run]."""
    runs = values.reshape(*values.shape[:-2], -1)
    distances: np.ndarray = np.abs(runs - median(runs)[..., None])
    return distances


def median(values: np.ndarray) -> np.ndarray:
    """Median over the last axis, NaN left out; NaN of nothing (as numpy's nanmedian, but fast and silent)."""
    ordered = np.sort(values, axis=-1)
    n = (~np.isnan(values)).sum(axis=-1)
    low, high = np.maximum((n - 1) // 2, 0), np.minimum(n // 2, values.shape[-1] - 1)
    pair = [np.take_along_axis(ordered, at[..., None], axis=-1)[..., 0] for at in (low, high)]
    middle: np.ndarray = (pair[0] + pair[1]) / 2
    return middle


SMALL = 0.2
"""Shift, as a share of the interval's half-width, up to which coverage stays (`make coverage`)."""
UNLIKE = 1.5
"""Times as many trials that an arm must have lost as the other to have lost unlike shares."""


def shift(shares: tuple[np.ndarray, np.ndarray], arm: np.ndarray, base: np.ndarray) -> np.ndarray:
    """How far the log ratio may have been moved; 0 where both arms lost about as much.

    - `shares`: shares of the trials of arm and base arm that were lost or repeated; shape [...] each.
    - `arm`, `base`: log metric of every trial, shape [..., replicate, block, repeat], NaN where there is
      none.
    """
    least, most = np.minimum(*shares), np.maximum(*shares)
    unlike = (most > 0) & (most >= UNLIKE * least)
    moved = np.zeros(np.shape(unlike))
    if unlike.any():
        moved[unlike] = (most - least)[unlike] * farthest(arm[unlike], base[unlike])
    return moved


def farthest(arm: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Largest distance of a trial from what the other arm's mean in its block lets expect, shape [...].

    Expected is that mean times the replicate's median ratio; NaN where no block has both arms.
    """
    means = [mean_over_repeats(values) for values in (arm, base)]
    ratio = median(means[0] - means[1])[..., None]
    distances = [arm - (means[1] + ratio)[..., None], base - (means[0] - ratio)[..., None]]
    both = np.abs(np.concatenate(distances, axis=-1)).reshape(*arm.shape[:-3], -1)
    worst = np.where(np.isnan(both), -np.inf, both).max(axis=-1, initial=-np.inf)
    return np.where(np.isneginf(worst), np.nan, worst)


def is_small(moved: np.ndarray, *half_widths: np.ndarray) -> np.ndarray:
    """Whether a shift is small beside every interval that is there; without any it is not."""
    half = np.fmin.reduce([*half_widths])
    return np.asarray((moved == 0) | (moved <= SMALL * half))
