"""What more of the same measuring would bring to an interval, if the spread stays what it was.

Half-width of n + m units: that of n, times t(n + m - 1) / t(n - 1), times the root of n / (n + m). The
variance of a mean over replicates has a part from their blocks, which alone shrinks with more blocks. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from diskbook.stats.intervals import LEVEL, quantile
from diskbook.tables.schema import COMPARISONS
from diskbook.tables.vocabulary import Scope

MORE = (5, 15)
"""Replicates, or blocks, more that a reader is told about."""
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


@dataclass(frozen=True)
class Outlook:
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
