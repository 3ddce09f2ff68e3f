"""Outliers: runs far out. Symmetric noise cancels in a ratio, outliers in one arm only do not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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

    Each run is held against the median of its own arm and replicate, since machines and disks differ; the
    spread is 1.4826 x the median absolute deviation over both arms (floor 0.01 %), which a few outliers do
    not move. A rule of thumb: blind to noise that did not happen to occur, and to noise in most runs.

    Parameters
    ----------
    arm, base
        Log metric of every run, shape [..., replicate, block, repeat], NaN where there is none.
    """
    if not arm.size:
        return OutlierCounts(*np.zeros((2, *arm.shape[:-3]), dtype=int))
    deviations = [_frommedian(values) for values in (arm, base)]
    both = np.concatenate(deviations, axis=-1)
    spread = np.fmax(1.4826 * median(np.abs(both)), _FLOOR)
    enough = (~np.isnan(both)).sum(axis=-1) >= MIN_RUNS
    counts = [(np.abs(part) > OUTLIER_SD * spread[..., None]).sum(axis=-1) for part in deviations]
    return OutlierCounts(*(np.where(enough, number, 0) for number in counts))


def _frommedian(values: np.ndarray) -> np.ndarray:
    """Distance of each run from the median of its replicate, shape [..., run]."""
    runs = values.reshape(*values.shape[:-2], -1)
    distances: np.ndarray = runs - median(runs)[..., None]
    return distances.reshape(*values.shape[:-3], -1)


def median(values: np.ndarray) -> np.ndarray:
    """Median over the last axis, NaN left out; NaN of nothing (as numpy's nanmedian, but fast and silent)."""
    ordered = np.sort(values, axis=-1)
    n = (~np.isnan(values)).sum(axis=-1)
    low, high = np.maximum((n - 1) // 2, 0), np.minimum(n // 2, values.shape[-1] - 1)
    pair = [np.take_along_axis(ordered, at[..., None], axis=-1)[..., 0] for at in (low, high)]
    middle: np.ndarray = (pair[0] + pair[1]) / 2
    return middle
