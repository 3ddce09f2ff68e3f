"""A visit begins with its cycles and, where the scenario says so, with a time to settle."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from diskbook import load
from diskbook.bench import attachment
from diskbook.bench.rig import Rig


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
        self.scenario = load.load("zone-disks", "quick", {"design.settle_s": self.settle_s})
        self.run = SimpleNamespace(append=lambda event, **values: self.events.append(values))

    def renew(self, disk: str, machine: str) -> None:
        self.asked.append(f"attach {disk} to {machine}")
        self.at = time.monotonic()

    def device(self, disk: str, machine: str) -> None:
        self.asked.append(f"prove {disk}")

    def attached_at(self, disk: str, machine: str) -> float | None:
        return self.at

    def begin(self, times: int) -> tuple[bool, float]:
        """Begin a visit; whether it may, and what time that took."""
        started = time.monotonic()
        may = attachment.begin(cast(Rig, self), self.scenario.arm_named("zrs-z2"), times)
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


def test_an_earlier_sessions_attach_is_long_ago() -> None:
    rig = Played(60.0)
    may, took_s = rig.begin(0)
    assert may and took_s < 1 and rig.asked == ["prove zrs"]


def test_a_run_that_is_to_stop_does_not_wait() -> None:
    rig = Played(60.0)
    rig.stop.set()
    may, took_s = rig.begin(1)
    assert not may and took_s < 1
