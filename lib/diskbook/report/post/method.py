"""How a run measured and judged, in five lines, and how it is made again."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence

from diskbook.design import scenario_file
from diskbook.design.schema import EARLY
from diskbook.design.vocabulary import GateStatus, Provenance
from diskbook.facts.table_writers import capital
from diskbook.facts.units import GIB, MIB
from diskbook.report.show import headlines, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.results import plan as plans

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
    return f"Order: {each}; {blocks} per load, {drawn}. {capital(trials)}."


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
