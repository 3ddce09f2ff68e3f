"""What readers must know about how a load was made: remarks on lines given word for word, notes of tools."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from diskbook.design import totals
from diskbook.design.model import Scenario, Workload

PlainCells = Mapping[tuple[str, str], str]
"""Cells (arm, workload) whose writes were to be durable and were plain, with the reason."""
BOTH_ARMS = "both arms"

_STEPS = {"prefill": "filled in order with", "overwrite": "written over at random with"}


def of_workload(load: Workload) -> list[str]:
    """Lines about a workload that is a line of DiskSpd: the line itself, and what to know of it."""
    if load.verbatim is None:
        return []
    return [f"the line: {load.verbatim}", *load.remarks]


def flagged(table: pd.DataFrame, scenario: Scenario, plain: PlainCells | None = None) -> pd.DataFrame:
    """Add the remarks of each workload to the warnings of its comparisons, and where writes were plain."""
    remarks, plain = {load.name: load.remarks for load in scenario.workload if load.remarks}, plain or {}
    if not (remarks or plain) or table.empty:
        return table
    warnings = [
        "; ".join(
            filter(None, [row["warnings"] or "", *remarks.get(row["workload"], ()), _plain(row, plain)])
        )
        for row in table.fillna({"warnings": ""}).to_dict("records")
    ]
    return table.assign(warnings=warnings)


def _plain(row: Mapping[Any, Any], plain: PlainCells) -> str:
    """Say which arms of a comparison wrote plainly what was to be durable; empty where none did."""
    cells = [(row[role], row["workload"]) for role in ("arm", "base_arm")] if plain else []
    arms = [cell[0] for cell in cells if cell in plain]
    words = "; ".join(dict.fromkeys(plain[cell] for cell in cells if cell in plain))
    return f"{BOTH_ARMS if len(arms) == 2 else f'{arms[0]} alone'}: {words}" if arms else ""


def plain_cells(scenario: Scenario, trials: pd.DataFrame, guest: pd.DataFrame) -> PlainCells:
    """Say of each cell (arm, workload) that was to write durably, and did not, why."""
    syncs = {load.name: load.sync for load in scenario.workload}
    cells = totals.plain_cells(trials, guest)
    return {cell: totals.plain_words(syncs.get(cell[1]), engine) for cell, engine in cells.items()}


def facts(scenario: Scenario, ledger: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Rows for the table of the environment: lines, remarks, notes of tools, and what was written."""
    rows = [(f"load {load.name}", words) for load in scenario.workload for words in of_workload(load)]
    counts: dict[tuple[str, str], int] = {}
    steps: dict[str, None] = {}
    for event in ledger:
        trial = event["event"] == "trial"
        if event.get("evidence_s"):
            continue
        written = [f"writes {event['content']}"] if event.get("content") else []
        if not trial and written:
            steps[f"{_STEPS[event['event']]} {event['content']}"] = None
        for note in [*(event.get("notes") or ()), *written] if trial else ():
            key = (str(event["workload"]), str(note))
            counts[key] = counts.get(key, 0) + 1
    rows += [("before the first trial", words) for words in steps]
    return rows + [(f"load {name}", f"{note} ({n} trials)") for (name, note), n in counts.items()]
