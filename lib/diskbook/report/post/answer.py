"""What a post answers: every headline that is decided in a sentence, those that are not by their number."""

import math
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import WITHHELD, Provenance, Verdict
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.report.show import headlines, lead, locations, sentences
from diskbook.report.show.analysed import Analysed

MOST_ROWS = 12
"""Rows of a post's table; the report has all."""
_LIMITS = (Verdict.CAPPED, Verdict.SATURATED)


def title(a: Analysed) -> str:
    """Say the finding as a title: of the scenario's module, else the claim of the leading headline."""
    if (own := _own(a)) is not None:
        return own[0]
    row = headlines.of(a.comparisons, a.scenario).lead
    if row is None:
        return a.scenario.scenario.title
    return headlines.said_of(a.provenance, lead.claim(row, a.scenario, a.labels))


def opening(a: Analysed) -> list[str]:
    """First paragraph of a post: of the scenario's module, else none but the answer."""
    own = _own(a)
    return [first(a)] if own is None else [own[1], first(a)]


def first(a: Analysed) -> str:
    """Describe a run in one sentence, as its description does: the answer with both values."""
    return f"{capital(a.headline)}."


def _own(a: Analysed) -> tuple[str, str] | None:
    """Title and first paragraph of the scenario's module, where it has them."""
    own: Any = getattr(getattr(a, "module", None), "post_lead", None)
    return own(a) if callable(own) else None


def others(a: Analysed) -> list[str]:
    """Say every other headline that is decided in one sentence with both values."""
    rows = [row for row in headlines.of(a.comparisons, a.scenario).others if headlines.is_decided(row)]
    sentences_of = [lead.of_row(row, a).removeprefix(headlines.EMULATED) for row in rows]
    return [locations.with_physical_zones(f"{capital(sentence)}.", a.trials) for sentence in sentences_of]


def paragraphs(a: Analysed) -> list[str]:
    """Say how many headlines stay open, and what leads to the others that are decided."""
    lines = headlines.of(a.comparisons, a.scenario)
    open_rows = [row for row in lines.rows if not (headlines.is_decided(row) or is_of_limits(row))]
    number = quantities.many(len(lines.rows), "comparison")
    named = "" if a.provenance == Provenance.IMPORTED else " named before the run"
    left = f"Of {number}{named}, {len(open_rows)} stayed open; 'Limits' says why."
    also = "These comparisons were decided as well:" if others(a) else ""
    return [part for part in (left if open_rows else "", also) if part]


def of_limits(a: Analysed) -> list[str]:
    """Say each headline whose ratio is one of limits: no disk made it."""
    rows = [row for row in headlines.of(a.comparisons, a.scenario).others if is_of_limits(row)]
    return [
        f"{what_words(row, a)}, {arm_words(row['arm'], a)} against {arm_words(row['base_arm'], a)}: "
        f"{quantities.change(row['ratio'])}. "
        f"{capital(row['warnings'].partition(sentences.SO)[0])}."
        for row in rows
    ]


def what_words(row: sentences.Row, a: Analysed) -> str:
    """Name what a comparison measures, e.g. "Write latency at queue depth 1"."""
    if row["metric"] == "lat_mean_ms":
        item = a.scenario.workload_named(row["workload"])
        words = sentences.load_words(item, plain=sentences.is_plain(row))
        return capital(words + (f" ({row['lat_start']})" if row.get("lat_start") else ""))
    return capital(f"{sentences.METRIC_WORDS[row['metric']]} ({a.words[row['workload']]})")


def arm_words(name: str, a: Analysed) -> str:
    """Name an arm as a sentence does: "ZRS from zone 1", "server (4 disks)"."""
    words = a.labels[name].replace(", zone", " from zone")
    what, _, more = words.partition(", ")
    return f"{what} ({more})" if more and "(" not in words else words


def table(a: Analysed) -> tuple[pd.DataFrame, str]:
    """Tabulate headlines and controls with ratio, difference and verdict, and caption that.

    Where none is named all comparisons stand there, and where nothing is compared the cells.
    """
    named = a.comparisons[a.comparisons["family"].isin(["headline", "control"])]
    rows = headlines.ordered(named if len(named) else a.comparisons, a.scenario).to_dict("records")
    if not rows:
        return _cells(a)
    shown = rows[:MOST_ROWS]
    kinds = " and the controls" * any(row["family"] == "control" for row in shown)
    what = f"Headline comparisons{kinds}" if len(named) else "Comparisons to explore"
    left = f"; {len(rows) - len(shown)} more are in the report" * (len(rows) > len(shown))
    frame = pd.DataFrame([_row(row, a) for row in shown])
    empty = [name for name in frame.columns if frame[name].eq("").all()]
    return frame.drop(columns=empty), f"{what} ({a.provenance}){left}"


def change(row: sentences.Row) -> str:
    """Write the change of a comparison for a table: with its interval, of limits, or refused."""
    if is_of_limits(row):
        return f"{quantities.change(row['ratio'])}, of limits"
    if math.isnan(row["ratio"]) or Verdict.of(row["verdict"]) in WITHHELD:
        return "refused"
    if math.isnan(row["ci_low"]):
        return f"{quantities.change(row['ratio'])}, no interval"
    return quantities.change(row["ratio"], row["ci_low"], row["ci_high"], row["level"])


def _row(row: sentences.Row, a: Analysed) -> dict[str, str]:
    value, base_value = lead.levels_text(row, a.trials)
    arm, base_arm = a.labels[row["arm"]], a.labels[row["base_arm"]]
    return {
        "What": what_words(row, a),
        "First": f"{arm}: {value}",
        "Second": f"{base_arm}: {base_value}",
        "Change": change(row),
        "Verdict": str(row["verdict"]),
    }


def _cells(a: Analysed) -> tuple[pd.DataFrame, str]:
    rows = [
        {
            "Arm": a.labels[row["arm"]],
            "Load": a.words[row["workload"]],
            "IOPS": row["iops"],
            "Latency, ms": row["lat_mean_ms"],
            "Label": row["label"],
        }
        for row in a.cells.head(MOST_ROWS).to_dict("records")
    ]
    left = max(0, len(a.cells) - MOST_ROWS)
    more = f"; {left} more are in the report" * (left > 0)
    columns = ["Arm", "Load", "IOPS", "Latency, ms", "Label"]
    return pd.DataFrame(rows, columns=columns), f"Medians over trials ({a.provenance}){more}"


def is_of_limits(row: sentences.Row) -> bool:
    """Whether a comparison has a ratio that is one of limits: of rates, where a cell sits on one."""
    is_rate = not str(row["metric"]).startswith("lat")
    return is_rate and Verdict.of(row["verdict"]) in _LIMITS and not math.isnan(row["ratio"])
