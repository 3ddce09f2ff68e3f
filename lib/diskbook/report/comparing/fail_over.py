"""`--fail-over 5%`: an exit status for batch use."""

from __future__ import annotations

import math
from typing import NamedTuple

from diskbook.facts.units import percent
from diskbook.report.comparing.compared import Beside
from diskbook.report.comparing.pairs import Pair, label

NONE_WORSE, WORSE, NOT_TOLD = 0, 3, 4


class Outcome(NamedTuple):
    """The exit status, and why in a sentence."""

    exit_code: int
    words: str


def judge(beside: Beside, share: float) -> Outcome:
    """Tell whether any interval lies wholly on the worse side: latency up or rate down by more than a share.

    A comparison that gets no verdict (one replicate, a cap, an interim run) tells nothing, whatever its
    numbers are. Not to tell counts for headline comparisons; where there are none, for all.

    Parameters
    ----------
    share
        E.g. 0.05; the worse side of a rate begins at 1 / 1.05, so that both are alike in logs.

    Returns
    -------
    Outcome
        3 when one is worse, else 4 when one cannot be told, else 0.
    """
    worse = [pair for pair in beside.pairs if pair.verdict is not None and _is_worse(pair, share)]
    if worse:
        return Outcome(WORSE, f"worse by more than {percent(share)}: {_listed(worse)}")
    headline = [pair for pair in beside.pairs if pair.family == "headline"]
    untold = [pair for pair in headline or beside.pairs if pair.verdict is None]
    if untold or beside.left_out:
        names = "; ".join(
            filter(None, [_listed(untold), *(f"{item.run}: {item.what}" for item in beside.left_out)])
        )
        return Outcome(NOT_TOLD, f"cannot be told for {names}")
    return Outcome(NONE_WORSE, f"no interval lies beyond {percent(share)} on the worse side")


def _is_worse(pair: Pair, share: float) -> bool:
    bound = math.log1p(share)
    if pair.key[-1].startswith("lat"):
        return bool(pair.estimate.low > bound)
    return bool(pair.estimate.high < -bound)


def _listed(pairs: list[Pair]) -> str:
    return "; ".join(f"{label(pair.key)} ({pair.other} / {pair.first})" for pair in pairs)
