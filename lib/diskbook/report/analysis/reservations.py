"""What the reservation checks of a run showed, step by step: a table for the notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import RESERVATION_KEYS, RESERVATION_TYPE, RESERVATION_TYPE_WORDS, Provenance
from diskbook.report.analysis.run import Analysis
from diskbook.report.show.html import Html, table

NONE = "This run checked no reservation, so it says nothing of who may write to a shared disk."
EMULATED = "emulated: enforced by the emulated disk, set by a stand-in for sg_persist; no finding about Azure"
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


def steps(a: Analysis) -> pd.DataFrame:
    """One row a step of every reservation check; of a check that was done again, the last."""
    latest = {
        (event["replicate"], event["name"]): event
        for event in a.run.ledger()
        if event["event"] == "finding" and event.get("kind") == "reservation"
    }
    machines = {check.name: (str(check.from_machine), check.machine) for check in a.scenario.check}
    rows = [
        {"Replicate": replicate, "Check": name, "Step": number, **_row(step, machines[name])}
        for (replicate, name), event in latest.items()
        for number, step in enumerate(event["steps"], 1)
    ]
    columns = ["Replicate", "Check", "Step", "Machine", "What it did", "What was seen", "As expected"]
    return pd.DataFrame(rows, columns=columns)


def steps_table(a: Analysis) -> Html:
    """Table of `steps`; replicate and check are named where there are several."""
    rows = steps(a)
    if rows.empty:
        return Html(f"<p>{NONE}</p>")
    single = [name for name in ("Replicate", "Check") if rows[name].nunique() == 1]
    whence = EMULATED if Provenance.EMULATED in a.provenance else a.provenance
    caption = (
        f"Reservations of type {RESERVATION_TYPE} ({RESERVATION_TYPE_WORDS.lower()}), step by step ({whence})"
    )
    return table(rows.drop(columns=single), caption)


def _row(step: Mapping[str, Any], machines: tuple[str, str]) -> dict[str, str]:
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
