"""What was done to each arm's disk or volume before its trials, from the ledger of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from diskbook.design.model import Scenario
from diskbook.stats.gates.state import Conditioning

OF_FLEETS = "fleets write their files in full before each block"


def of_arms(scenario: Scenario, ledger: Iterable[Mapping[str, Any]]) -> dict[str, Conditioning]:
    """Say for every arm with finished trials how its disks were when the first of them began.

    Several replicates are what the least of them is.
    """
    steps: dict[str, set[str]] = {}
    first: dict[tuple[str, str], set[str]] = {}
    for event in ledger:
        what, place = event["event"], event.get("disk_id")
        if place is None:
            continue
        if what == "marked":
            steps[place] = set()
        elif what in ("prefill", "overwrite"):
            steps.setdefault(place, set()).add(what)
        elif what == "trial" and event["status"] == "ok":
            first.setdefault((event["arm"], place), set(steps.get(place, ())))
    return {arm.name: _of_arm(scenario, arm.name, first) for arm in scenario.arm}


def _of_arm(scenario: Scenario, name: str, first: Mapping[tuple[str, str], set[str]]) -> Conditioning:
    done = [steps for (arm, _), steps in first.items() if arm == name]
    common = set.intersection(*done) if done else set()
    fleet = any(load.is_fleet for arm, load in scenario.cells if arm.name == name)
    reason = OF_FLEETS if fleet else scenario.design.no_overwrite or ""
    return Conditioning("prefill" in common, "overwrite" in common, reason)
