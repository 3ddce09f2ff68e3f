"""What more of the same measuring would bring to an interval, if the spread stays what it was.

Half-width of n + m units: that of n, times t(n + m - 1) / t(n - 1), times the root of n / (n + m). The
variance of a mean over replicates has a part from their blocks, which alone shrinks with more blocks.

One replicate more is predicted as the run stands: its log ratio lies at the mean, give or take s times the
root of 1 + 1/n times a t of n - 1 degrees of freedom (predictive distribution of a normal sample under the
reference prior; A. Gelman et al., Bayesian Data Analysis, section 3.2). That gives every interval that n + 1
replicates can show, with its probability: the assurance. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from diskbook.base.nan_equal import NanEqual
from diskbook.stats.intervals import LEVEL, quantile
from diskbook.stats.verdicts import ALPHA
from diskbook.tables.schema import COMPARISONS
from diskbook.tables.vocabulary import Scope

MORE = (5, 15)
"""Replicates, or blocks, more that a reader is told about."""
_DRAWS = (np.arange(2000) + 0.5) / 2000
"""Probabilities at which a replicate to come is put; the assurance is right to 0.1 %."""
KEYS = [name for name in COMPARISONS.key if name != "scope"]
"""Columns that name a comparison; its rows differ in scope."""


class VarianceSplit(NamedTuple):
    """Variance of the mean over replicates, and the part of it that comes from blocks within replicates."""

    total: float
    within: float

    @property
    def by_chance(self) -> bool:
        """Whether replicates agree more closely than their own blocks do, as can only be by chance."""
        return self.total < self.within

    def with_blocks(self, factor: float) -> float:
        """Variance with that many times the blocks: the part between replicates stays."""
        return self.total - self.within * (1 - 1 / factor)


@dataclass(frozen=True, eq=False)
class Outlook(NanEqual):
    """What more measuring would bring to one interval; half-widths on the log scale.

    Attributes
    ----------
    unit, n
        What is counted ("replicates" of a general interval, else "blocks"), and how many there are.
    now
        Half-width.
    narrowed
        Half-widths with each of `MORE` units more.
    twice_the_blocks
        Half-width of a general interval with twice the blocks; NaN where that is not known.
    by_chance
        Whether replicates agree more closely than their own blocks do, so that the next interval will be
        wider.
    """

    unit: str
    n: int
    now: float
    narrowed: tuple[float, ...]
    twice_the_blocks: float
    by_chance: bool


def outlook(row: Mapping[Any, Any], comparisons: pd.DataFrame) -> Outlook:
    """Say what more measuring would bring to one comparison.

    Parameters
    ----------
    row
        The comparison in one scope, with an interval (`schema.COMPARISONS`).
    comparisons
        Both scopes of it, among others.
    """
    general = row["scope"] == Scope.LIKE_THESE
    unit, n = ("replicates", row["n_replicates"]) if general else ("blocks", row["n_blocks"])
    now, level = half_width(row), float(row["level"])
    split = variance_split(row, comparisons) if general else None
    twice = math.nan
    if split is not None and not split.by_chance:
        twice = float(quantile(level, n - 1)) * math.sqrt(split.with_blocks(2))
    more = tuple(narrowed(now, n, n + units, level) for units in MORE)
    return Outlook(unit, n, now, more, twice, split is not None and split.by_chance)


class Assurance(NamedTuple):
    """Probability that one replicate more reaches something.

    Attributes
    ----------
    width
        A half-width of at most the comparison's margin.
    verdict
        A difference, at the hardest step of the family, or equivalence within the margin.
    """

    width: float
    verdict: float


def assurance(row: Mapping[Any, Any], margin: float, family: int = 1) -> Assurance:
    """Say how probably one replicate more reaches the margin as half-width, and a verdict.

    Parameters
    ----------
    row
        The comparison in the general scope, with an interval over two replicates or more.
    margin
        Relative difference that matters, as the scenario names it.
    family
        Number of headline comparisons; a difference is held against 5 % / family (Holm's hardest step).
    """
    n, bound = int(row["n_replicates"]), math.log1p(margin)
    mean = math.log(row["ci_low"] * row["ci_high"]) / 2
    sd = half_width(row) / float(quantile(row["level"], n - 1)) * math.sqrt(n)
    coming = special.stdtrit(n - 1, _DRAWS)
    means = mean + sd * math.sqrt(1 + 1 / n) * coming / (n + 1)
    errors = sd * np.sqrt((n - 1 + coming**2) / n / (n + 1))
    narrow = float(quantile(row["level"], n)) * errors <= bound
    differs = np.abs(means) > float(quantile(1 - ALPHA / family, n)) * errors
    equal = np.abs(means) + float(quantile(1 - 2 * ALPHA, n)) * errors < bound
    return Assurance(float(narrow.mean()), float((differs | equal).mean()))


def half_width(row: Mapping[Any, Any]) -> float:
    """Half-width on the log scale of a comparison's interval."""
    return math.log(row["ci_high"] / row["ci_low"]) / 2


def narrowed(half: float, n: int, planned: int, level: float = LEVEL) -> float:
    """Half-width with `planned` units in place of `n`, at the spread seen."""
    spread = half * math.sqrt(n) / float(quantile(level, n - 1))
    return float(quantile(level, planned - 1)) * spread / math.sqrt(planned)


def variance_split(row: Mapping[Any, Any], comparisons: pd.DataFrame) -> VarianceSplit | None:
    """Split the variance behind a general interval; None where blocks show no spread of their own.

    Parameters
    ----------
    row
        The comparison in the general scope.
    comparisons
        Among them the same comparison in the scope of the very disks measured.
    """
    same = (comparisons[KEYS] == [row[key] for key in KEYS]).all(axis=1)
    these = comparisons[same & (comparisons["scope"] == Scope.THESE) & comparisons["ci_low"].notna()]
    df = row["n_blocks"] - row["n_replicates"]
    if these.empty or df < 1:
        return None
    within = these.iloc[0].to_dict()
    return VarianceSplit(_variance(row, row["n_replicates"] - 1), _variance(within, df))


def _variance(row: Mapping[Any, Any], df: float) -> float:
    """Squared standard error that an interval was made of."""
    return float((half_width(row) / quantile(row["level"], df)) ** 2)
