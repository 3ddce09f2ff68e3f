"""What a post answers: every headline that is decided in a sentence, those that are not by their number."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from diskbook.design.vocabulary import WITHHELD, Verdict
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.report.show import header_card, headlines, locations, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.sentences import Row

MOST_ROWS = 12
"""Rows of a post's table; the report has all."""
_LIMITS = (Verdict.CAPPED, Verdict.SATURATED)


def paragraphs(a: Analysed) -> list[str]:
    """Answer the question: the leading headline with what it holds for, then the others that are decided."""
    lines = headlines.of(a.comparisons, a.scenario)
    scope = header_card.scope(lines.lead, a)
    if lines.lead is None:
        return [f"{capital(a.headline)}. {scope}"]
    decided = [sentence(row, a) for row in lines.others if headlines.is_decided(row)]
    undecided = [row for row in lines.others if not (headlines.is_decided(row) or is_of_limits(row))]
    lead = f"{sentence(lines.lead, a)} {scope}"
    answers, left = [lead, " ".join(decided)], _undecided(undecided, lines)
    # Where what was asked first is not decided, that comes before the answer to another question.
    parts = [_own(a), *([left, *answers] if lines.before else [*answers, left])]
    parts = [locations.with_physical_zones(part, a.trials) for part in parts]
    return [part for part in parts if part]


def _own(a: Analysed) -> str:
    """The answer of the scenario's module as a paragraph; a post says at its top where numbers come from."""
    return f"{capital(a.own_headline.removeprefix(f'{a.provenance}: '))}." if a.own_headline else ""


def of_limits(a: Analysed) -> list[str]:
    """Say each headline whose ratio is one of limits: no disk made it."""
    rows = [row for row in headlines.of(a.comparisons, a.scenario).others if is_of_limits(row)]
    return [
        f"{what_words(row, a)}, {arm_words(row['arm'], a)} against {arm_words(row['base_arm'], a)}: "
        f"{quantities.change(row['ratio'])}, since {_labelled(row['warnings'].partition(sentences.SO)[0], a)}."
        for row in rows
    ]


def sentence(row: Row, a: Analysed) -> str:
    """Say one comparison as an article would: what is higher with which arm, and how many times."""
    what, arm, base = what_words(row, a), arm_words(row["arm"], a), arm_words(row["base_arm"], a)
    if row["metric"] in sentences.METRIC_WORDS:
        what = f"The {decapital(what)}"
    verdict = Verdict.of(row["verdict"])
    if is_of_limits(row):
        return f"{what}, {arm} against {base}: {quantities.change(row['ratio'])}, a ratio of limits."
    if verdict in WITHHELD or math.isnan(row["ratio"]):
        return f"{what} has no ratio of {arm} against {base} ({row['verdict']})."
    numbers = sentences.ratio_words(row) + sentences.attach_words(row)
    if verdict is Verdict.DIFFERENCE:
        way = "higher" if row["ratio"] > 1 else "lower"
        return f"{what} is {way} with {arm} than with {base}: {numbers}."
    if verdict is Verdict.EQUIVALENT:
        margin = row["verdict"].removeprefix(f"{verdict} within ")
        return f"{what} differs by less than {margin} between {arm} and {base}: {numbers}."
    return f"{what} may or may not differ between {arm} and {base}: {numbers}."


def what_words(row: Row, a: Analysed) -> str:
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


def decapital(text: str) -> str:
    """Write a name of `what_words` within a sentence."""
    return text[:1].lower() + text[1:]


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


def ratio(row: Row) -> str:
    """Write the ratio of a comparison for a table: with its interval, of limits, or refused."""
    if is_of_limits(row):
        return f"{quantities.change(row['ratio'])}, of limits"
    if _is_refused(row):
        return "refused"
    if math.isnan(row["ci_low"]):
        return f"{quantities.change(row['ratio'])}, no interval"
    return quantities.change(row["ratio"], row["ci_low"], row["ci_high"], row["level"])


def _row(row: Row, a: Analysed) -> dict[str, str]:
    has_interval = not (_is_refused(row) or math.isnan(row["ci_low"]))
    return {
        "What": what_words(row, a),
        "Compared": f"{a.labels[row['arm']]} / {a.labels[row['base_arm']]}",
        "Ratio": ratio(row),
        "Difference": sentences.difference_words(row) if has_interval else "",
        "Holds for": sentences.scope_words(row, a.scenario) if has_interval else "",
        "Verdict": str(row["verdict"]),
    }


def _is_refused(row: Row) -> bool:
    return math.isnan(row["ratio"]) or Verdict.of(row["verdict"]) in WITHHELD


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


def is_of_limits(row: Row) -> bool:
    """Whether a comparison has a ratio that is one of limits: of rates, where a cell sits on one."""
    is_rate = not str(row["metric"]).startswith("lat")
    return is_rate and Verdict.of(row["verdict"]) in _LIMITS and not math.isnan(row["ratio"])


def _undecided(rows: Sequence[Row], lines: headlines.Headlines) -> str:
    """Count what was asked and is not decided; empty where all is."""
    if not rows:
        return ""
    are = "is" if len(rows) == 1 else "are"
    number = f"Of the {len(lines.rows)} headline comparisons {len(rows)} {are} not decided"
    return f"{number}; the section 'Limits' says why."


def _labelled(text: str, a: Analysed) -> str:
    """Name arms in a reason as readers know them."""
    for name in sorted(a.labels, key=len, reverse=True):
        text = text.replace(f"{name} sits", f"{arm_words(name, a)} sits")
    return text
