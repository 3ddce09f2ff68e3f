"""The analysis of `shared-zrs`: where the disk answers from, the article's claims, and the zone drill."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import (
    RESERVATION_KEYS,
    RESERVATION_TYPE,
    RESERVATION_TYPE_WORDS,
    SILENCE_S,
    TAKE_OVER_STEPS,
    Provenance,
)
from diskbook.facts import quantities
from diskbook.report.analysis import published, published_claims
from diskbook.report.analysis.companion_files import Section
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import Picture
from diskbook.report.show import locations
from diskbook.report.show.html import Html, table
from diskbook.report.show.lead import comparison_in_words
from diskbook.stats.zone_probe import FARTHER, NEAREST, probe

KINDS = {"cold": "cold VM", "standby": "standby VM, disk moved", "shared": "shared disk"}
FAILURES = {"crash": "power cut", "stop": "shutdown", "deallocate": "deallocated"}
NONE = "this run did no drill, so it says nothing about what a failed machine costs"
EMULATED = (
    "times of these emulated drills are the delays that the profile gives the control plane, as run (scaled) "
    "and unscaled, and what the work itself takes here: no finding about Azure"
)


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
    reservation_steps = "; ".join(
        f"{TAKE_OVER_STEPS[step['step']]} {step['unscaled_s']:.2f}" for step in event["steps"]
    )
    return row | {
        "Acknowledged": event["acknowledged"],
        "Lost (RPO)": event["lost"],
        "RTO, s (as run)": event["rto_s"],
        "RTO, s (unscaled)": event["rto_unscaled_s"],
        "Steps, s (unscaled)": reservation_steps,
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


NOT_CHECKED = "This run checked no reservation, so it says nothing about who may write to a shared disk."
ENFORCED_BY_EMULATOR = (
    "emulated: enforced by the emulated disk, set by a stand-in for sg_persist; no finding about Azure"
)
FIRST, SECOND = 0, 1
DONE = {
    "the first registers": (FIRST, "registers its key"),
    "the first reserves": (FIRST, "reserves the disk: from now on only registered machines may write"),
    "the first writes": (FIRST, "writes"),
    "the second writes, unregistered": (SECOND, "writes, not registered"),
    "data of the first": (SECOND, "reads what {first} wrote"),
    "the second registers": (SECOND, "registers its key, too"),
    "the second writes, registered": (SECOND, "writes, now registered"),
    "the second preempts": (SECOND, "preempts: takes the reservation over and removes the key of {first}"),
    "the second writes": (SECOND, "writes"),
    "the first writes, fenced": (FIRST, "writes, its key removed"),
    "data of the second": (FIRST, "reads what {second} wrote"),
    "cleared": (SECOND, "clears the reservation and all keys"),
}
"""By step as the ledger has it: the machine that acts (first or second), and what it does."""


def reservation_steps(a: Analysis) -> pd.DataFrame:
    """One row a step of every reservation check; of a check that was done again, the last."""
    latest = {
        (event["replicate"], event["name"]): event
        for event in a.run.ledger()
        if event["event"] == "finding" and event.get("kind") == "reservation"
    }
    machines = {check.name: (str(check.from_machine), check.machine) for check in a.scenario.check}
    rows = [
        {"Replicate": replicate, "Check": name, "Step": number, **_step_row(step, machines[name])}
        for (replicate, name), event in latest.items()
        for number, step in enumerate(event["steps"], 1)
    ]
    columns = ["Replicate", "Check", "Step", "Machine", "What it did", "What was seen", "As expected"]
    return pd.DataFrame(rows, columns=columns)


def reservation_table(a: Analysis) -> Html:
    """Table of `reservation_steps`; replicate and check are named where there are several."""
    rows = reservation_steps(a)
    if rows.empty:
        return Html(f"<p>{NOT_CHECKED}</p>")
    single = [name for name in ("Replicate", "Check") if rows[name].nunique() == 1]
    whence = ENFORCED_BY_EMULATOR if Provenance.EMULATED in a.provenance else a.provenance
    caption = (
        f"Reservations of type {RESERVATION_TYPE} ({RESERVATION_TYPE_WORDS.lower()}), step by step ({whence})"
    )
    return table(rows.drop(columns=single), caption)


def _step_row(step: Mapping[str, Any], machines: tuple[str, str]) -> dict[str, str]:
    actor, done = DONE.get(step["step"], (None, step["step"]))
    first, second = machines
    expected, observed = (_named(step[key], machines) for key in ("expected", "observed"))
    return {
        "Machine": "" if actor is None else machines[actor],
        "What it did": done.format(first=first, second=second),
        "What was seen": observed,
        "As expected": "yes" if step["ok"] else f"no, expected: {expected}",
    }


def _named(state: str, machines: tuple[str, str]) -> str:
    """State of the disk with machines in place of their keys; a strange key stays as it is."""
    for key, machine in zip(RESERVATION_KEYS, machines, strict=True):
        state = state.replace(f"{key:#x}", machine)
    words = {"keys none": "no key", "keys ": "keys of ", f"type {RESERVATION_TYPE} held by": "reserved by"}
    for recorded, shown in words.items():
        state = state.replace(recorded, shown)
    return state


ARTICLE = "shared-zrs"
SECTIONS = (
    Section("reservations", part="[[check]]", has_part=lambda scenario: bool(scenario.check)),
    Section("zone drills", part="[[drill]]", has_part=lambda scenario: bool(scenario.drill)),
)


def pictures(a: Analysis) -> tuple[Picture, ...]:
    """Figures of this analysis, in the order of the notebook."""
    return (a.ratios, a.all_trials)


def claims_table(a: Analysis) -> Html:
    """The article's claims with verdicts and reasons, and what this run says of each."""
    judged = published_claims.judge(published.assess(published.read()))
    return published_claims.claims_of(judged, ARTICLE, answers(a), a.provenance)


