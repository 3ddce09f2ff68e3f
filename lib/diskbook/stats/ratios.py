"""Ratios of two arms with intervals: one log ratio a block, Student's t over blocks or over replicates.

The unit is the trial, on the log scale: a ratio is what a reader asks for, and machine, block and hour
cancel in a difference of logs. A block gives one log ratio, however often it repeats a cell, since repeats
within a block share its conditions. Intervals were chosen by simulated coverage: t over replicate means
holds 94 to 96 % for disks of the kind; t over blocks holds 94 to 98 % for the very disks measured, and 46
to 95 % for others, so that one replicate gets no general claim.

A verdict says what a comparison supports, from its gates, its interval, its family and its margin.

"No difference" is never the lack of a small p: it needs two one-sided tests against a stated margin. Gates
come first, since at a cap three blocks would prove two disks equal at once.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from diskbook.design.grid import grid, mean_over_repeats
from diskbook.design.totals import measured_rows
from diskbook.design.vocabulary import Scope, Verdict
from diskbook.facts.nan_equal import NanEqual
from diskbook.stats import intervals
from diskbook.stats.intervals import LEVEL, Interval

ONE_REPLICATE = "one replicate says nothing about other disks of the kind; measure 2 or more, better 5"
_NOTHING = Interval(*[np.asarray(math.nan)] * 5)


@dataclass(frozen=True, eq=False)
class Estimate(NanEqual):
    """A ratio with its interval, or the reason why there is none.

    - `scope`: which disks it speaks of.
    - `ratio`, `low`, `high`: arm / base arm; NaN where not estimated.
    - `log_se`, `df`: standard error of the mean log ratio and its degrees of freedom.
    - `reason`: why there is no interval; empty when there is one.
    - `rounding`: how far the rounding of what was printed may have moved the log ratio; part of the interval.
    """

    scope: Scope
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
    rounding: float = 0.0

    @property
    def interval(self) -> Interval:
        """The same on the log scale, as `diskbook.stats.intervals` has it."""
        logs = [math.log(value) if value > 0 else math.nan for value in (self.ratio, self.low, self.high)]
        return Interval(*map(np.asarray, [*logs, self.log_se, self.df]))

    @property
    def p_difference(self) -> float:
        """Two-sided p of "the ratio is 1"; NaN without an interval."""
        interval = self.interval
        nearest = np.clip(interval.mean, -self.rounding, self.rounding)
        return float(intervals.p_difference(interval, nearest))

    def p_equivalence(self, margin: float) -> float:
        """P of the two one-sided tests for a ratio within 1/(1 + margin) to 1 + margin; NaN without interval.

        The band is symmetric in logs, so that swapping the arms changes nothing.
        """
        return float(intervals.p_equivalence(self.interval, math.log1p(margin) - self.rounding))


def narrowest(estimates: Iterable[Estimate], otherwise: float) -> float:
    """Half-width in logs of the narrowest interval; that of a relative margin where there is none."""
    halves = [math.log(estimate.high / estimate.low) / 2 for estimate in estimates if not estimate.reason]
    return min(halves, default=math.log1p(otherwise))


def log_means(trials: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean log of a metric over the repeats of each block.

    Values that have no logarithm (missing, zero, negative, infinite) are left out, and said by
    `gates.data.values_gate`.

    Returns a table by (replicate, block) with columns (arm, workload, direction); NaN where nothing was
    measured.
    """
    cells = grid(measured_rows(trials), metric)
    means = mean_over_repeats(np.log(cells.values)).reshape(len(cells.keys), -1).T
    index = pd.MultiIndex.from_product([cells.replicates, cells.blocks], names=["replicate", "block"])
    columns = pd.MultiIndex.from_tuples(list(cells.keys), names=["arm", "workload", "direction"])
    return pd.DataFrame(means, index=index, columns=columns).dropna(how="all")


def block_log_ratios(
    means: pd.DataFrame, arm: str, base_arm: str, workload: str, direction: str
) -> pd.Series:
    """Log ratio arm / base arm of every block that measured both; index (replicate, block)."""
    columns = [(arm, workload, direction), (base_arm, workload, direction)]
    if not all(column in means.columns for column in columns):
        return pd.Series(dtype=float, index=means.index[:0])
    difference = means[columns[0]] - means[columns[1]]
    return difference.dropna()


