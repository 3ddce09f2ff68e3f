"""Two runs of one comparison: the ratio of their ratios, and the spread of such ratios over several runs.

The unit is the replicate, as within a run: a run enters with the mean of its replicates' log ratios, its
standard error and its degrees of freedom (`stats.intervals`), so that every function here takes simulated
runs and real ones alike. Each run keeps its own variance, because nothing says that two runs spread alike.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from diskbook.stats import intervals, ratios
from diskbook.stats.intervals import LEVEL, Interval

LEAST_REPLICATES = 3
"""Replicates that each of two runs needs before their difference gets a verdict."""
HEADLINE_SHARE = 0.8
"""Share of the 5 % that headline comparisons get where there are others as well."""

Array = NDArray[np.float64]


class Spread(NamedTuple):
    """Standard deviation of the log ratios of runs beyond what their replicates let expect.

    - `sd`, `low`, `high`: the estimate and its interval; `low` is 0 where chance alone may have made it.
    - `p`: of "all runs share one ratio"; NaN where replicates say nothing about it.
    - `n_runs`: runs that it was made from.
    """

    sd: float
    low: float
    high: float
    p: float
    n_runs: int


_NOTHING = Spread(math.nan, math.nan, math.nan, math.nan, 0)


def interval(first: Interval, other: Interval, level: float = LEVEL) -> Interval:
    """Return the log of the ratio of ratios, other / first, with Welch's standard error and Hsu's df.

    The degrees of freedom are those of the run that has fewer.

    - `first`, `other`: log ratios of the two runs, of any shape. From `intervals.over_replicates` the result
      holds for disks like these. Over blocks it holds for the very disks of both runs, whose own difference
      is part of it.

    At most 5 % of normal samples of one mean differ, whatever their variances and numbers: P. L. Hsu,
    Contribution to the theory of "Student's" t-test as applied to the problem of two samples, Statistical
    Research Memoirs 2 (1938); proof in M. R. Mickey and M. B. Brown, Bounds on the distribution functions of
    the Behrens-Fisher statistic, Annals of Mathematical Statistics 37 (1966). Pooled variances and the
    degrees of freedom of Satterthwaite do not hold that (docs/explanation/coverage.md).
    """
    se, df = np.hypot(first.se, other.se), np.minimum(first.df, other.df)
    return intervals.student(other.mean - first.mean, se, df, level)


def p_difference(item: Interval) -> np.ndarray:
    """Return p of "both ratios are the same"; NaN where a run has fewer than `LEAST_REPLICATES`."""
    return np.where(item.df >= LEAST_REPLICATES - 1, intervals.p_difference(item), np.nan)


def adjusted(p: Array, headline: NDArray[np.bool_]) -> Array:
    """Adjust the p-values of one look at several runs: at most 5 % show any difference that is none.

    Holm's steps within the headline comparisons and within the others; where both are there, four fifths of
    the 5 % are for the headline (weighted Bonferroni). Adjusted values are compared with 5 %; NaN stays NaN.
    """
    weights = (HEADLINE_SHARE, 1 - HEADLINE_SHARE)
    chosen = headline & ~np.isnan(p), ~headline & ~np.isnan(p)
    alone = not all(part.any() for part in chosen)
    result = np.full(p.shape, np.nan)
    for part, weight in zip(chosen, weights, strict=True):
        result[part] = np.minimum(1.0, ratios.holm(p[part]) / (1.0 if alone else weight))
    return result


def hardest_levels(headline: NDArray[np.bool_]) -> Array:
    """Return the level at which each comparison of a look differs whatever the others are (`adjusted`)."""
    share = np.where(headline, HEADLINE_SHARE, 1 - HEADLINE_SHARE)
    alone = headline.all() or not headline.any()
    number = np.where(headline, headline.sum(), (~headline).sum())
    return np.asarray(ratios.ALPHA * np.where(alone, 1.0, share) / number)


def between_runs(means: Array, errors: Array, df: Array, level: float = LEVEL) -> Spread:
    """Estimate the spread of runs beyond that of their replicates: method of moments on unweighted means.

    - `means`: mean log ratio of each run.
    - `errors`, `df`: standard error of each mean, and its degrees of freedom.

    The interval is that of Williams and Tukey (J. S. Williams, A confidence interval for variance components,
    Biometrika 49, 1962) with two changes, since runs need not spread alike. The mean squared error has
    Satterthwaite's degrees of freedom (`_least_df`), and where one run has most of the variance, the variance
    of the means has one. In simulation at most 5.1 % of equal runs differ, and 92.6 % or more of the
    intervals hold the spread (3 to 20 runs of 2 to 20 replicates, spreads apart by up to 5).
    """
    runs = len(means)
    if runs < 3:
        return _NOTHING
    within, df_within = float((errors**2).mean()), _least_df(errors**2, df)
    between, df_between = float(means.var(ddof=1)), runs - 1.0
    tail = (1 - level) / 2
    few = special.fdtri(df_between, df_within, tail)
    many = special.fdtri([1.0, df_between], df_within, 1 - tail).max()
    bounds = [
        df_between * (between - within * float(f)) / float(special.chdtri(df_between, share))
        for f, share in ((many, tail), (few, 1 - tail))
    ]
    sd, low, high = (math.sqrt(max(0.0, value)) for value in (between - within, *bounds))
    p = float(special.fdtrc([1.0, df_between], df_within, between / within).max()) if within > 0 else math.nan
    return Spread(sd, low, high, p, runs)


def _least_df(variances: Array, df: Array) -> float:
    """Satterthwaite's degrees of freedom of a sum, the least where any one variance was drawn too small.

    In its place stands the upper bound of 80 %, so that few replicates count where they may have most of it.
    """
    upper = variances * df / special.chdtri(df, 0.8)
    total = variances.sum() - variances + upper
    squares = (variances**2 / df).sum() - variances**2 / df + upper**2 / df
    with np.errstate(invalid="ignore"):
        return float((total**2 / squares).min())


def with_their_disks(means: Array, level: float = LEVEL) -> Spread:
    """Spread of runs of one replicate each: that of their disks is in it, and nothing tells the two apart."""
    runs = len(means)
    if runs < 3:
        return _NOTHING
    squares, tail = float(means.var(ddof=1)) * (runs - 1), (1 - level) / 2
    low, high = (math.sqrt(squares / float(special.chdtri(runs - 1, share))) for share in (tail, 1 - tail))
    return Spread(float(means.std(ddof=1)), low, high, math.nan, runs)
