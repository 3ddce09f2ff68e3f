"""Tables and boxes as HTML for notebooks and reports: few columns, units in heads, scrolled on a phone."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from diskbook.design.grid import tail_needs
from diskbook.design.held_rate import Start
from diskbook.design.totals import of_direction
from diskbook.design.vocabulary import GateStatus, Label, Scope, Verdict
from diskbook.facts import quantities
from diskbook.facts.table_writers import NONE, Notes, capital, escaped, figure
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import Html, folded, table
from diskbook.report.show.sentences import chosen, difference_words, more_measuring as outlooks, sentence
from diskbook.stats import saturation
from diskbook.stats.diagnosis import Diagnosis, Finding
from diskbook.stats.percentiles import APART

METRICS = {
    "lat_mean_ms": "mean latency",
    "lat_p50_ms": "p50 of a typical trial",
    "lat_p99_ms": "p99 of a typical trial",
    "iops": "IOPS",
    "throughput_mb_s": "MB/s",
}

_APART = (
    f"more than {100 * APART:g} % from that of a typical trial: trials differ, and neither figure stands for "
    "the other"
)
_QUEUE = "nothing tells whether this cell waits in a queue: it may be the latency of a limit, not of the disk"


def bullets(items: Sequence[str]) -> Html:
    """Sentences as a list."""
    return Html("<ul>" + "".join(f"<li>{escaped(capital(item))}</li>" for item in items) + "</ul>")


def preformatted(text: str) -> Html:
    """Text of a command, as it prints it."""
    return Html(f"<pre>{escaped(text)}</pre>")


def comparisons(a: Analysed) -> Html:
    """Show every comparison with its ratio in both scopes and its verdict; reasons are footnotes."""
    frame = a.comparisons
    if frame.empty:
        return Html("<p>The scenario names no comparison.</p>")
    notes = Notes()
    keys = ["family", "arm", "base_arm", "workload", "direction", "metric"]
    single = METRICS.get(frame["metric"].iloc[0], "") if frame["metric"].nunique() == 1 else ""
    picked: dict[Any, dict[Any, Any]] = chosen(frame).set_index(keys).to_dict("index")
    rows = []
    for key, group in frame.groupby(keys, sort=False):
        family, arm, base_arm, workload, direction, metric = map(str, key)
        rows.append(
            {
                "Family": family,
                "Load": _load(a, workload, direction, picked[key].get("lat_start", ""))
                + ("" if single else f": {METRICS.get(metric, metric)}"),
                "Arms": f"{a.labels[arm]} / {a.labels[base_arm]}",
                **_scopes(group, notes),
                "Difference": difference_words(picked[key]),
                "p, adjusted": _p_words(picked[key]["p_adjusted"]),
                "Verdict": picked[key]["verdict"],
            }
        )
    caption = (
        f"Ratios{f' of {single}' if single else ''} with intervals in both scopes, {_numbers(frame)} "
        f"({'+'.join(sorted(set(frame['provenance'])))})"
    )
    return table(rows, caption, notes, optional=("Difference", "p, adjusted"))


def _load(a: Analysed, workload: str, direction: str, start: str) -> str:
    """Load in words, of a mixed one its direction; of a held rate with from when its latency counts."""
    load = of_direction(a.words[workload], direction)
    return f"{load} ({start})" if start else load


def _scopes(rows: pd.DataFrame, notes: Notes) -> dict[str, str]:
    """Ratio of one comparison in each scope."""
    scopes = {row["scope"]: row for row in rows.to_dict("records")}
    return {
        capital(scope.words()): _ratio_words(scopes[scope], notes) + _stratum(scopes[scope], notes)
        for scope in Scope
    }


def _stratum(row: Mapping[Any, Any], notes: Notes) -> str:
    """Footnote on the nearest zone that all disks of a general estimate share; empty where none is known."""
    zone = row.get("nearest_zone", "")
    return " " + notes.mark(f"holds for {Scope(row['scope']).words(zone)}") if zone else ""


def _numbers(frame: pd.DataFrame) -> str:
    """How many replicates, and blocks a comparison, e.g. "1 replicate, 2 to 6 blocks"."""
    parts = []
    for name, column in (("replicate", "n_replicates"), ("block", "n_blocks")):
        low, high = int(frame[column].min()), int(frame[column].max())
        number = f"{high}" if low == high else f"{low} to {high}"
        parts.append(f"{number} {name}{'s' * (high != 1)}")
    return ", ".join(parts)


def _p_words(p: float) -> str:
    """p of "no difference" within its family; empty where nothing was tested."""
    if math.isnan(p):
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _ratio_words(row: Mapping[Any, Any], notes: Notes) -> str:
    """Ratio and interval, or that it is refused, with the number of the footnote that says why."""
    note = f" {notes.mark(row['warnings'])}".rstrip()
    if math.isnan(row["ratio"]):
        return f"refused{note}"
    if math.isnan(row["ci_low"]):
        return f"{quantities.change(row['ratio'])}, no interval{note}"
    level = row.get("level", 0.95)
    return f"{quantities.change(row['ratio'], row['ci_low'], row['ci_high'], level)}{note}"


def strata(a: Analysed) -> Html:
    """Show each stratum apart: replicates of one VM zone and nearest zone are never pooled with others."""
    frame = a.compared.strata
    if frame.empty:
        return Html("<p>All replicates are of one stratum: there is nothing to tell apart.</p>")
    notes = Notes()
    rows = [
        {
            "Load": of_direction(a.words[row["workload"]], row["direction"]),
            "Arms": f"{a.labels[row['arm']]} / {a.labels[row['base_arm']]}",
            "Stratum": row["stratum"],
            "Replicates": row["n_replicates"],
            "Ratio": _ratio_words({**row, "warnings": row["reason"]}, notes),
        }
        for row in frame.to_dict("records")
    ]
    return table(rows, "Ratios by stratum, disks like these", notes)


def gates(a: Analysed) -> Html:
    """Show how often each gate passed, and every one that did not, with cause and remedy."""
    frame = a.gates
    counts = frame.groupby(["gate", "status"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=list(GateStatus), fill_value=0).reset_index()
    counts = counts.rename(columns={"gate": "Gate"})
    open_ = frame[frame["status"] != GateStatus.PASSED]
    rows = pd.DataFrame(
        {
            "Gate": open_["gate"],
            "Status": open_["status"],
            "Comparison": [
                f"{a.labels[arm]} / {a.labels[base]}, {a.words[load]}"
                for arm, base, load in zip(open_["arm"], open_["base_arm"], open_["workload"], strict=True)
            ],
            "Cause": open_["cause"],
            "Remedy": open_["remedy"],
        }
    )
    grouped = rows.groupby(["Gate", "Status", "Cause", "Remedy"], sort=False, as_index=False)
    rows = grouped.agg(Comparisons=("Comparison", listed))
    shown = table(counts, "Gates by outcome, over comparisons") + table(rows, "Gates that did not pass")
    return folded("Gate by gate, with causes and remedies", shown)


def listed(names: pd.Series) -> str:
    """Name up to three, count more."""
    return "; ".join(names) if len(names) <= 3 else f"{len(names)} comparisons"


def cells(a: Analysed) -> Html:
    """Show every cell with its label: below cap, on a limit and on which, or in a queue, with the evidence.

    Below it stands what else is known of the limits, where `throttle.with_evidence` added that.
    """
    frame, labels, words = a.cells, a.labels, a.words
    order = frame["arm"].map(list(labels).index) * len(words) + frame["workload"].map(list(words).index)
    frame = frame.iloc[order.argsort(kind="stable")]
    notes = Notes()
    rows = [
        {
            "Arm": labels[row["arm"]],
            "Load": words[row["workload"]],
            "Trials": row["n_trials"],
            "IOPS": row["iops"],
            "MB/s": row["mb_s"],
            "Latency, ms": _sent(row),
            "Label": label_words(row),
            "Rate set by": row["binds"].partition(":")[0],
            "Outstanding / cap, ms": row["predicted_lat_ms"],
            "Evidence": notes.mark(row["evidence"]),
        }
        for row in frame.to_dict("records")
    ]
    caption = "Cells: medians over trials, and what sets the rate of each"
    limited = _limited(frame, labels, words) if "in_force" in frame else ""
    return Html(table(rows, caption, notes) + limited)


def _sent(row: Mapping[Any, Any]) -> float | str:
    """Latency by the tool: of a held rate it counts from when an I/O was sent, and is a lower bound."""
    latency = float(row["lat_mean_ms"])
    held = not math.isnan(row.get("rate_offered", math.nan)) and not math.isnan(latency)
    return at_least(latency) if held else latency


def at_least(value: float) -> str:
    """Write a number as a lower bound."""
    return f"≥ {figure(value)}"


def label_words(row: Mapping[Any, Any]) -> str:
    """Label of a cell; one that is below a limit of which nothing is known says that."""
    unlimited = math.isnan(row["share"]) and row["label"] == Label.BELOW_CAP
    return "no limit is known" if unlimited else str(row["label"])


def _limited(frame: pd.DataFrame, labels: dict[str, str], words: dict[str, str]) -> str:
    """What limited each cell: limit, credit, and the platform's own word (from `throttle.with_evidence`)."""
    shown = pd.DataFrame(
        {
            "Arm": frame["arm"].map(labels),
            "Load": frame["workload"].map(words),
            "Lowest limit in force": frame["in_force"],
            "Of it": ["" if math.isnan(share) else f"{100 * share:.0f} %" for share in frame["of_limit"]],
            "Burst credit": frame["credit"],
            "Platform's metrics": frame["platform"],
            "Trials that agree": frame["agrees"],
        }
    )
    has = int(frame["agrees"].ne("").sum())
    caption = (
        "What limited each cell: limit, credit, and the share consumed as the platform reports it; "
        f"{has} of {len(frame)} cells have such evidence"
        + "; a trial agrees where its rate and the platform say the same of the limit"
        * bool(has)
    )
    kept = enumerate(filter(None, frame["platform_note"].unique()), 1)
    notes = Notes({note: number for number, note in kept})
    return table(shown, caption, notes, optional=["Trials that agree"])