def as_array(log_ratios: pd.Series) -> np.ndarray:
    """Log ratios as an array [replicate, block], in the order met, NaN where a replicate has fewer blocks."""
    codes, replicates = pd.factorize(log_ratios.index.get_level_values(0))
    place = pd.Series(codes).groupby(codes).cumcount().to_numpy()
    array = np.full((len(replicates), place.max(initial=-1) + 1), np.nan)
    array[codes, place] = log_ratios.to_numpy(float)
    return array


def over_replicates(log_ratios: pd.Series | np.ndarray, level: float = LEVEL) -> Estimate:
    """Student t over the means of replicates (fresh machines and disks): holds for disks of this kind."""
    array = _array(log_ratios)
    interval, counts = intervals.over_replicates(array, level), _counts(array)
    return _estimate(
        interval, Scope.LIKE_THESE, "t over replicates", level, counts, _too_few("replicate", counts[0])
    )


def estimates(log_ratios: pd.Series | np.ndarray, level: float = LEVEL) -> list[Estimate]:
    """Estimate one comparison in both scopes, the general one first.

    With one replicate the general scope is refused, with the reason.

    - `log_ratios`: series with index (replicate, block), or array [replicate, block] with NaN where there is
      none.

    Three replicates of two blocks: the disks differ more from each other than the blocks do.

    >>> for estimate in estimates(np.log([[2.0, 2.02], [2.2, 2.22], [2.4, 2.42]])):
    ...     print(f"{estimate.scope}: {estimate.ratio:.2f}, {estimate.low:.2f} to {estimate.high:.2f}")
    disks like these: 2.20, 1.76 to 2.76
    these disks: 2.20, 2.19 to 2.22
    """
    return estimates_of_many(_array(log_ratios)[None], level)[0]


def estimates_of_many(log_ratios: np.ndarray, level: float = LEVEL) -> list[list[Estimate]]:
    """Estimate many comparisons at once, as `estimates` does each.

    Over the blocks of one replicate and within replicates are one formula: with one replicate they agree.

    - `log_ratios`: shape [comparison, replicate, block], NaN where there is none.
    """
    general = intervals.over_replicates(log_ratios, level)
    these = intervals.within_replicates(log_ratios, level)
    there = np.isfinite(log_ratios)
    counts = zip(there.any(axis=-1).sum(axis=-1).tolist(), there.sum(axis=(-2, -1)).tolist(), strict=True)
    return [
        _both(Interval(*of_kind), Interval(*of_these), level, count)
        for *of_kind, of_these, count in zip(*general, zip(*these, strict=True), counts, strict=True)
    ]


def _both(general: Interval, these: Interval, level: float, counts: tuple[int, int]) -> list[Estimate]:
    """Estimates of one comparison in both scopes."""
    replicates, blocks = counts
    if replicates > 1:
        reason = _too_few("block", 1) if np.isnan(these.se) else ""
        return [
            _estimate(general, Scope.LIKE_THESE, "t over replicates", level, counts, ""),
            _estimate(these, Scope.THESE, "t over blocks within replicates", level, counts, reason),
        ]
    return [
        _estimate(_NOTHING, Scope.LIKE_THESE, "refused", level, counts, ONE_REPLICATE),
        _estimate(these, Scope.THESE, "t over blocks", level, (1, blocks), _too_few("block", blocks)),
    ]


def refused(estimate: Estimate, reason: str) -> Estimate:
    """Return the same ratio without an interval, and why."""
    nothing = math.nan
    return replace(
        estimate, low=nothing, high=nothing, log_se=nothing, df=nothing, method="refused", reason=reason
    )


def widened(estimate: Estimate, rounding: float) -> Estimate:
    """Return the same ratio with an interval that reaches farther on both sides.

    - `rounding`: how far rounding may have moved its log (`rounding_of`).
    """
    factor = math.exp(rounding)
    return replace(estimate, low=estimate.low / factor, high=estimate.high * factor, rounding=rounding)


