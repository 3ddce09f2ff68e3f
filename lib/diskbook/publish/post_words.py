"""What a post answers: every headline that is decided in a sentence, those that are not by their number."""

import json
import math
import shlex
from collections.abc import Sequence
from typing import Any

import pandas as pd

from diskbook.design import scenario_file, totals
from diskbook.design.held_rate import Start
from diskbook.design.schema import EARLY
from diskbook.design.vocabulary import WITHHELD, GateStatus, Provenance, Verdict
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.facts.units import GIB, MIB
from diskbook.report.show import headlines, lead, lead as lead_words, locations, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import BY_OTHERS, BY_US, OWN_HARDWARE
from diskbook.results import plan as plans

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
        words += f" ({row['lat_start']})" if row.get("lat_start") else ""
    else:
        words = f"{sentences.METRIC_WORDS[row['metric']]} ({a.words[row['workload']]})"
    return capital(totals.of_direction(words, row["direction"]))


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


MOST_NAMES = 6
_UNKNOWN = "unknown"
"""What an import has for a size or a region that it was not told."""


def lines(a: Analysed) -> list[str]:
    """Say what was compared, under which loads, in which order, how it was judged, and what was checked."""
    return [_set_up(a), _loads(a), _order(a), _judged(a), _checked(a)]


def again(a: Analysed) -> list[str]:
    """Command lines that measure the same again, analyse what was measured, and write this post."""
    made = {} if a.provenance == Provenance.IMPORTED else {measured_by(a): "measures it again"}
    made |= {f"diskbook report {a.run.name}": "analyses what was measured here, without any machine"}
    made |= {f"diskbook post {a.run.name}": "writes this post"}
    wide = max(map(len, made))
    return [f"{line:{wide}}  # {what}" for line, what in made.items()]


def measured_by(a: Analysed) -> str:
    """Command line that measures what a run did, with its settings."""
    name, preset, manifest = a.scenario.name, a.scenario.preset, a.manifest
    if preset == scenario_file.SAMPLE:
        return f"diskbook sample {name}"
    scenario = name if name in scenario_file.names() else f"DIR/{name}.toml"
    words = ["diskbook", "run", scenario, "--cloud", str(manifest.get("cloud")), "--preset", preset]
    if a.provenance == Provenance.INVENTORY:
        words += ["--hosts", "FILE"]
    for key, value in (manifest.get("overrides") or {}).items():
        words += ["--set", f"{key}={json.dumps(value)}"]
    emulator = manifest.get("emulator") or {}
    for option in ("profile", "seed"):
        if emulator.get(option) is not None:
            words += [f"--emulator-{option}", str(emulator[option])]
    return shlex.join(words)


def _set_up(a: Analysed) -> str:
    arms = _listed([a.labels[arm.name] for arm in a.scenario.arm])
    machines = dict.fromkeys(a.scenario.machine_named(arm.machine).size for arm in a.scenario.arm)
    sizes = ", ".join(size for size in machines if size != _UNKNOWN)
    is_placed = a.provenance != Provenance.INVENTORY and a.scenario.region != _UNKNOWN
    where = ", ".join([sizes] * bool(sizes) + [f"in {a.scenario.region}"] * is_placed)
    return f"Compared: {arms}; on {where}." if sizes else f"Compared: {arms}."


def _loads(a: Analysed) -> str:
    measured = [item for item in a.scenario.workload if (a.trials["workload"] == item.name).any()]
    if not measured:
        return "Loads: none was measured."
    versions = a.trials[["tool", "tool_version"]].dropna().drop_duplicates().itertuples(index=False)
    tools = ", ".join(sorted({name if tool in name else f"{tool} {name}" for tool, name in versions}))
    times = _range([item.runtime_s for item in measured], "s")
    sizes = _range([item.working_set_gib * GIB / MIB for item in measured], "MiB")
    names = _listed([a.words[item.name] for item in measured])
    return f"Loads: {names}. With {tools}, {times} per trial, working set {sizes}{_filled(a)}."


def _filled(a: Analysed) -> str:
    events = {event["event"] for event in a.run.ledger()}
    if "prefill" not in events:
        return ""
    return f", filled{' and written over' * ('overwrite' in events)} before the first trial"