_BELOW = [Label.BELOW_CAP, Label.LIMIT_NOT_KNOWN, Label.UNASSESSED]


def percentiles(a: Analysed) -> Html:
    """Show percentiles of cells below caps, of a typical trial and of all I/Os, where there are enough I/Os.

    Footnotes mark where the two disagree, and cells of which nothing tells whether they wait in a queue. Deep
    cells that may sit on a limit are left out.
    """
    cells = a.cells
    kept = cells["label"].isin(_BELOW) & ~saturation.is_open(cells)
    below = cells.loc[kept, ["arm", "workload", "label"]]
    frame = a.percentiles.merge(below, on=["arm", "workload"])
    notes = Notes()
    rows = []
    for key, group in frame.groupby(["workload", "direction", "arm", "start", "label"], sort=False):
        workload, direction, arm, start, label = map(str, key)
        cell = {"Load": a.words[workload], "Direction": direction, "Arm": a.labels[arm]}
        last = {"Counted": start, "Note": notes.mark(_QUEUE) if label == Label.UNASSESSED else ""}
        of_cell = group.to_dict("records")
        kinds = {
            "a typical trial": [_bounded(row["lat_ms"], start) for row in of_cell],
            f"all {of_cell[0]['n_ios']:,} I/Os": [_all_ios(row, notes) for row in of_cell],
        }
        names = [f"p{100 * row['quantile']:g}, ms" for row in of_cell]
        rows += [
            {**cell, "Percentiles of": kind, **dict(zip(names, values, strict=True)), **last}
            for kind, values in kinds.items()
            if set(values) != {NONE}
        ]
    caption = (
        "Percentiles of cells below caps: of a typical trial (geometric mean over trials), and of all I/Os, "
        "in brackets with the number of trials that hold half of the I/Os beyond; "
        f"p99.9 of a typical trial needs {tail_needs(0.999):,} I/Os in each"
    )
    return table(rows, caption, notes, optional=("Counted", "Note"))


