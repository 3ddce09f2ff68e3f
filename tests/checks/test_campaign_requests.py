"""Requests of a run as planned, beside those that the committed samples have counted."""

from __future__ import annotations

from typing import Any

import pytest

from checks import campaign_requests as requests
from diskbook.cost import durations
from diskbook.design import scenario_file
from diskbook.facts import paths
from diskbook.measure.plan.sample_size import Target
from diskbook.measure.plan.terminal import Sources, plan_text
from diskbook.results.run import Run

SAMPLES = sorted(path.parent for path in paths.RUNS.glob("sample-*/ledger.jsonl"))


def counted(sample: Run) -> dict[str, int]:
    """What a sample's first provisioning has sent."""
    events: list[dict[str, Any]] = sample.ledger()
    return next(dict(row["requests"]) for row in events if row["event"] == "stage" and row.get("requests"))


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_creating_is_planned_as_it_was_counted(folder: Any) -> None:
    sample = Run(folder)
    sent = counted(sample)
    polls = sent.pop("GET operations") + sent.pop("GET asyncoperations", 0)
    planned = dict(requests.creating(sample.scenario))
    # The samples were measured by a version that asked about interfaces and addresses only.
    assert planned.pop("POST checkPolicyRestrictions") >= sent.pop("POST checkPolicyRestrictions") == 2
    assert planned == sent
    # On the emulator answers take part of the time between polls, so that fewer are sent.
    assert 0.95 * polls <= requests.creation_polls(sample.scenario) <= 1.2 * polls


@pytest.mark.parametrize("name", ["nested-resiliency", "s2d-azure", "disk-options"])
def test_attach_calls_are_planned_as_a_sample_made_them(name: str) -> None:
    sample = Run(paths.RUNS / f"sample-{name}")
    made = sum(row["event"] == "operation" and row["name"] in ("attach", "detach") for row in sample.ledger())
    assert requests.of_run(sample.scenario).moves == made


def test_failover_tests_take_calls_of_their_disk() -> None:
    """As the first replicate of the sample did: 5 attach, 6 detach, whatever its blocks moved."""
    assert durations.moves_of_drills(Run(paths.RUNS / "sample-shared-zrs").scenario) == {"zrs": (5, 6)}


def test_moves_are_those_of_the_plan() -> None:
    scenario = scenario_file.load("zone-disks", "standard")
    moves = requests.of_run(scenario).moves / scenario.design.replicates
    assert f"attach and detach calls: {moves:.0f} a replicate" in plan_text(scenario, Target(), Sources(), "")


def test_polls_follow_the_pace_of_the_clients() -> None:
    assert (
        requests.polls(0.5) == 1
        and requests.polls(12) == 12
        and requests.polls(168, 50) < requests.polls(168)
    )
    made = requests.of_run(scenario_file.load("first-run", "standard"))
    assert made.total == made.writes + made.reads + made.polls + made.moves
