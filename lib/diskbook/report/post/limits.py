"""What a post may not be read as: provenance in its first lines, and its limits at the end."""

from __future__ import annotations

from diskbook.design.held_rate import Start
from diskbook.design.vocabulary import Provenance, Verdict
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.report.post.answer import arm_words, decapital, is_of_limits, ratio, what_words
from diskbook.report.show import answers, headlines, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import OWN_HARDWARE
from diskbook.report.show.sentences import Row

_OF_PROVENANCE = {
    Provenance.EMULATED: (
        "**Emulated, not measured on Azure.** All numbers measured here come from the workbook's own "
        "emulator and say nothing about Azure's disks."
    ),
    Provenance.INVENTORY: OWN_HARDWARE,
    Provenance.IMPORTED: (
        "**Measured by others.** What settings were in force, and what else ran beside it, nobody here "
        "watched."
    ),
}


def provenance(a: Analysed) -> str:
    """Say where the numbers come from, for the first lines; empty where they are Azure's own."""
    return " ".join(words for kind, words in _OF_PROVENANCE.items() if kind in a.provenance)


def items(a: Analysed) -> list[str]:
    """Say what limits the answer: its doubts, what is not decided and why, noise floor, protocol, checks."""
    lines = headlines.of(a.comparisons, a.scenario)
    doubts = [] if lines.lead is None else _of_lead(lines.lead)
    undecided = [_undecided(row, a) for row in lines.others if not _has_answer(row)]
    checks = "; ".join(sentences.gates_in_words(a.gates)[1:])
    return [
        *doubts,
        *undecided,
        *_bound(lines),
        *_noise_floor(a),
        *_standing(lines, a),
        *([f"Of the checks {checks}."] if checks else []),
    ]


def _has_answer(row: Row) -> bool:
    return headlines.is_decided(row) or is_of_limits(row)


def _of_lead(row: Row) -> list[str]:
    first = sentences.first_reason(row)
    return [f"{capital(first)}."] if first else []


def _undecided(row: Row, a: Analysed) -> str:
    """Say why a headline is not decided: by its interval, where that covers 1, else by its first reason."""
    arms = f"{arm_words(row['arm'], a)} against {arm_words(row['base_arm'], a)}"
    verdict, what = row["verdict"], f"{what_words(row, a)}, {arms}, is not decided"
    if Verdict.of(verdict) is Verdict.INCONCLUSIVE and row["ci_low"] <= 1 <= row["ci_high"]:
        interval = quantities.change_interval(row["ci_low"], row["ci_high"], row["level"])
        return f"{what} ({verdict}): its interval, {interval}, covers 0 and is too wide to call them equal."
    return f"{what} ({verdict}): {sentences.first_reason(row)}."


def _bound(lines: headlines.Headlines) -> list[str]:
    words = {
        Start.SENT: "Where latency is a lower bound, waits before an I/O was sent are not in it.",
        Start.INTENDED: "Held rates have linear arrivals: I/Os are due at equal gaps, not by chance.",
    }
    starts = {row.get("lat_start", "") for row in lines.rows}
    return [sentence for start, sentence in words.items() if start in starts]


def _noise_floor(a: Analysed) -> list[str]:
    """Say how far two disks of one kind differ, or that nothing here tells it."""
    rows = sentences.chosen(a.comparisons[a.comparisons["family"] == "control"]).to_dict("records")
    if not rows:
        return ["No control comparison is named: how far two disks of one kind differ is not known here."]
    parts = [f"{decapital(what_words(row, a))} {ratio(row)} ({row['verdict']})" for row in rows]
    return [f"Two disks of one kind, the noise floor: {'; '.join(parts)}."]


def _standing(lines: headlines.Headlines, a: Analysed) -> list[str]:
    if lines.lead is None:
        return []
    return [f"The answer is {answers.standings(a)[lines.place]}; docs/reference/protocol.md has the points."]