def answers(a: Analysis) -> dict[str, str]:
    """What this run says of each claim, by the claim's first words."""
    zones = probe(a.trials)["zone"].nunique()
    no_zone = "no zone was made to fail, only machines: see the drills"
    shared = [drill for drill in drills(a) if drill["kind"] == "shared" and drill["status"] == "ok"]
    untouched = (
        "; Azure was asked for nothing when the other node took the shared disk over" if shared else ""
    )
    remote = comparison_in_words(a, "zrs-n2", "zrs-n1", "write-qd1")
    return {
        "2 % overhead": f"below the cap: {comparison_in_words(a, 'zrs-n1', 'lrs-n1', 'write-qd1')}",
        "25 % more write latency": f"below the cap: {remote}; "
        "which zone is the remote one differs from disk to disk",
        "not both zones fail alike": no_zone,
        "no manual zone fail-over": no_zone + untouched,
        "monitor the role's zone": "diskbook zone-affinity does, by reads, and says when it has moved back",
        "the disk is said to span two zones": f"read from {zones} zones",
    }


def probe_table(a: Analysis) -> Html:
    """Every zone that a disk was read from, with its ratio to the nearest one."""
    probed, zones = probe(a.trials), locations.zones(a.trials)
    rows = [
        {
            "Replicate": row["replicate"],
            "Disk": row["disk_id"].rsplit("/", 1)[-1],
            "Read from": zones[row["zone"]],
            "Latency, ms": row["lat_ms"],
            "Change from the nearest": _ratio(row),
            "Blocks": row["n_blocks"],
            "Verdict": row["verdict"],
        }
        for row in probed.to_dict("records")
    ]
    return table(rows, f"Reads at queue depth 1 by zone ({a.provenance})")


def probe_words(a: Analysis) -> list[str]:
    """Say of each disk which zone it answers from, and how sure that is."""
    probed, names = probe(a.trials), locations.zones(a.trials)
    lines = []
    for (replicate, disk), zones in probed.groupby(["replicate", "disk_id"], sort=False):
        name = f"{a.provenance}: {str(disk).rsplit('/', 1)[-1]} (replicate {replicate})"
        nearest = zones[zones["verdict"] == NEAREST]
        if nearest.empty:
            lines.append(f"{name}: the nearest zone is not clear; more blocks would tell")
            continue
        farther = zones[zones["verdict"] == FARTHER].sort_values("ratio").to_dict("records")
        others = " and ".join(
            f"{names[row['zone']]} {quantities.change(row['ratio'], row['ci_low'], row['ci_high'])}"
            for row in farther
        )
        lines.append(
            f"{name} answers from {names[nearest['zone'].iloc[0]]}, as latency has it: {others}; what sets "
            "the machines in those zones apart is part of that"
        )
    return lines or ["no disk was read from two zones, so nothing is known of where it answers"]


def _ratio(row: dict[Any, Any]) -> str:
    if row["ratio"] == 1.0:
        return "none"
    if pd.isna(row["ci_low"]):
        return f"{quantities.change(row['ratio'])}, no interval"
    return quantities.change(row["ratio"], row["ci_low"], row["ci_high"])
