"""Tables of published figures and of claims made from them, as HTML."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from diskbook.facts.table_writers import Notes, capital
from diskbook.report.analysis.published.claims import ClaimVerdict
from diskbook.report.show.html import Html, table

WORDS = {
    "iops": "IOPS",
    "lat_mean": "mean latency",
    "lat_min": "minimum",
    **dict.fromkeys(("cap_iops", "cap_throughput"), "disk limit"),
    **dict.fromkeys(("vm_cap_iops", "vm_cap_throughput"), "VM limit"),
    **dict.fromkeys(("vm_burst_cap_iops", "vm_burst_cap_throughput"), "VM burst limit"),
}
DECIMALS = {"ms": 3, "MB/s": 1}


def figures_of(assessed: pd.DataFrame, article: str) -> Html:
    """Every published figure of an article in base units, with its limit; what it supports is a footnote.

    A set-up is named once, in the first of its rows.
    """
    notes = Notes()
    rows: list[dict[str, str]] = []
    setup = ""
    for row in assessed[assessed["article"] == article].to_dict("records"):
        before, setup = setup, _setup(row)
        rows.append({"Set-up": "" if setup == before else setup, **_figure(row, notes)})
    caption = f"{len(rows)} figures of {article} (published)"
    return table(rows, caption, notes)


def _figure(row: Mapping[Any, Any], notes: Notes) -> dict[str, str]:
    """One published figure, cell by cell."""
    base = f"{row['base']:,.{DECIMALS.get(row['unit'], 0)}f} {row['unit']}"
    share = "" if math.isnan(row["share"]) else f", {100 * row['share']:.0f} %"
    operation = {"0": "read", "100": "write"}.get(row["write_pct"], "")
    return {
        "Load": " ".join(filter(None, [row["block_size"], row["pattern"], operation])),
        "Depth": row["outstanding_total"],
        "What": WORDS.get(row["metric"], row["metric"].replace("_", " ")),
        "Printed": f"{row['printed']} {row['unit_as_printed']}".strip(),
        "Base units": "" if math.isnan(row["base"]) else base,
        "Little's law": row["little"],
        "Of the limit": f"{row['label']}{share}",
        "Supports": notes.mark(row["supports"]),
    }


def _setup(row: Mapping[Any, Any]) -> str:
    """Disk, redundancy, zone and options in one line; a zone that was assumed is left out."""
    options = "" if row["options"] == "none" else row["options"]
    zone = "" if "disk_zone_relation" in row["assumed"] else row["disk_zone_relation"]
    disk = " ".join(filter(None, [row["disk"], row["redundancy"]]))
    return ", ".join(filter(None, [disk or row["vm_size"], zone if disk else "", options]))


def claims_of(
    judged: pd.DataFrame, article: str, here: Mapping[str, str] | None = None, provenance: str = ""
) -> Html:
    """Claims of an article with verdict and reason; and with what a run says of each."""
    # Answers of a run are named by the first words of a claim.
    frame = judged.loc[judged["article"] == article, ["claim", "verdict", "why"]]
    names = {"claim": "Claim", "verdict": "Verdict", "why": "Why"}
    if here is None:
        return table(frame.rename(columns=names).map(capital), f"Claims of {article} (published)")
    own = f"Here ({provenance})"
    frame[own] = [_answer(claim, here) for claim in frame["claim"]]
    caption = f"Claims of {article} (published), and what this run says of them ({provenance})"
    return table(frame.rename(columns=names).map(capital), caption)


def _answer(claim: str, here: Mapping[str, str]) -> str:
    return next((answer for start, answer in here.items() if claim.startswith(start)), "nothing")


def verdict_counts(judged: pd.DataFrame) -> Html:
    """How many claims of each article get which verdict."""
    counts = judged.groupby(["article", "verdict"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=list(ClaimVerdict), fill_value=0).reset_index()
    return table(counts.rename(columns={"article": "Article"}), "Claims by verdict (published)")
