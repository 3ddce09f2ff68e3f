"""What the zone drills of a run showed: a table, sentences, and the rows of the figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import SILENCE_S, TAKE_OVER_STEPS, Provenance
from diskbook.report.analysis.run import Analysis
from diskbook.report.show.html import Html, table

KINDS = {"cold": "cold VM", "standby": "standby VM, disk moved", "shared": "shared disk"}
FAILURES = {"crash": "power cut", "stop": "shutdown", "deallocate": "deallocated"}
NONE = "this run did no drill, so it says nothing of what a failed machine costs"
EMULATED = (
    "times of these emulated drills are the delays that the profile gives the control plane, as run (scaled) "
    "and unscaled, and what the work itself takes here: no finding about Azure"
)
COLUMNS = ("name", "replicate", "kind", "failure", "step", "real_s", "unscaled_s", "begin_s")


def drills(a: Analysis) -> list[dict[str, Any]]:
    """Outcome of every drill, the last one of each name and replicate; those that were cut are left out."""
    latest = {}
    for event in a.run.ledger():
        if event["event"] == "drill" and event["status"] != "begun":
            latest[event["replicate"], event["name"]] = event
    return list(latest.values())


def drill_table(a: Analysis) -> Html:
    """Every drill: blocks acknowledged and lost (RPO), time to the first write (RTO), and its steps."""
    rows = [_row(event) for event in drills(a)]
    columns = ["Drill", "Replicate", "Take-over", "Failure", "Zones", "Acknowledged", "Lost (RPO)"]
    columns += ["RTO, s (as run)", "RTO, s (unscaled)", "Steps, s (unscaled)"]
    note = f"; {EMULATED}" if _is_emulated(a) else ""
    return table(pd.DataFrame(rows, columns=columns), f"Zone drills ({a.provenance}){note}")


def _row(event: Mapping[str, Any]) -> dict[str, Any]:
    row = {
        "Drill": event["name"],
        "Replicate": event["replicate"],
        "Take-over": KINDS[event["kind"]],
        "Failure": FAILURES[event["failure"]],
        "Zones": f"{event['from_zone'] or 'none'} to {event['zone'] or 'none'}",
    }
    if event["status"] != "ok":
        return row | {"Steps, s (unscaled)": f"failed: {event['error']}"}
    steps = "; ".join(f"{TAKE_OVER_STEPS[step['step']]} {step['unscaled_s']:.2f}" for step in event["steps"])
    return row | {
        "Acknowledged": event["acknowledged"],
        "Lost (RPO)": event["lost"],
        "RTO, s (as run)": event["rto_s"],
        "RTO, s (unscaled)": event["rto_unscaled_s"],
        "Steps, s (unscaled)": steps,
    }


def drill_words(a: Analysis) -> list[str]:
    """Say what was lost, how long each way of taking over took and what most of that was."""
    events = drills(a)
    if not events:
        return [f"{a.provenance}: {NONE}"]
    lines = [f"{a.provenance}: {_lost([event for event in events if event['status'] == 'ok'])}"]
    lines += [f"{a.provenance}: {_drill_in_words(event)}" for event in events]
    lines.append(
        "that a machine has failed is noticed by its connection, or by a silence of "
        f"{SILENCE_S:g} s; a cluster's heartbeat has its own time-out, which comes on top"
    )
    if _is_emulated(a):
        lines.append(EMULATED)
    return lines


def _lost(done: Sequence[Mapping[str, Any]]) -> str:
    if not done:
        return "no drill was done to its end, so it is not known what would be lost"
    blocks, lost = sum(event["acknowledged"] for event in done), sum(event["lost"] for event in done)
    outcome = "none was lost (RPO 0)" if not lost else f"{lost:,} were lost (RPO is not 0)"
    return f"{len(done)} drills, {blocks:,} acknowledged blocks read back by the other machine: {outcome}"


def _drill_in_words(event: Mapping[str, Any]) -> str:
    who = f"{event['name']} (replicate {event['replicate']}): {KINDS[event['kind']]}"
    who += f", {FAILURES[event['failure']]}"
    if event["status"] != "ok":
        return f"{who}: the drill failed: {event['error']}"
    longest = max(event["steps"], key=lambda step: step["unscaled_s"])
    times = f"{event['rto_unscaled_s']:.1f} s from the last write of {event['from_machine']} to the first of "
    times += event["machine"]
    if f"{event['rto_s']:.1f}" != f"{event['rto_unscaled_s']:.1f}":
        times += f" (unscaled; {event['rto_s']:.1f} s as run)"
    late = event.get("late", 0)
    again = f"; attempt {event.get('attempt')}, since the ones before failed (the ledger says why)"
    return (
        f"{who}: {event['lost']} of {event['acknowledged']:,} blocks lost; {times}, of which "
        f"{longest['unscaled_s']:.1f} s are '{TAKE_OVER_STEPS[longest['step']]}'"
        + (f"; {late:,} more were acknowledged after the take-over had begun, and not read back" * bool(late))
        + again * (event.get("attempt", 1) > 1)
    )


def _is_emulated(a: Analysis) -> bool:
    return Provenance.EMULATED in a.provenance
