"""What a post may not be read as: provenance in its first lines, and its limits at the end."""

from __future__ import annotations

from diskbook.design.held_rate import Start
from diskbook.design.vocabulary import Provenance, Verdict
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.report.post.answer import change, is_of_limits
from diskbook.report.show import answers, header_card, headlines, lead, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import BY_OTHERS, BY_US, OWN_HARDWARE
from diskbook.report.show.sentences import Row

_OF_PROVENANCE = {
    Provenance.EMULATED: "The emulator is part of the workbook: its numbers say nothing about Azure's disks.",
    Provenance.INVENTORY: OWN_HARDWARE,
    Provenance.IMPORTED: BY_OTHERS,
    Provenance.AZURE: BY_US,
}
_ON_AZURE = {
    Provenance.EMULATED: "No, on an emulator, which plays latencies and limits from a profile.",
    Provenance.INVENTORY: "No, on hosts of our own.",
    Provenance.IMPORTED: "Not by us; the conditions are those that the results tell.",
}


def provenance(a: Analysed) -> str:
    """Say where the numbers come from, for the first lines."""
    return " ".join(words for kind, words in _OF_PROVENANCE.items() if kind in a.provenance)


def items(a: Analysed) -> list[str]:
    """Answer what a reader would ask: where measured, for what it holds, what is open, how sure it is."""
    lines = headlines.of(a.comparisons, a.scenario)
    on_azure = [words for kind, words in _ON_AZURE.items() if kind in a.provenance]
    doubts = [] if lines.lead is None else _of_lead(lines.lead)
    undecided = [_undecided(row, a) for row in lines.others if not _has_answer(row)]
    return [
        *(f"Was this measured on Azure? {words}" for words in on_azure),
        f"Does it hold for other disks? {header_card.scope(lines.lead, a)}",
        *doubts,
        *undecided,
        *_bound(lines),
        *_noise_floor(a),
        *_of_attach(lines),
        *_standing(lines, a),
    ]


def _has_answer(row: Row) -> bool:
    return headlines.is_decided(row) or is_of_limits(row)


def _of_lead(row: Row) -> list[str]:
    reason = sentences.first_reason(row)
    return [f"What weakens the answer? {capital(reason)}."] if reason else []


def _undecided(row: Row, a: Analysed) -> str:
    """Say why a headline is not decided: by its interval, where that covers 0, else by its first reason."""
    what, is_one, *names = lead.parts(row, a.scenario, a.labels)
    first, second = (name.removeprefix("on ").removeprefix("from ") for name in names)
    do, verdict = "Does" if is_one else "Do", Verdict.of(row["verdict"])
    question = f"{do} {what} differ between {first} and {second}?"
    if verdict is Verdict.INCONCLUSIVE and row["ci_low"] <= 1 <= row["ci_high"]:
        interval = quantities.change_interval(row["ci_low"], row["ci_high"], row["level"])
        return f"{question} Not clear: the change may be none ({interval})."
    return f"{question} Not decided ({row['verdict']}): {sentences.first_reason(row)}."


def _of_attach(lines: headlines.Headlines) -> list[str]:
    """Say that an attach may have had an effect, where it was not checked or not excluded."""
    doubts = dict.fromkeys(filter(None, (sentences.attach_words(row).strip("; ") for row in lines.rows)))
    return [f"Could attaching the disks have mattered? {capital('; '.join(doubts))}."] if doubts else []


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
        return ["How far do two disks of one kind differ? Not known: no control comparison was named."]
    parts = [
        f"By {change(row)} for {lead.parts(row, a.scenario, a.labels).what} ({row['verdict']})"
        for row in rows
    ]
    return [f"How far do two disks of one kind differ? {'. '.join(parts)}."]


def _standing(lines: headlines.Headlines, a: Analysed) -> list[str]:
    if lines.lead is None:
        return []
    standing = answers.standings(a)[lines.place]
    return [f"Does it meet the protocol? It is {standing}. docs/reference/protocol.md explains the points."]
