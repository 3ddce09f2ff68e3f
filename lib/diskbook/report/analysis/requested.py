"""What each trial of a run was asked to do, by its scenario, or as the files of an import tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from diskbook.design.model import Scenario, Workload
from diskbook.stats.plausibility import Asked
from diskbook.tools import record


def by_trial(
    trials: pd.DataFrame, scenario: Scenario, ledger: Iterable[Mapping[str, Any]]
) -> dict[str, Asked]:
    """Say what each trial was asked to do.

    Of an import every file tells its own: its scenario has one workload for all that are alike, and fills in
    what no file tells.
    """
    loads = {item.name: _of_workload(item) for item in scenario.workload}
    pairs = trials[["trial", "workload"]].drop_duplicates().itertuples(index=False, name=None)
    asked = {str(trial): loads[workload] for trial, workload in pairs}
    return asked | {
        event["trial"]: _of_files(event)
        for event in ledger
        if event["event"] == "trial" and "imported" in event
    }


def _of_workload(item: Workload) -> Asked:
    """What a run of the workbook asks for; a trial that is cut short fails there, as it is measured."""
    return Asked(item.outstanding, item.block_size_bytes, item.write_pct)


def _of_files(event: Mapping[str, Any]) -> Asked:
    """What the files of an imported trial tell; nothing is held against one of an older import."""
    flags = event.get("flags") or ()
    numbers = event["imported"].get("asked") or {}
    return Asked(**numbers, paced=record.is_paced(flags), doubts=record.doubtful(flags))
