"""Blocks spread over hours: when one is due, what stops the wait, and that a played run keeps it."""

from __future__ import annotations

import re
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud import kinds
from diskbook.design import scenario_file, schedule
from diskbook.facts.errors import DiskbookError
from diskbook.measure.bench import trials
from diskbook.measure.bench.rig import Rig
from diskbook.measure.runs import stages
from diskbook.results.run import Run
from support import SCENARIOS
from support.manifests import MINIMAL
from support.measuring import events

HOUR_S = 1.4
"""What the tests' scale makes of an hour."""


def rig(folder: Path, hours: float = 1.0, expires: str = "2100-01-01T00:00:00+00:00") -> Rig:
    """A replicate of which nothing but the ledger is looked at."""
    scenario = scenario_file.load(
        str(SCENARIOS / "tiny.toml"), "standard", {"design.hours_between_blocks": hours}
    )
    folder.mkdir(exist_ok=True)
    run = Run(folder)
    groups = [{"name": "group", "expires_utc": expires, "deleted_utc": None}]
    run.write_manifest({**MINIMAL, "run": "spread", "resource_groups": groups, "replicates": []})
    replicate = {"replicate": 1, "resource_group": "group"}
    return Rig(run, scenario, replicate, None, None, time_scale=HOUR_S / 3600)  # type: ignore[arg-type]


def block(number: int) -> schedule.Block:
    return schedule.Block(1, number, ())


def begin(place: Rig, number: int, replicate: int = 1) -> float:
    began = time.monotonic()
    place.run.append("block", replicate=replicate, block=number, status="begun")
    return began


def test_a_block_waits_for_its_hour_and_says_so_once(tmp_path: Path) -> None:
    place = rig(tmp_path / "run")
    began = begin(place, 1)
    assert trials.wait_between_blocks(place, block(2)) and time.monotonic() - began >= HOUR_S - 0.01
    (line,) = events(place.run, "notice")
    assert re.match("replicate 1 waits [01] s: block 2 begins at ", line["text"])
    assert "(blocks are 1 h apart, 1 s as the emulator plays them)" in line["text"]


def test_a_block_is_due_after_the_last_one_that_began(tmp_path: Path) -> None:
    place = rig(tmp_path / "run")
    for number in (1, 2):
        begin(place, number)
    first, last = (datetime.fromisoformat(event["time_utc"]) for event in events(place.run, "block"))
    due = trials._due(place, block(3))
    assert due is not None and first < last == due - timedelta(seconds=HOUR_S)


def test_nothing_waits_where_nothing_is_to_be_waited_for(tmp_path: Path) -> None:
    first, other, again, none = (rig(tmp_path / name) for name in ("a", "b", "c", "d"))
    begin(other, 1, replicate=2)  # another replicate's
    begin(again, 2)  # this very block, cut short before
    apart = rig(tmp_path / "e", hours=0.0)
    begin(apart, 1)
    for place in (first, other, again, none, apart):
        assert trials.wait_between_blocks(place, block(2)) and not events(
            place.run, "notice"
        )  # a wait is told


def test_a_run_that_is_resumed_later_does_not_wait_again(tmp_path: Path) -> None:
    place = rig(tmp_path / "run")
    begin(place, 1)
    time.sleep(HOUR_S)
    assert trials.wait_between_blocks(place, block(2)) and not events(place.run, "notice")


def test_a_wait_ends_when_the_run_is_to_stop(tmp_path: Path) -> None:
    place = rig(tmp_path / "run", hours=24.0)
    began = begin(place, 1)
    threading.Timer(0.1, place.stop.set).start()
    assert not trials.wait_between_blocks(place, block(2)) and time.monotonic() - began < 24 * HOUR_S / 2


def test_nothing_waits_for_machines_that_will_be_down(tmp_path: Path) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=HOUR_S / 2)).isoformat()
    place = rig(tmp_path / "run", expires=soon)
    begin(place, 1)
    with pytest.raises(DiskbookError, match=r"block is due .* shut down before, .* --resume run' then makes"):
        trials.wait_between_blocks(place, block(2))


@pytest.mark.emulator
def test_a_played_run_keeps_its_blocks_apart(place: Path) -> None:
    played: dict[str, Any] = {"profile": "quiet", "time_scale": 0.0018}
    run = stages.begin(
        "spread", str(SCENARIOS / "tiny.toml"), "emulator", "standard", {"design.hours_between_blocks": 1.0},
        emulator=played,
    )  # fmt: skip
    kinds.of(run).start(run, owner=True)
    try:
        stages.provision(run)
        stages.benchmark(run)
        stages.benchmark(run)  # nothing is left, and nothing waits
    finally:
        stages.teardown(run)
    begun = [datetime.fromisoformat(line["time_utc"]) for line in events(run, "block", status="begun")]
    assert len(begun) == 2 and (begun[1] - begun[0]).total_seconds() > 6.4
    assert len([line for line in events(run, "notice") if "blocks are 1 h apart" in line["text"]]) == 1
