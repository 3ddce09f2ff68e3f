"""Student intervals on arrays of log ratios: the same functions for one comparison and for many runs.

A comparison's data are an array `[..., replicate, block]` of log ratios, NaN where a block lacks an arm;
leading axes are comparisons or simulated runs. All functions work over the last one or two axes, count what
is there (unequal numbers are the rule, not the exception), and give NaN bounds where there is no spread to
build an interval from. `diskbook.stats.ratios` turns one comparison's numbers into words.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from diskbook.design.vocabulary import Scope

LEVEL = 0.95
IDENTICAL = 1e-12
"""Standard error below which values count as identical: real measurements differ."""


class Interval(NamedTuple):
    """Means with intervals; every field has the shape of the leading axes (0-d for one comparison).

    - `mean`, `low`, `high`: in the unit of the values (log ratios); `low` and `high` are NaN without spread.
    - `se`, `df`: standard error of the mean and its degrees of freedom; NaN where none is left.
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    se: np.ndarray
    df: np.ndarray


def t_interval(values: np.ndarray, level: float = LEVEL) -> Interval:
    """Student t interval of the mean over the last axis, NaN left out (`scipy.stats.ttest_1samp`).

    - `values`: shape [..., n]; NaN for what is missing, so that n may differ between rows.

    Returns an interval of shape [...]: mean NaN where nothing is left, bounds NaN with one value or equal
    ones.

    Five blocks, in which the arm took 2 % more time than the base arm on average; one block was lost.

    >>> interval = t_interval(np.log([1.01, 1.03, np.nan, 1.02, 1.015, 1.025]))
    >>> print(f"{np.exp(interval.mean):.3f}, {np.exp(interval.low):.3f} to {np.exp(interval.high):.3f}")
    1.020, 1.010 to 1.030
    """
    values = np.asarray(values, dtype=float)
    n, mean, squares = _moments(values)
    df = n - 1.0
    with np.errstate(all="ignore"):
        se = np.sqrt(squares / df / n)
    return student(mean, np.where(df > 0, se, np.nan), np.where(df > 0, df, np.nan), level)


def over_blocks(log_ratios: np.ndarray, level: float = LEVEL) -> Interval:
    """Over the blocks of one replicate, shape [..., block]: holds for the very disks measured."""
    return t_interval(log_ratios, level)


def over_replicates(log_ratios: np.ndarray, level: float = LEVEL) -> Interval:
    """Over replicate means, shape [..., replicate, block]: holds for disks of this kind.

    A replicate weighs as any other, however many of its blocks are there: what differs between disks is not
    averaged away by blocks.
    """
    _, means, _ = _moments(np.asarray(log_ratios, dtype=float))
    return t_interval(means, level)


def within_replicates(log_ratios: np.ndarray, level: float = LEVEL) -> Interval:
    """Over blocks within replicates, shape [..., replicate, block]: holds for the very disks measured.

    The mean of replicate means, replicates taken as they are. Each replicate keeps its own variance, since
    one machine may be noisier than the others. No interval where a replicate is left with one block: its
    error counts in full while nothing shows how large it is (simulated with outliers and one trial in ten
    lost, 10 replicates x 2 blocks cover 91 % with such replicates and 96 % without).

    The variance is the sum of v = s^2 / n over replicates, divided by their number squared. Its degrees of
    freedom are (sum of v)^2 / (sum of v^2 / (n - 1)): F. E. Satterthwaite, An approximate distribution of
    estimates of variance components, Biometrics Bulletin 2 (1946). One replicate has n - 1.
    """
    n, means, squares = _moments(np.asarray(log_ratios, dtype=float))
    present = n > 0
    with np.errstate(all="ignore"):
        variances = np.where(present, squares / (n - 1.0) / n, 0.0)
        total, replicates = variances.sum(axis=-1), present.sum(axis=-1)
        mean = np.where(present, means, 0.0).sum(axis=-1) / replicates
        df = total**2 / np.where(present, variances**2 / (n - 1.0), 0.0).sum(axis=-1)
        se = np.sqrt(total) / replicates
    return student(mean, se, df, level)


def freedom(rows: Mapping[Any, Any] | pd.DataFrame) -> np.ndarray:
    """Return the degrees of freedom of printed intervals, of one row of comparisons or of many.

    Tables of older runs have no column `df`: theirs were the replicates less one, or the blocks less the
    replicates.
    """
    replicates, blocks = (np.asarray(rows[name], dtype=float) for name in ("n_replicates", "n_blocks"))
    older = np.where(np.asarray(rows["scope"] == Scope.LIKE_THESE), replicates - 1, blocks - replicates)
    df = np.asarray(rows.get("df", np.nan), dtype=float)
    return np.where(np.isnan(df), older, df)


def quantile(level: float | np.ndarray, df: float | np.ndarray) -> np.ndarray:
    """Quantile of Student's t that a two-sided interval takes: half-width = quantile x standard error.

    - `level`: level of the interval, e.g. 0.95 for the quantile of 97.5 %. A one-sided probability p has the
      level 2 p - 1.
    - `df`: degrees of freedom; infinite for the normal distribution, and NaN where there are none.
    """
    return np.asarray(special.stdtrit(df, 0.5 + level / 2))


def student(mean: np.ndarray, se: np.ndarray, df: np.ndarray, level: float = LEVEL) -> Interval:
    """Mean plus and minus t x standard error; bounds NaN where values were identical or too few."""
    with np.errstate(all="ignore"):
        half = quantile(level, df) * np.where(se > IDENTICAL, se, np.nan)
    return Interval(mean, mean - half, mean + half, se, df)


def p_difference(interval: Interval, at: float | np.ndarray = 0.0) -> np.ndarray:
    """Two-sided p of "the mean is `at`"; NaN without an interval."""
    distance = np.abs(interval.mean - at) / np.where(np.isnan(interval.low), np.nan, interval.se)
    return 2 * special.stdtr(interval.df, -distance)


def p_equivalence(interval: Interval, bound: float | np.ndarray) -> np.ndarray:
    """Larger p of the two one-sided tests for a mean within -bound to +bound; NaN without an interval."""
    inside = (bound - np.abs(interval.mean)) / np.where(np.isnan(interval.low), np.nan, interval.se)
    return special.stdtr(interval.df, -inside)


def _moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number, mean and sum of squared deviations over the last axis, NaN left out; mean NaN of nothing."""
    there = ~np.isnan(values)
    n = there.sum(axis=-1)
    with np.errstate(all="ignore"):
        mean = np.where(there, values, 0.0).sum(axis=-1) / n
        spread = np.where(there, values - mean[..., None], 0.0)
        return n, mean, (spread * spread).sum(axis=-1)
