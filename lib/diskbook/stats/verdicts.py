"""Verdicts: what a comparison supports, from its gates, its interval, its family and its margin.

"No difference" is never the lack of a small p: it needs two one-sided tests against a stated margin. Gates
come first, since at a cap three blocks would prove two disks equal at once.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from diskbook.design.vocabulary import Verdict
from diskbook.stats.ratios import Estimate

ALPHA = 0.05


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down adjustment: controls the chance of any false alarm in the family; NaN stays NaN.

    Examples
    --------
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
    estimate: Estimate,
    p_adjusted: float,
    p_equivalence: float,
    margin: float,
    family: str,
    alpha: float = ALPHA,
) -> Verdict:
    """Decide between difference, equivalence and neither, gates having passed.

    Equivalence goes first: a difference smaller than the margin is one that the scenario said does not
    matter. A control (two disks of a kind) may differ a little, so it counts as a difference only beyond the
    margin.
    """
    if estimate.reason:
        return Verdict.INCONCLUSIVE
    if p_equivalence < alpha:
        return Verdict.EQUIVALENT
    if family == "control":
        bound = math.log1p(margin)
        beyond = math.log(estimate.low) > bound or math.log(estimate.high) < -bound
        return Verdict.DIFFERENCE if beyond else Verdict.INCONCLUSIVE
    return Verdict.DIFFERENCE if p_adjusted < alpha else Verdict.INCONCLUSIVE
