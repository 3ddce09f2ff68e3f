"""A visit begins with its cycles and, where the scenario says so, with a time to settle."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from diskbook.design import attachments, scenario_file, schedule
from diskbook.measure.bench import trials
from diskbook.measure.bench.rig import Rig


@dataclass
class Played:
    """What a rig is asked for, in order; attaching takes no time."""

    settle_s: float
    time_scale: float = 1.0
    number: int = 1
    stop: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    at: float | None = None

    def __post_init__(self) -> None:
        self.scenario = scenario_file.load("zone-disks", "quick", {"design.settle_s": self.settle_s})
        self.run = SimpleNamespace(append=lambda event, **values: self.events.append(values))

    def renew(self, disk: str, machine: str) -> None:
        self.asked.append(f"attach {disk} to {machine}")
        self.at = time.monotonic()

    def device(self, disk: str, machine: str) -> None:
        self.asked.append(f"prove {disk}")

    def attached_at(self, disk: str, machine: str) -> float | None:
        return self.at

    def begin(self, times: int, *, early: bool = False) -> tuple[bool, float]:
        """Begin a visit; whether it may, and what time that took."""
        started = time.monotonic()
        may = trials.reattach(cast(Rig, self), self.scenario.arm_named("zrs-z2"), times, early=early)
        return may, time.monotonic() - started


def test_a_disk_is_attached_as_often_as_planned_and_proved_once() -> None:
    rig = Played(0)
    assert rig.begin(3)[0] and rig.asked == [*["attach zrs to vm2"] * 3, "prove zrs"]
    assert rig.events == []
    assert rig.begin(0)[0] and len(rig.asked) == 4  # within a visit


@pytest.mark.parametrize(("settle_s", "scale"), [(0.2, 1.0), (20.0, 0.01)])
def test_a_trial_waits_until_its_disk_has_settled(settle_s: float, scale: float) -> None:
    rig = Played(settle_s, scale)
    may, took_s = rig.begin(1)
    assert may and took_s >= 0.19
    (event,) = rig.events
    assert (event["settle_s"], event["disk"], event["machine"]) == (settle_s, "zrs", "vm2")
    assert rig.begin(0)[0] and len(rig.events) == 1  # it has settled


def test_a_trial_right_after_an_attach_does_not_wait_and_the_next_one_does() -> None:
    rig = Played(1.0)
    may, _ = rig.begin(1, early=True)
    assert may and rig.asked[-1] == "prove zrs" and rig.events == []  # a wait is an event
    may, _ = rig.begin(0)
    assert may and len(rig.events) == 1


def test_an_earlier_sessions_attach_is_long_ago() -> None:
    rig = Played(60.0)
    may, took_s = rig.begin(0)
    assert may and took_s < 1 and rig.asked == ["prove zrs"]


def test_a_run_that_is_to_stop_does_not_wait() -> None:
    rig = Played(60.0)
    rig.stop.set()
    may, took_s = rig.begin(1)
    assert not may and took_s < 1


# --- placements


@dataclass
class Cloud:
    """Where a shared disk is, and what was asked for, in order."""

    places: list[str]
    asked: list[str] = field(default_factory=list)

    def where(self, disk: str) -> list[tuple[str, int]]:
        return [(machine, 0) for machine in self.places]

    def detach(self, disk: str, machine: str) -> None:
        self.asked.append(f"detach from {machine}")
        self.places.remove(machine)


@pytest.mark.parametrize(
    ("there", "block", "asked"),
    [
        (["node1", "node2"], 0, []),
        (["node1", "node2"], 1, ["detach from node1", "detach from node2", "attach to probe3"]),
        (["probe3"], 0, ["detach from probe3", "attach to node1", "attach to node2"]),
        ([], 0, ["attach to node1", "attach to node2"]),
    ],
)
def test_a_shared_disk_leaves_the_machines_of_the_last_group_first(
    there: list[str], block: int, asked: list[str]
) -> None:
    """With two shares, and both on other machines, an attach alone could take it from one that needs it."""
    scenario = scenario_file.load("shared-zrs", "quick")
    by_placement = {item.trials[0].arm == "zrs-p3": item for item in schedule.plan(scenario)}
    cloud = Cloud(there)

    def device(disk: str, machine: str) -> None:
        if machine not in cloud.places:
            assert len(cloud.places) < 2
            cloud.asked.append(f"attach to {machine}")
            cloud.places.append(machine)

    rig = SimpleNamespace(scenario=scenario, attachments=cloud, device=device, forget=lambda disk: None)
    places = attachments.places_before(scenario, by_placement[bool(block)])
    trials.place_disks(cast(Rig, rig), sorted(places))
    assert cloud.asked == asked
