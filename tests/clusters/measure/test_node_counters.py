"""Counters of a cluster's nodes around trials: asked of all nodes, and no oftener than needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diskbook.clusters.measure import steps, volumes
from diskbook.clusters.powershell.steps import StepFailed
from support.measuring import events
from support.scripted_nodes import ScriptedRig, rig


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedRig:
    made = rig(tmp_path / "run", monkeypatch)
    volumes.make(made, None)  # type: ignore[arg-type]
    return made


def trial(place: ScriptedRig, name: str) -> bytes | None:
    arm = place.scenario.arm_named(name)
    volumes.place(place, arm)
    return steps.after(place, arm, steps.before(place, arm))


def test_the_end_of_a_trial_is_the_beginning_of_the_next(place: ScriptedRig) -> None:
    documents = [json.loads(trial(place, "owner") or b"") for _ in range(2)]
    assert place.nodes.counted == 2 * 3
    assert documents[0]["after"] == documents[1]["before"] != documents[0]["before"]
    assert set(documents[0]["before"]) == {"n1", "n2"}
    assert not events(place.run, "step", step="counters")  # what they answer is kept with the trial


def test_totals_are_asked_anew_where_something_happened_between(place: ScriptedRig) -> None:
    for step in (lambda: None, lambda: volumes.idle(place), lambda: volumes.forget(place, "mirror")):
        step()
        trial(place, "owner")
    assert place.nodes.counted == 2 * 6
    trial(place, "remote")  # the volume moves
    assert place.nodes.counted == 2 * 8


def test_one_server_has_none(place: ScriptedRig) -> None:
    assert trial(place, "alone") is None and place.nodes.counted == 0


def test_a_failure_is_told_and_recorded(place: ScriptedRig) -> None:
    place.nodes.plant["counters"] = StepFailed("no such counter (step counters on r1-n2)")
    with pytest.raises(StepFailed, match="no such counter"):
        trial(place, "owner")
    assert {event["error"] for event in events(place.run, "step", ok=False)} == {
        "no such counter (step counters on r1-n2)"
    }
