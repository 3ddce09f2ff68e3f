"""Running steps: machines side by side, one machine's in turn, and a node that restarts."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from diskbook.clusters.measure import node_steps
from diskbook.clusters.powershell import steps
from diskbook.clusters.powershell.steps import StepFailed
from diskbook.facts.errors import DiskbookError
from support.scripted_nodes import rig

PREPARE = steps.Prepare(account="a", password="secret-of-a-run", nodes=("x",), dns_suffix="d", subnet="s")


def test_machines_work_side_by_side_and_one_machine_in_turn() -> None:
    running, most = set(), {"a": 0, "all": 0}
    lock, together = threading.Lock(), threading.Barrier(3, timeout=60)  # passed when all machines work

    def act(machine: str, number: int) -> str:
        with lock:
            running.add((machine, number))
            most["a"] = max(most["a"], sum(name == "a" for name, _ in running))
            most["all"] = max(most["all"], len(running))
        if number == 1:
            together.wait()
        with lock:
            running.remove((machine, number))
        return f"{machine}{number}"

    places = [("a", 1), ("b", 1), ("a", 2), ("c", 1)]
    results = node_steps.side_by_side((name, lambda name=name, n=n: act(name, n)) for name, n in places)
    assert results == ["a1", "a2", "b1", "c1"]
    assert most["a"] == 1 and most["all"] == 3


def test_what_fails_on_one_machine_is_raised_once_all_have_ended() -> None:
    ended = []

    def fail() -> None:
        raise DiskbookError("no")

    def work() -> None:
        time.sleep(0.05)
        ended.append(True)

    with pytest.raises(DiskbookError, match="no"):
        node_steps.side_by_side([("a", fail), ("b", work)])
    assert ended == [True]


def test_a_node_that_goes_down_may_fail_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = rig(tmp_path / "run", monkeypatch)
    monkeypatch.setattr(node_steps, "_PAUSES_S", (0.0, 0.0))
    going_down = StepFailed("r1-n1: step prepare gave no answer that can be read, but: nothing")
    away = DiskbookError("machine r1-n1 cannot be reached")
    place.nodes.plant["prepare"] = [{"restart_due": True}, going_down, away, {"restart_due": False}]
    assert node_steps.prepare(place, "n1", PREPARE).state["restart_due"] is False
    monkeypatch.setattr(node_steps, "_ERRORS_S", -1.0)
    place.nodes.plant["prepare"] = [{"restart_due": True}, away, going_down]
    with pytest.raises(StepFailed, match="gave no answer"):
        node_steps.prepare(place, "n1", PREPARE)


def test_windows_writes_names_in_capitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = rig(tmp_path / "run", monkeypatch)
    assert node_steps.machine_of(place, "R1-N2") == node_steps.machine_of(place, "r1-n2.dbk.internal") == "n2"
    with pytest.raises(DiskbookError, match="r1-n9 is not a machine of replicate 1"):
        node_steps.machine_of(place, "r1-n9")
