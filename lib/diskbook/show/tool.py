"""What readers must know about how a load was made: remarks on lines given word for word, notes of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from diskbook.scenario.model import Scenario, Workload

_STEPS = {"prefill": "filled in order with", "overwrite": "written over at random with"}


def of_workload(load: Workload) -> list[str]:
    """Lines about a workload that is a line of DiskSpd: the line itself, and what to know of it."""
    if load.verbatim is None:
        return []
    return [f"the line: {load.verbatim}", *load.remarks]


def flagged(table: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    """Add the remarks of each workload to the warnings of its comparisons."""
    remarks = {load.name: load.remarks for load in scenario.workload if load.remarks}
    if not remarks or table.empty:
        return table
    warnings = [
        "; ".join(filter(None, [words, *remarks.get(name, ())]))
        for name, words in zip(table["workload"], table["warnings"].fillna(""), strict=True)
    ]
    return table.assign(warnings=warnings)


def facts(scenario: Scenario, ledger: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Rows for the table of the environment: lines, remarks, notes of tools, and what was written."""
    rows = [(f"load {load.name}", words) for load in scenario.workload for words in of_workload(load)]
    counts: dict[tuple[str, str], int] = {}
    steps: dict[str, None] = {}
    for event in ledger:
        trial = event["event"] == "trial"
        written = [f"writes {event['content']}"] if event.get("content") else []
        if not trial and written:
            steps[f"{_STEPS[event['event']]} {event['content']}"] = None
        for note in [*(event.get("notes") or ()), *written] if trial else ():
            key = (str(event["workload"]), str(note))
            counts[key] = counts.get(key, 0) + 1
    rows += [("before the first trial", words) for words in steps]
    return rows + [(f"load {name}", f"{note} ({n} trials)") for (name, note), n in counts.items()]
