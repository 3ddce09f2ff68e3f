"""Two runs of one comparison: the ratio of their ratios, and the spread of such ratios over several runs.

The unit is the replicate, as within a run: a run enters with the mean of its replicates' log ratios, its
standard error and its degrees of freedom (`stats.intervals`), so that every function here takes simulated
runs and real ones alike. Runs of one scenario spread alike, so their variances are pooled; where an F-test
at a lenient level says that they do not, Welch's interval holds if it is the wider one. Simulated with equal
variances and 2 to 10 replicates in each run, 4 to 5 % of pairs with one truth show a difference (Welch's
alone 2 to 10 %).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from diskbook.stats import intervals, verdicts
from diskbook.stats.intervals import LEVEL, Interval

UNLIKE_P = 0.2
"""Level of the F-test for unlike variances; two-sided."""
HEADLINE_SHARE = 0.8
"""Share of the 5 % that headline comparisons get where there are others as well."""

Array = NDArray[np.float64]


class Spread(NamedTuple):
    """Standard deviation of the log ratios of runs beyond what their replicates let expect.

    Attributes
    ----------
    sd, low, high
        The estimate and its interval; `low` is 0 where chance alone may have made it.
    p
        Of "all runs share one ratio"; NaN where replicates say nothing of it.
    n_runs
        Runs that it was made from.
    """

    sd: float
    low: float
    high: float
    p: float
    n_runs: int


_NOTHING = Spread(math.nan, math.nan, math.nan, math.nan, 0)


def of_kinds(first: Interval, other: Interval, level: float = LEVEL) -> Interval:
    """Log of the ratio of ratios, other / first, from means over replicates: holds for disks like these.

    Parameters
    ----------
    first, other
        From `intervals.over_replicates`, of any shape.
    level
        Level of the interval.
    """
    pooled, welch = _pooled(first, other, level), apart(first, other, level)
    wider = are_unlike(first, other) & (welch.high - welch.low > pooled.high - pooled.low)
    return Interval(*(np.where(wider, *parts) for parts in zip(welch, pooled, strict=True)))


def apart(first: Interval, other: Interval, level: float = LEVEL) -> Interval:
    """Log of the ratio of ratios where each run has its own variance (Welch and Satterthwaite).

    Also for intervals over blocks: it then holds for the very disks of both runs, whose own difference is
    part of it.
    """
    parts = [item.se**2 for item in (first, other)]
    with np.errstate(all="ignore"):
        variance = parts[0] + parts[1]
        df = variance**2 / (parts[0] ** 2 / first.df + parts[1] ** 2 / other.df)
    return intervals.student(other.mean - first.mean, np.sqrt(variance), df, level)


def _pooled(first: Interval, other: Interval, level: float) -> Interval:
    """Interval of the difference with one variance of replicates for both runs (Student's two-sample t)."""
    df = first.df + other.df
    with np.errstate(all="ignore"):
        variance = (first.df * _variance(first) + other.df * _variance(other)) / df
        se = np.sqrt(variance * (1 / (first.df + 1) + 1 / (other.df + 1)))
    return intervals.student(other.mean - first.mean, se, df, level)


def are_unlike(first: Interval, other: Interval) -> np.ndarray:
    """Whether the replicates of one run spread more than those of the other, by a two-sided F-test."""
    with np.errstate(all="ignore"):
        f = _variance(first) / _variance(other)
        tails = special.fdtr(first.df, other.df, f), special.fdtrc(first.df, other.df, f)
    return np.asarray(2 * np.minimum(*tails) < UNLIKE_P)


def _variance(item: Interval) -> np.ndarray:
    """Variance of single replicates, from the standard error of their mean."""
    return np.asarray(item.se**2 * (item.df + 1))


def adjusted(p: Array, headline: NDArray[np.bool_]) -> Array:
    """Adjust the p-values of one look at several runs: at most 5 % show any difference that is none.

    Holm's steps within the headline comparisons and within the others; where both are there, four fifths of
    the 5 % are for the headline (weighted Bonferroni). Adjusted values are held against 5 %; NaN stays NaN.
    """
    weights = (HEADLINE_SHARE, 1 - HEADLINE_SHARE)
    chosen = headline & ~np.isnan(p), ~headline & ~np.isnan(p)
    alone = not all(part.any() for part in chosen)
    result = np.full(p.shape, np.nan)
    for part, weight in zip(chosen, weights, strict=True):
        result[part] = np.minimum(1.0, verdicts.holm(p[part]) / (1.0 if alone else weight))
    return result


def alpha_of_headline(headline: int, others: int) -> float:
    """Level at which the hardest headline comparison of a pair of runs is judged (`adjusted`)."""
    return verdicts.ALPHA * (HEADLINE_SHARE if others else 1.0) / headline


def between_runs(means: Array, variances: Array, df: Array, level: float = LEVEL) -> Spread:
    """Spread of runs beyond their replicates: method of moments on unweighted means.

    Parameters
    ----------
    means
        Mean log ratio of each run.
    variances, df
        Variance of its replicates, and their number less one.
    level
        Level of the interval.

    Notes
    -----
    The harmonic mean number of replicates stands for unequal ones (Thomas and Hultquist, 1978), and the
    interval is that of Williams and Tukey: J. S. Williams, A confidence interval for variance components,
    Biometrika 49 (1962).
    """
    runs = len(means)
    if runs < 3:
        return _NOTHING
    within, df_within = float(np.average(variances, weights=df)), float(df.sum())
    number = runs / float((1 / (df + 1)).sum())
    between, df_between = number * float(means.var(ddof=1)), runs - 1.0
    tail = (1 - level) / 2
    bounds = [
        df_between
        * (between - within * float(special.fdtri(df_between, df_within, share)))
        / (number * float(special.chdtri(df_between, 1 - share)))
        for share in (1 - tail, tail)
    ]
    sd, low, high = (math.sqrt(max(0.0, value)) for value in ((between - within) / number, *bounds))
    p = float(special.fdtrc(df_between, df_within, between / within)) if within > 0 else math.nan
    return Spread(sd, low, high, p, runs)


def with_their_disks(means: Array, level: float = LEVEL) -> Spread:
    """Spread of runs of one replicate each: that of their disks is in it, and nothing tells the two apart."""
    runs = len(means)
    if runs < 3:
        return _NOTHING
    squares, tail = float(means.var(ddof=1)) * (runs - 1), (1 - level) / 2
    low, high = (math.sqrt(squares / float(special.chdtri(runs - 1, share))) for share in (tail, 1 - tail))
    return Spread(float(means.std(ddof=1)), low, high, math.nan, runs)
