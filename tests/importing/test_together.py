"""What ran at the same time on one target is one trial of many clients, and no repeat."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path

import pytest

from diskbook.importing import run as importer
from diskbook.importing.run import Planned
from diskbook.results import tables
from support.results import Result, later, write


def plan(base: Path, layout: str | None = None) -> Planned:
    return importer.plan([str(base)], f"{base}-run", importer.Settings(layout=layout))


def pods(base: Path, pattern: str, clients: int = 10, passes: int = 3) -> None:
    """So many pods begin within 15 s, pass after pass."""
    for number in range(passes):
        for client in range(clients):
            began = later(minutes=20 * number) + timedelta(seconds=client * 15 / clients)
            path = base / pattern.format(n=client, id="bcdfghjklm"[client] + "7x2q", run=number)
            write(path, "fio-json", "3.36", Result("/data/x", 100 + client + number / 10, began=began))


PATTERNS = ["{n}/x{run}", "pod-{n}/run{run}", "run{run}/client-{id}/x", "fio-{id}-{run}", "x_{n}_run{run}"]


@pytest.mark.long
@pytest.mark.parametrize("pattern", PATTERNS)
def test_clients_are_one_trial(tmp_path: Path, pattern: str) -> None:
    pods(tmp_path / "in", pattern)
    made = importer.make([str(tmp_path / "in")], f"{tmp_path}/run")
    assert list(made.arms.values()) == [3]
    trials = tables.read(made.run.folder).trials
    assert sorted(trials["iops"]) == pytest.approx([1045, 1046, 1047], abs=0.01)
    assert set(trials["outstanding"]) == {40} and sorted(trials["block"]) == [1, 2, 3]
    assert any("10 clients measured at the same time" in flag for flag in made.flags)
    assert tables.build(made.run).trials["iops"].tolist() == trials["iops"].tolist()


def test_repeats_one_after_another_are_no_clients(tmp_path: Path) -> None:
    for number in range(5):
        began = later() + timedelta(seconds=31 * number)
        write(tmp_path / "in" / f"{number}", "fio-json", "3.36", Result(iops=500 + number, began=began))
    assert len(plan(tmp_path / "in").entries) == 5


def test_arms_at_the_same_time_are_flagged_and_no_clients(tmp_path: Path) -> None:
    for place, arm in enumerate(("lrs", "zrs", "ultra")):
        write(tmp_path / "in" / arm / "x", "fio-json", "3.36", Result(iops=500 + place))
    planned = plan(tmp_path / "in")
    assert len(planned.entries) == 3
    assert any(flag.startswith("lrs, ultra, zrs: measured at the same time") for flag in planned.flags)


def test_replicates_that_a_layout_names_are_no_clients(tmp_path: Path) -> None:
    """Nor are sessions the replicates: what ran at the same time is not one disk again."""
    for session, client in itertools.product((0, 1), (1, 2, 3)):
        result = Result("/dev/sdc", 500 + client + session, began=later(minutes=200 * session))
        write(tmp_path / "in" / f"vm-{client}" / f"x_{session}", "fio-json", "3.36", result)
    planned = plan(tmp_path / "in", "{replicate}/*")
    places = sorted((entry.replicate, entry.block) for entry in planned.entries)
    assert places == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