def _all_ios(row: Mapping[Any, Any], notes: Notes) -> str:
    """Percentile of all I/Os, with the trials that hold half of those beyond it; a note if it is apart."""
    if math.isnan(row["all_ios_ms"]):
        return NONE
    holders = f" ({row['n_half']} of {row['n_trials']})" if row["n_half"] else ""
    note = f" {notes.mark(_APART)}" if row["apart"] else ""
    return f"{_bounded(row['all_ios_ms'], row['start'])}{holders}{note}"


def _bounded(value: float, start: str) -> str:
    """Write a latency, as a lower bound where it is one."""
    if math.isnan(value):
        return NONE
    return at_least(value) if start == Start.SENT else figure(value)


def percentile_ratios(a: Analysed) -> Html:
    """Show ratios of the percentiles of a typical trial, one row a comparison; reasons are footnotes.

    That of all I/Os stands beside where it is another, or the only one.
    """
    notes, frame = Notes(), a.percentile_ratios
    rows = []
    keys = ["arm", "base_arm", "workload", "direction", "scope", "nearest_zone"]
    known = frame[["ratio", "all_ios_ratio"]].notna().any(axis=1).groupby(frame["quantile"]).transform("any")
    for key, group in frame[known].groupby(keys, sort=False):
        arm, base_arm, workload, direction, scope, zone = map(str, key)
        shown = {
            f"p{100 * row['quantile']:g}": _ratio_words({**row, "warnings": row["reason"]}, notes)
            + _all_ios_ratio(row, notes)
            for row in group.to_dict("records")
        }
        arms = f"{a.labels[arm]} / {a.labels[base_arm]}"
        load = _load(a, workload, direction, group["start"].iloc[0])
        rows.append({"Load": load, "Arms": arms, "Scope": Scope(scope).words(zone), **shown})
    caption = "Ratios of the percentiles of a typical trial, from pairs of trials within blocks"
    return table(rows, caption, notes)


