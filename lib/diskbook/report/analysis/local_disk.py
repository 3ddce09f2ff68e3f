"""The analysis of `local-disk`: latency and rate of one disk over I/Os in flight, and where the two meet."""

import math
from typing import Any

import pandas as pd

from diskbook.design.totals import trial_totals
from diskbook.design.vocabulary import Label
from diskbook.facts import quantities
from diskbook.facts.units import KIB
from diskbook.report.analysis.companion_files import Section
from diskbook.report.analysis.run import Analysis, once
from diskbook.report.figures import Picture
from diskbook.report.figures.depth_curves import depth_curves
from diskbook.report.show import headlines
from diskbook.report.show.html import Html, table
from diskbook.stats import knee

SECTIONS = (
    Section(
        "curves and knees",
        part="closed loop",
        has_part=lambda scenario: any(load.rate is None and load.sync is None for load in scenario.workload),
    ),
)
_CAPS = ["arm", "kind", "block_size_bytes", "iops", "mb_s", "words"]
FIRM = 3.0
"""A knee whose interval reaches over a larger factor is not named in a title."""
_HELD = (Label.CAPPED, Label.SATURATED)


def pictures(a: Analysis) -> tuple[Picture, ...]:
    """Figures of this analysis, in the order of the notebook."""
    return (curves(a), a.all_trials, a.percentile_plot)


@once
def curves(a: Analysis) -> Picture:
    """Figure: rate and latency over I/Os in flight, with the knee of each curve."""
    knees = _chosen(a)
    known = knees[knees["knee"].notna()] if len(knees) else knees
    empty = pd.DataFrame(columns=_CAPS)
    return depth_curves(_sweep(a), empty, known, a.looks, 1, _title(known), a.source)


def _title(known: pd.DataFrame) -> str:
    """Say where the knees are, if there are any and their intervals say so much."""
    if known.empty:
        return "Rates rise with I/Os in flight as far as was measured: no knee was met"
    firm = known[known["high"] <= FIRM * known["low"]]
    if len(firm) < len(known):
        return "More I/Os in flight give more rate, then latency; blocks differ too much to say from where"
    return f"The rate stops rising at {_span(known)} I/Os in flight; more of them only wait"


def headline(a: Analysis) -> str:
    """Answer the scenario's question in a sentence: the first curve; "" where the run compares arms."""
    if headlines.of(a.comparisons, a.scenario).rows:
        return ""
    cells = _cells(a)
    if cells.empty:
        return headlines.said_of(a.provenance, "nothing was measured")
    _, rows = next(iter(cells.groupby(["arm", "kind"], sort=False)))
    return headlines.said_of(a.provenance, "; ".join(_latency_and_rate(a, rows)))


def answer(a: Analysis) -> list[str]:
    """Say for reads and writes: latency of a single I/O, highest rate, and the knee between them."""
    cells = _cells(a)
    lines = [_of_curve(a, rows) for _, rows in cells.groupby(["arm", "kind"], sort=False)]
    return [headlines.said_of(a.provenance, line) for line in [*lines, *_commits(a)]]


def knee_table(a: Analysis) -> Html:
    """Latency that does not wait, highest rate, knee and depth for 95 % of it, of each curve."""
    rows = [
        {
            "Arm": a.labels[row["arm"]],
            "Load": f"{int(row['block_size_bytes']) // KIB}K {row['kind']}",
            "Latency that does not wait, ms": row["latency_ms"],
            "Rate on the limit, IOPS": row["cap_iops"],
            "Knee, in flight": _with_interval(row, "knee", "low", "high"),
            "In flight for 95 %": _with_interval(row, "depth_95", "depth_95_low", "depth_95_high"),
            "Blocks": row["n_blocks"],
            "Why not": row["reason"],
        }
        for row in _chosen(a).to_dict("records")
    ]
    return table(rows, f"Knees: latency x highest rate ({a.provenance}). {knee.SHARP_LIMITS}")


def _span(knees: pd.DataFrame) -> str:
    """Least and greatest knee, rounded, e.g. "2 to 3"."""
    low, high = (f"{value:.0f}" for value in (knees["knee"].min(), knees["knee"].max()))
    return low if low == high else f"{low} to {high}"


def _sweep(a: Analysis) -> pd.DataFrame:
    """Trials of plain closed loops; what is made durable, or held at a rate, is no point of a curve."""
    loads = [item.name for item in a.scenario.workload if item.rate is None and item.sync is None]
    totals = trial_totals(a.trials)
    return totals[totals["workload"].isin(loads)]


def _cells(a: Analysis) -> pd.DataFrame:
    return a.cells[a.cells["workload"].isin(_sweep(a)["workload"])]


@once
def _chosen(a: Analysis) -> pd.DataFrame:
    """One row a curve: of these disks, since a machine of one's own is one set of disks."""
    knees = knee.knees(_sweep(a), _cells(a))
    return knees.drop_duplicates(knee.CURVE) if len(knees) else knees


def _of_curve(a: Analysis, cells: pd.DataFrame) -> str:
    """One curve in a sentence."""
    held = cells["label"].isin(_HELD)
    limit = f", where {int(held.sum())} of {len(cells)} depths wait in a queue" if held.any() else ""
    words = "; ".join(_latency_and_rate(a, cells))
    return "; ".join(filter(None, [f"{words}{limit}", _knee_words(a, str(cells["kind"].iloc[0]))]))


def _latency_and_rate(a: Analysis, cells: pd.DataFrame) -> list[str]:
    """Latency of a single I/O, where it was measured, and the highest rate of one curve."""
    kind, arm = str(cells["kind"].iloc[0]), a.labels[str(cells["arm"].iloc[0])]
    block = f"{int(cells['block_size_bytes'].iloc[0]) // KIB}K"
    single = cells[cells["outstanding"] == 1]
    best = cells.sort_values("iops").iloc[-1]
    most = f"the highest rate is {best['iops']:,.0f} IOPS, with {best['outstanding']:.0f} in flight"
    if single.empty:
        return [f"{arm}, {block} {kind}: {most}"]
    return [f"one {block} {kind} on {arm} takes {single['lat_mean_ms'].iloc[0]:.3g} ms", most]


def _knee_words(a: Analysis, kind: str) -> str:
    knees = _chosen(a)
    rows = knees[(knees["kind"] == kind) & knees["knee"].notna()] if len(knees) else knees
    if rows.empty:
        return "no knee: " + "; ".join(set(knees.loc[knees["kind"] == kind, "reason"])) if len(knees) else ""
    return f"the knee is at {_with_interval(rows.iloc[0].to_dict(), 'knee', 'low', 'high')} in flight"


def _commits(a: Analysis) -> list[str]:
    """Say what a durable write takes, and where what was asked to be one was a plain write."""
    loads = [item.name for item in a.scenario.workload if item.sync == "fdatasync"]
    rows = a.trials[a.trials["workload"].isin(loads) & (a.trials["direction"] == "commit")]
    medians = rows[rows["status"] == "ok"].groupby("arm", sort=False)["lat_mean_ms"].median()
    plain = {arm: words for (arm, load), words in a.plain.items() if load in loads}
    return [
        f"{a.labels[str(arm)]}: a {plain.get(str(arm), 'write that is durable before the next')} "
        f"takes {value:.3g} ms"
        for arm, value in medians.items()
    ]


def _with_interval(row: dict[Any, Any], value: str, low: str, high: str) -> str:
    if math.isnan(row[value]):
        return ""
    return quantities.with_interval(f"{row[value]:.1f}", row[low], row[high])
