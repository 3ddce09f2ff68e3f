"""Ratios of two arms with intervals: one log ratio a block, Student's t over blocks or over replicates.

The unit is the trial, on the log scale: a ratio is what a reader asks for, and machine, block and hour
cancel in a difference of logs. A block gives one log ratio, however often it repeats a cell, since repeats
within a block share its conditions. Intervals were chosen by simulated coverage: t over replicate means
holds 94 to 96 % for disks of the kind; t over blocks holds 94 to 98 % for the very disks measured, and 46 to
95 % for others, so that one replicate gets no general claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from diskbook.limits import measured_rows

THESE = "these disks"
LIKE_THESE = "disks like these"
LEVEL = 0.95
_IDENTICAL = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A ratio with its interval, or the reason why there is none.

    Attributes
    ----------
    scope
        "these disks" (the very disks measured) or "disks like these" (the kind).
    ratio, low, high
        Arm / base arm; NaN where not estimated.
    log_se, df
        Standard error of the mean log ratio and its degrees of freedom.
    reason
        Why there is no interval; empty when there is one.
    """

    scope: str
    ratio: float
    low: float
    high: float
    level: float
    method: str
    log_se: float
    df: float
    n_replicates: int
    n_blocks: int
    reason: str = ""

    @property
    def p_difference(self) -> float:
        """Two-sided p of "the ratio is 1"; NaN without an interval."""
        if self.reason:
            return math.nan
        return float(2 * stats.t.sf(abs(math.log(self.ratio)) / self.log_se, self.df))

    def p_equivalence(self, margin: float) -> float:
        """P of the two one-sided tests for a ratio within 1/(1 + margin) to 1 + margin; NaN without interval.

        The band is symmetric in logs, so that swapping the arms changes nothing.
        """
        if self.reason:
            return math.nan
        log_ratio, bound = math.log(self.ratio), math.log1p(margin)
        return float(stats.t.sf((bound - abs(log_ratio)) / self.log_se, self.df))


def log_means(trials: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean log of a metric over the repeats of each block.

    Values that have no logarithm (missing, zero, negative, infinite) are left out; `gates.values_gate` says
    so.

    Returns
    -------
    pandas.DataFrame
        Index (replicate, block), columns (arm, workload, direction); NaN where nothing was measured.
    """
    rows = measured_rows(trials)
    values = rows[metric].to_numpy(float)
    usable = np.isfinite(values) & (values > 0)
    rows = rows[usable]
    logs = pd.Series(np.log(values[usable]), index=rows.index)
    keys = [rows[name] for name in ("replicate", "block", "arm", "workload", "direction")]
    return logs.groupby(keys).mean().unstack(["arm", "workload", "direction"])


def block_log_ratios(
    means: pd.DataFrame, arm: str, base_arm: str, workload: str, direction: str
) -> pd.Series:
    """Log ratio arm / base arm of every block that measured both; index (replicate, block)."""
    columns = [(arm, workload, direction), (base_arm, workload, direction)]
    if not all(column in means.columns for column in columns):
        return pd.Series(dtype=float, index=means.index[:0])
    difference = means[columns[0]] - means[columns[1]]
    return difference.dropna()


def over_blocks(log_ratios: pd.Series, level: float = LEVEL) -> Estimate:
    """Student t over the blocks of one replicate: holds for the very disks measured."""
    return _student(log_ratios.to_numpy(float), THESE, "t over blocks", level, 1, len(log_ratios), "block")


def over_replicates(log_ratios: pd.Series, level: float = LEVEL) -> Estimate:
    """Student t over the means of replicates (fresh machines and disks): holds for disks of this kind."""
    means = log_ratios.groupby(level=0).mean().to_numpy(float)
    return _student(means, LIKE_THESE, "t over replicates", level, len(means), len(log_ratios), "replicate")


def within_replicates(log_ratios: pd.Series, level: float = LEVEL) -> Estimate:
    """T over blocks within replicates, replicates taken as they are: holds for the very disks measured.

    The mean of replicate means; its variance from the spread of blocks within replicates, pooled.
    """
    groups = log_ratios.groupby(level=0)
    sizes, means = groups.size().to_numpy(float), groups.mean().to_numpy(float)
    spread = (log_ratios - groups.transform("mean")).to_numpy(float)
    df = float(sizes.sum() - len(sizes))
    variance = float((spread**2).sum()) / df if df > 0 else math.nan
    se = math.sqrt(variance * float((1 / sizes).sum())) / len(sizes) if df > 0 else math.nan
    reason = "" if df > 0 else _too_few("block", 1)
    numbers = (float(means.mean()), se, df)
    return _estimate(
        numbers, THESE, "t over blocks within replicates", level, len(sizes), len(log_ratios), reason
    )


def estimates(log_ratios: pd.Series, level: float = LEVEL) -> list[Estimate]:
    """Estimate one comparison in both scopes, the general one first.

    With one replicate the general scope is refused, with the reason.
    """
    replicates = log_ratios.index.get_level_values(0).nunique() if len(log_ratios) else 0
    if replicates > 1:
        return [over_replicates(log_ratios, level), within_replicates(log_ratios, level)]
    reason = "one replicate says nothing about other disks of the kind; measure 2 or more, better 5"
    nothing = (math.nan, math.nan, math.nan)
    general = _estimate(nothing, LIKE_THESE, "refused", level, replicates, len(log_ratios), reason)
    return [general, over_blocks(log_ratios, level)]


def _student(
    values: np.ndarray, scope: str, method: str, level: float, n_replicates: int, n_blocks: int, unit: str
) -> Estimate:
    """Mean, standard error and degrees of freedom of independent log ratios (as scipy's ttest_1samp)."""
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    se = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    reason = _too_few(unit, n) if n < 2 else ""
    return _estimate((mean, se, n - 1.0), scope, method, level, n_replicates, n_blocks, reason)


def _too_few(unit: str, n: int) -> str:
    plural = "" if n == 1 else "s"
    return f"{n} {unit}{plural}: no spread to build an interval from; measure 3 {unit}s or more"


def _estimate(
    numbers: tuple[float, float, float],
    scope: str,
    method: str,
    level: float,
    n_replicates: int,
    n_blocks: int,
    reason: str,
) -> Estimate:
    mean, se, df = numbers
    if not reason and se < _IDENTICAL:
        reason = "every log ratio is the same: real measurements differ, so no interval is built from them"
    half = math.nan if reason else float(stats.t.ppf(0.5 + level / 2, df)) * se
    low, high = (math.exp(mean - half), math.exp(mean + half)) if not reason else (math.nan, math.nan)
    ratio = math.exp(mean) if math.isfinite(mean) else math.nan
    return Estimate(scope, ratio, low, high, level, method, se, df, n_replicates, n_blocks, reason)
