"""Gate: numbers that cannot be true together, or are not of what was asked for, compare nothing.

Of closed loops `data.little_gate` judges the I/Os in flight, and more strictly; here are those of rates and
pauses, and everything else that `stats.plausibility` looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from diskbook.design.vocabulary import Verdict
from diskbook.stats.gates import Gate, failed, passed
from diskbook.stats.plausibility import Doubt, Kind

PLAUSIBLE = "plausibility"


def plausible_gate(arms: Sequence[str], by_arm: Sequence[Sequence[Doubt]], metric: str) -> Gate:
    """Every trial of both cells must have numbers that agree with each other and with what was asked for.

    A p50 that no mean allows spoils a comparison of percentiles; the mean is held against Little's law.

    Parameters
    ----------
    arms, by_arm
        Names, and doubts (`plausibility.doubts`) of both cells.
    metric
        What is compared.
    """
    doubts = [doubt for of_arm in by_arm for doubt in of_arm]
    if not doubts:
        return passed(PLAUSIBLE, "the numbers of every trial agree with each other and with what was asked")
    parts = [_words(arm, of_arm) for arm, of_arm in zip(arms, by_arm, strict=True) if of_arm]
    kinds = [kind for kind in Kind if any(doubt.kind is kind for doubt in doubts)]
    remedy = "; ".join(kind.remedy for kind in kinds)
    grave = any(doubt.grave for doubt in doubts) or (Kind.MEDIAN in kinds and metric.startswith("lat_p"))
    return failed(PLAUSIBLE, " and ".join(parts), remedy, Verdict.INVALID if grave else None)


def _words(arm: str, doubts: Sequence[Doubt]) -> str:
    """The first doubt of each kind, with the number of trials."""
    counts = Counter(doubt.kind for doubt in doubts)
    first = {doubt.kind: doubt for doubt in reversed(doubts)}
    parts = [f"{first[kind].words} ({n} trial{'s' * (n != 1)})" for kind, n in counts.items()]
    return f"{arm}: {', '.join(parts)}"