def _all_ios_ratio(row: Mapping[Any, Any], notes: Notes) -> str:
    """Ratio of the percentiles of all I/Os, where it disagrees or there is no other; empty elsewhere."""
    alone = math.isnan(row["ratio"]) and row["all_ios_ratio"] > 0
    if not (row["apart"] or alone):
        return ""
    note = f" {notes.mark(_APART)}" if row["apart"] else ""
    return f"; of all I/Os {quantities.change(row['all_ios_ratio'])}{note}"


def published(a: Analysed) -> Html:
    """Show published figures beside measured ones; what each supports is a footnote."""
    notes, frame = Notes(), a.published
    rows = pd.DataFrame(
        {
            "Published": frame["published"],
            "Load": frame["load"].map(a.words),
            "Value": [
                f"{printed} = {value:,.1f} {unit}" if printed else f"{value:,.10g} {unit}"
                for printed, value, unit in zip(frame["printed"], frame["value"], frame["unit"], strict=True)
            ],
            "By Little's law": frame["little"],
            "Here": [
                f"{value:,.{0 if unit == 'IOPS' else 2}f} {unit}"
                for value, unit in zip(frame["measured"], frame["unit"], strict=True)
            ],
            "Ratio": frame["ratio"],
            "Verdict": frame["verdict"],
            "Note": [notes.mark(note) for note in frame["supports"]],
        }
    )
    return table(rows, "Published figures beside the measured medians", notes)


def capped(a: Analysed) -> Html:
    """Say why comparisons of cells on a limit, known or not, have no latency ratio."""
    queues = a.comparisons["verdict"].isin([Verdict.CAPPED, Verdict.SATURATED])
    rows = chosen(a.comparisons[queues]).to_dict("records")
    return bullets([sentence(row, a.scenario) for row in rows] or ["no comparison sits on a cap"])


def throttled(a: Analysed, findings: Sequence[Finding]) -> Html:
    """Count the cells of each verdict of a diagnosis; folded, each cell with what holds it and what helps."""
    if not findings:
        return Html("<p>Nothing was measured yet.</p>")
    verdicts = [finding.verdict for finding in findings]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Diagnosis if verdict in verdicts)
    rows = [
        {
            "Arm": a.labels.get(finding.arm, finding.arm),
            "Load": a.words.get(finding.workload, finding.workload),
            "Verdict": str(finding.verdict),
            "Why": finding.cause[:1].upper() + finding.cause[1:],
            "What helps": finding.remedy,
        }
        for finding in findings
    ]
    total = f"Of {len(findings)} cell{'s' * (len(findings) != 1)}: {counts}."
    return Html(f"<p>{escaped(total)}</p>{folded('Cell by cell', table(rows, 'What holds each cell'))}")


def more_measuring(a: Analysed) -> Html:
    """Say what more blocks, or more replicates, would bring; and another replicate, with its cost."""
    return bullets(outlooks(a.comparisons, a.scenario, a.replicate_cost))
