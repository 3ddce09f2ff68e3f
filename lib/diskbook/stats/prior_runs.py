"""A narrower general interval for 2 to 4 replicates: the spread that earlier runs of the same cell showed.

The variance of replicate means is moderated as by Smyth (2004): s~^2 = (d0 s0^2 + d s^2) / (d0 + d), t with
d0 + d degrees of freedom. Not over the cells of one scenario, where the noisiest cell would cover only 82 %,
but over earlier runs of the same cell, named by the user. Three guards, since a new run may be noisier than
its history: the history's standard deviation counts `ALLOWANCE` times as large; an F-test at a lenient level
sends a noisier run back to its own interval; and the coverage of what is left, simulated by the functions
below with a new run `TOLERATED` times as noisy, must be 93 % or more. Beyond that nothing is promised:
two replicates of a run twice as noisy as a long history cover about 80 % where it is used.

G. K. Smyth, Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments, Statistical Applications in Genetics and Molecular Biology 3 (2004).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from diskbook.facts.nan_equal import NanEqual
from diskbook.stats import intervals, power, ratios

ALLOWANCE = 1.25
"""Factor on the history's standard deviation."""
TOLERATED = 1.25
"""A new run may be this many times as noisy as its history, and coverage must still hold."""
NOISIER_P = 0.2
LEAST_COVERAGE = 0.93
MOST_REPLICATES = 4
SIMULATED = 20_000

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Past:
    """Variance of the replicates' mean log ratios in one earlier run, with its degrees of freedom."""

    run: str
    variance: float
    df: int


@dataclass(frozen=True)
class Prior:
    """The history: pooled variance s0^2 of replicate means with d0 degrees of freedom, and its runs."""

    variance: float
    df: int
    pasts: tuple[Past, ...]

    @property
    def runs(self) -> str:
        """Names of its runs, for the result."""
        return ", ".join(past.run for past in self.pasts)


@dataclass(frozen=True, eq=False)
class Moderated(NanEqual):
    """An interval with history beside the plain one.

    - `estimate`: what to print: moderated where the history may be used, else the plain one.
    - `plain`: without history.
    - `refusal`: why the history is not used; empty when it is.
    - `coverage`: smallest simulated coverage where the history is used; NaN when refused before.
    """

    estimate: ratios.Estimate
    plain: ratios.Estimate
    refusal: str
    coverage: float

    @property
    def saved(self) -> str:
        """What the history saves, in words. Now and then it costs: taking the narrower would not cover."""
        if self.refusal:
            return f"the history is not used: {self.refusal}"
        wide, plain = _half(self.estimate), _half(self.plain)
        chance = "; these replicates agree more than the history lets expect" if wide > plain else ""
        return f"±{wide:.1f} % with the history, ±{plain:.1f} % without it{chance}"


class Judged(NamedTuple):
    """Intervals without and with history, and where the run is too noisy for the history."""

    plain: intervals.Interval
    moderated: intervals.Interval
    noisier: Any


def past(run: str, log_ratios: pd.Series | Array) -> Past:
    """Spread of one earlier run's replicates about their own mean.

    Raises ValueError when the run has one replicate, or its replicates do not differ.
    """
    means = _replicate_means(log_ratios)
    if len(means) < 2:
        raise ValueError(f"it has {len(means)} replicate, so it shows no spread between replicates")
    variance = float(means.var(ddof=1))
    if variance < 1e-24:
        raise ValueError("its replicates are all the same; real measurements differ")
    return Past(run, variance, len(means) - 1)


def pool(pasts: Iterable[Past]) -> Prior:
    """Pool earlier runs, weighted by their degrees of freedom.

    Raises ValueError when there is none, or one is named twice.
    """
    known = tuple(pasts)
    if not known:
        raise ValueError("a history needs at least one run")
    names = [item.run for item in known]
    if len(set(names)) < len(names):
        raise ValueError("a run is named twice; it counts once")
    df = [item.df for item in known]
    return Prior(float(np.average([item.variance for item in known], weights=df)), sum(df), known)


def moderate(variance: Any, df: int, prior_variance: Any, prior_df: int) -> Any:
    """Moderated variance s~^2 = (d0 (allowance s0)^2 + d s^2) / (d0 + d)."""
    return (prior_df * ALLOWANCE**2 * prior_variance + df * variance) / (prior_df + df)


def noisier(variance: Any, df: int, prior_variance: Any, prior_df: int) -> Any:
    """Whether a run is noisier than history and allowance explain (one-sided F-test at 20 %)."""
    return variance > special.fdtri(df, prior_df, 1 - NOISIER_P) * ALLOWANCE**2 * prior_variance


def judged(means: Array, prior_variance: Any, prior_df: int, level: float) -> Judged:
    """Plain and moderated interval of replicate means, shape [..., replicate], and which of them holds."""
    plain = intervals.t_interval(means, level)
    n = np.asarray(means).shape[-1]
    variance = plain.se**2 * n
    se = np.sqrt(moderate(variance, n - 1, prior_variance, prior_df) / n)
    with_history = intervals.student(plain.mean, se, np.asarray(n - 1.0 + prior_df), level)
    return Judged(plain, with_history, noisier(variance, n - 1, prior_variance, prior_df))