def _order(a: Analysed) -> str:
    number = a.scenario.design.replicates
    blocks = _range([item.blocks for item in a.scenario.workload], "block")
    each = f"{number} replicates, each with fresh machines and disks" if number > 1 else "1 replicate"
    status = a.trials.drop_duplicates("trial")["status"]
    finished, lost = int((status == "ok").sum()), int((~status.isin(["ok", EARLY])).sum())
    drawn = "arms and loads in random order within each block"
    if a.provenance == Provenance.IMPORTED:
        each, drawn = "measured by others", "their order is theirs"
    failed = f", {lost:,} failed" * (lost > 0)
    trials = f"{finished:,} trial{'s' * (finished != 1)} finished{failed}"
    early = plans.early_stop(a.run)
    stopped = f" {capital(early)}." if early else ""
    return f"Order: {each}; {blocks} per load, {drawn}. {capital(trials)}.{stopped}"


def _judged(a: Analysed) -> str:
    lead = headlines.of(a.comparisons, a.scenario).lead
    rows = sentences.chosen(a.comparisons)
    known = rows[rows["ci_low"].notna()]
    if known.empty:
        return "Judged: no comparison has an interval."
    row = known.iloc[0] if lead is None or math.isnan(lead["ci_low"]) else lead
    margins = sorted({f"{100 * item.margin:g} %" for item in a.scenario.comparison})
    method = f"by Student's {row['method']}" if row["method"].startswith("t ") else f"({row['method']})"
    return (
        f"Judged: each block gives one log ratio, with {100 * row['level']:.3g} % intervals {method}. The p "
        f"values of headlines are adjusted by Holm. Equal means an interval within {' or '.join(margins)}."
    )


def _checked(a: Analysed) -> str:
    passed = int((a.gates["status"] == GateStatus.PASSED).sum())
    left = "" if passed == len(a.gates) else "; the report names the others"
    share = f"Checked: {passed} of {len(a.gates)} checks passed{left}."
    if a.provenance == Provenance.IMPORTED or not a.run.ledger() or not plans.is_written(a.run):
        return f"{share} No plan shows what was asked before the run."
    changed = plans.is_scenario_changed(a.run)
    order = "scenario was changed after the plan" if changed else "comparisons were fixed before the run"
    return f"{share} The {order}. Latencies of cells on a limit are never compared."


def _listed(names: Sequence[str]) -> str:
    """Name up to six, count more."""
    shown = list(names[:MOST_NAMES])
    more = [f"and {len(names) - len(shown)} more"] * (len(names) > len(shown))
    return "; ".join(shown + more)


def _range(values: Sequence[float], unit: str) -> str:
    low, high = min(values), max(values)
    plural = "s" * (unit == "block" and high > 1)
    return f"{low:,.6g} {unit}{plural}" if low == high else f"{low:,.6g} to {high:,.6g} {unit}{plural}"


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


def limits(a: Analysed) -> list[str]:
    """Answer what a reader would ask: where measured, for what it holds, what is open, how sure it is."""
    lines = headlines.of(a.comparisons, a.scenario)
    on_azure = [words for kind, words in _ON_AZURE.items() if kind in a.provenance]
    doubts = [] if lines.lead is None else _of_lead(lines.lead)
    undecided = [
        _undecided(row, a) for row in lines.others if not (headlines.is_decided(row) or is_of_limits(row))
    ]
    return [
        *(f"Was this measured on Azure? {words}" for words in on_azure),
        f"Does it hold for other disks? {locations.scope(lines.lead, a)}",
        *doubts,
        *undecided,
        *_bound(lines),
        *_noise_floor(a),
        *_of_attach(lines),
        *_standing(lines, a),
    ]


def _of_lead(row: sentences.Row) -> list[str]:
    reason = sentences.first_reason(row)
    return [f"What weakens the answer? {capital(reason)}."] if reason else []


def _undecided(row: sentences.Row, a: Analysed) -> str:
    """Say why a headline is not decided: by its interval, where that covers 0, else by its first reason."""
    what, is_one, *names = lead_words.parts(row, a.scenario, a.labels)
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
        f"By {change(row)} for {lead_words.parts(row, a.scenario, a.labels).what} ({row['verdict']})"
        for row in rows
    ]
    return [f"How far do two disks of one kind differ? {'. '.join(parts)}."]


def _standing(lines: headlines.Headlines, a: Analysed) -> list[str]:
    if lines.lead is None:
        return []
    standing = lead_words.standings(a)[lines.place]
    return [f"Does it meet the protocol? It is {standing}. docs/reference/protocol.md explains the points."]
