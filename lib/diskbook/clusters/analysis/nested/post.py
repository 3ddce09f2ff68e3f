"""Title and first paragraph of a post on nested resiliency: what more copies survive, and what they cost."""

import pandas as pd

from diskbook.clusters.analysis.nested import arms, losses, saturated
from diskbook.design.vocabulary import Verdict
from diskbook.facts import quantities
from diskbook.report.show import headlines
from diskbook.report.show.analysed import Analysed

_LITTLE = 1.1
"""Ratio of latencies up to which a title speaks of little waiting."""
_HALF = (0.45, 0.55)
_NESTED = "nested-mirror"


def lead(a: Analysed) -> tuple[str, str] | None:
    """Return the title and the first paragraph; None where latency, rate or losses were not measured."""
    waiting, rate = _waiting(a), _rate(a)
    played = losses.matrix(a)
    played = played[played["online"] != ""]
    nested, two_way = (_of(played, arms.WORDS[kind]) for kind in (_NESTED, arms.BASE))
    if waiting is None or rate is None or nested.empty or two_way.empty:
        return None
    wait = "little waiting" if waiting <= _LITTLE else f"{quantities.change(waiting)} waiting"
    half = "half the throughput" if _HALF[0] <= rate <= _HALF[1] else f"{1 - rate:.0%} of the throughput"
    title = f"keeping four copies instead of two costs {wait} and {half}"
    sentences = [
        f"a nested mirror on two nodes {_survived(nested)}",
        f"A two-way mirror {_survived(two_way)}",
        f"The price: writes take {quantities.changed(waiting, 'longer', 'less time')}, and a full queue "
        f"of them runs {quantities.changed(rate, 'faster', 'slower')}",
    ]
    first, *others = sentences
    paragraph = ". ".join([headlines.said_of(a.provenance, first), *others])
    return headlines.said_of(a.provenance, title), f"{paragraph}."


def _waiting(a: Analysed) -> float | None:
    """Ratio of the write latencies below all limits, where it was decided."""
    name = arms.first(a, _NESTED)
    for row in headlines.of(a.comparisons, a.scenario).rows:
        is_write = a.scenario.workload_named(row["workload"]).write_pct == 100
        of_both = (row["arm"], row["base_arm"]) == (name, arms.base(a))
        if of_both and is_write and Verdict.of(row["verdict"]) in headlines.DECIDED:
            return float(row["ratio"])
    return None


def _rate(a: Analysed) -> float | None:
    """Ratio of the rates of small writes with full queues."""
    rows = saturated.ratios(a)
    rows = rows[(rows["kind"] == _NESTED) & (rows["write_pct"] == 100)].sort_values("block_size_bytes")
    return float(rows["ratio"].iloc[0]) if len(rows) else None


def _of(played: pd.DataFrame, words: str) -> pd.DataFrame:
    return played[played["kind"].str.startswith(f"{words},")]


def _survived(rows: pd.DataFrame) -> str:
    """Say how many of the losses played a volume survived."""
    lost = int((rows["online"] == "no").sum())
    if not lost:
        return "stayed online in every loss that was played"
    return f"went offline in {lost} of {len(rows)}"