def rounding_of(values: np.ndarray) -> np.ndarray:
    """Return how far the rounding of printed values may have moved the log of each cell's mean.

    DiskSpd prints latencies with three decimals: 0.079 ms may be anything from 0.0785 to 0.0795, in all
    trials alike. The step is read off the values, so this works for any tool.

    - `values`: shape [cell, ...]; NaN for what is missing.

    Returns (shape [cell]) half a step of values printed with 2 to 6 decimals, as a share of the typical
    value; 0 where values show no step.
    """
    values = values.reshape(len(values), math.prod(values.shape[1:]))
    there, half_steps = values > 0, np.zeros(len(values))
    # What is round to few decimals is so to more: the fewest come last.
    for decimals in range(6, 1, -1):
        rounded = np.round(values, decimals)
        stepped = (~there | (np.abs(values - rounded) <= 1e-9 * rounded)).all(axis=1) & there.any(axis=1)
        if not stepped.any():
            break
        half_steps[stepped] = 0.5 * 10.0**-decimals
    for cell in np.flatnonzero(half_steps):
        half_steps[cell] /= np.median(values[cell][there[cell]])
    return half_steps


def _array(log_ratios: pd.Series | np.ndarray) -> np.ndarray:
    return as_array(log_ratios) if isinstance(log_ratios, pd.Series) else np.asarray(log_ratios, dtype=float)


def _counts(array: np.ndarray) -> tuple[int, int]:
    """Count the replicates that have at least one block, and all blocks."""
    there = np.isfinite(array)
    return int(there.any(axis=-1).sum()), int(there.sum())


def _too_few(unit: str, n: int) -> str:
    """Say why there is no interval; empty when there are enough."""
    if n > 1:
        return ""
    return (
        f"{n} {unit}{'' if n == 1 else 's'}: no spread to build an interval from; measure 3 {unit}s or more"
    )


def _estimate(
    interval: Interval, scope: Scope, method: str, level: float, counts: tuple[int, int], reason: str
) -> Estimate:
    """One comparison's numbers as ratios, with the reason where there is no interval."""
    mean, low, high, se, df = (float(value) for value in interval)
    if not reason and math.isnan(low):
        reason = "every log ratio is the same: real measurements differ, so no interval is built from them"
    ratio, low, high = _exp(mean), _exp(low), _exp(high)
    if not reason and not (low > 0 and math.isfinite(high)):
        reason, low, high = (
            "log ratios differ too much for an interval; look at the trials",
            math.nan,
            math.nan,
        )
    return Estimate(scope, ratio, low, high, level, method, se, df, *counts, reason)


def _exp(log: float) -> float:
    """Exponential; infinite in place of an overflow."""
    return math.exp(log) if not log > 700 else math.inf


ALPHA = 0.05


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down adjustment: controls the chance of any false alarm in the family; NaN stays NaN.

    >>> holm(np.array([0.04, 0.01, np.nan, 0.03])).tolist()
    [0.06, 0.03, nan, 0.06]
    """
    p = np.asarray(p, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known])]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps)) if len(order) else []
    return adjusted


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Benjamini-Hochberg's step-up adjustment: controls the share of false alarms; NaN stays NaN.

    The same numbers as `scipy.stats.false_discovery_control`, whose import takes longer than all that is
    computed here.
    """
    p = np.asarray(p, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known])]
    steps = p[order] * len(order) / np.arange(1, len(order) + 1)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(steps[::-1])[::-1]) if len(order) else []
    return adjusted


def adjust(p: pd.Series, family: pd.Series, scope: pd.Series) -> pd.Series:
    """Adjust p-values: Holm over the headline family, Benjamini-Hochberg over the rest, each scope apart."""
    values, adjusted = p.to_numpy(float), np.full(len(p), np.nan)
    headline, scopes = (family == "headline").to_numpy(bool), scope.to_numpy(object)
    for name in set(scopes):
        for rows, method in ((headline, holm), (~headline, benjamini_hochberg)):
            chosen = rows & (scopes == name)
            adjusted[chosen] = method(values[chosen])
    return pd.Series(adjusted, index=p.index)


def decide(
    estimate: Estimate, p_adjusted: float, p_equivalence: float, margin: float, family: str
) -> Verdict:
    """Decide between difference, equivalence and neither, gates having passed.

    Equivalence goes first: a difference smaller than the margin is one that the scenario said does not
    matter. A control (two disks of a kind) may differ a little, so it counts as a difference only beyond the
    margin.
    """
    if estimate.reason:
        return Verdict.INCONCLUSIVE
    if p_equivalence < ALPHA:
        return Verdict.EQUIVALENT
    if family == "control":
        bound = math.log1p(margin)
        beyond = math.log(estimate.low) > bound or math.log(estimate.high) < -bound
        return Verdict.DIFFERENCE if beyond else Verdict.INCONCLUSIVE
    return Verdict.DIFFERENCE if p_adjusted < ALPHA else Verdict.INCONCLUSIVE