@lru_cache(maxsize=256)
def coverage(
    n: int,
    past_df: tuple[int, ...],
    factor: float = TOLERATED,
    level: float = intervals.LEVEL,
    spread_of_runs: float = 0.0,
    seed: int = 1,
) -> tuple[float, float]:
    """Simulate how often the interval holds the truth, with the functions that make it.

    - `n`: replicates of the new run.
    - `past_df`: degrees of freedom of each run of the history.
    - `factor`: standard deviation of the new run over that of its history.
    - `spread_of_runs`: standard deviation of the logs of the earlier runs' standard deviations about their
      common value.
    - `seed`: of the simulation.

    Returns the coverage of whatever would be printed, and of the intervals that use the history.
    """
    rng = np.random.default_rng(seed)
    df0 = np.array(past_df)
    scale = np.exp(2 * rng.normal(0, spread_of_runs, (SIMULATED, len(df0))))
    prior = np.average(scale * rng.chisquare(df0, (SIMULATED, len(df0))) / df0, axis=1, weights=df0)
    drawn = judged(rng.normal(0, factor, (SIMULATED, n)), prior, int(df0.sum()), level)
    low = np.where(drawn.noisier, drawn.plain.low, drawn.moderated.low)
    high = np.where(drawn.noisier, drawn.plain.high, drawn.moderated.high)
    held = (low <= 0) & (high >= 0)
    return float(held.mean()), float(held[~drawn.noisier].mean())


def moderated(log_ratios: pd.Series | Array, prior: Prior, level: float = intervals.LEVEL) -> Moderated:
    """Interval for "disks like these" with the variance moderated by a history of the same cell.

    The history's runs stand in the estimate's `method`. Where it may not be used the plain interval is
    returned, with the reason.

    - `log_ratios`: of the new run; index (replicate, block).
    - `prior`: from `pool`; none of its runs may be the new one.
    """
    plain = ratios.over_replicates(log_ratios, level)
    if refusal := _out_of_range(plain):
        return Moderated(plain, plain, refusal, math.nan)
    n, means = plain.n_replicates, _replicate_means(log_ratios)
    both = judged(means, prior.variance, prior.df, level)
    if both.noisier:
        sds = (math.sqrt(means.var(ddof=1)), math.sqrt(prior.variance))
        refusal = (
            f"the replicates' s.d. of {100 * sds[0]:.2g} % is more than its {100 * sds[1]:.2g} % with "
            f"{prior.df} degrees of freedom explains (F-test)"
        )
        return Moderated(plain, plain, refusal, math.nan)
    past_df = tuple(item.df for item in prior.pasts)
    held = min(coverage(n, past_df, factor, level)[1] for factor in (1.0, TOLERATED))
    if held < LEAST_COVERAGE + level - intervals.LEVEL:
        return Moderated(plain, plain, f"its simulated coverage is {100 * held:.1f} %", held)
    narrower = both.moderated
    estimate = replace(
        plain,
        low=math.exp(narrower.low),
        high=math.exp(narrower.high),
        log_se=float(narrower.se),
        df=float(narrower.df),
        method=f"t over replicates, variance moderated by the history {prior.runs}",
    )
    return Moderated(estimate, plain, "", held)


def expected_half_widths(n: int, prior: Prior, level: float = intervals.LEVEL) -> tuple[float, float]:
    """Relative half-widths that n replicates keep in `power.ASSURANCE` of runs, without and with the history.

    For a run whose replicates spread as those of the history.
    """
    shown = prior.variance * float(special.fdtri(n - 1, prior.df, power.ASSURANCE))
    se = np.sqrt(np.array([shown, moderate(shown, n - 1, prior.variance, prior.df)]) / n)
    interval = intervals.student(np.zeros(2), se, np.array([n - 1.0, n - 1.0 + prior.df]), level)
    return math.expm1(interval.high[0]), math.expm1(interval.high[1])


def _out_of_range(plain: ratios.Estimate) -> str:
    if plain.reason:
        return plain.reason
    if plain.n_replicates > MOST_REPLICATES:
        return f"{plain.n_replicates} replicates speak for themselves"
    return ""


def _replicate_means(log_ratios: pd.Series | Array) -> Array:
    """Means of the replicates that have a block."""
    array = ratios.as_array(log_ratios) if isinstance(log_ratios, pd.Series) else np.asarray(log_ratios)
    there = np.isfinite(array).any(axis=-1)
    means: Array = np.nanmean(array[there], axis=-1)
    return means


def _half(estimate: ratios.Estimate) -> float:
    """Half-width in per cent of the ratio."""
    return 100 * (math.sqrt(estimate.high / estimate.low) - 1)
