"""State of the disks before a trial: what the ledger says was done, and a part where nobody wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diskbook.design import layout, scenario_file
from diskbook.design.model import Scenario
from diskbook.design.schedule import PlannedTrial
from diskbook.facts.units import GIB
from diskbook.hosts.device import Device
from diskbook.measure.bench import steps
from diskbook.measure.bench.rig import Rig, states
from diskbook.measure.bench.steps import NoRoomError
from diskbook.report.analysis import protocol
from diskbook.results.run import Run
from diskbook.tools.protocol import Job

REPLICATE: dict[str, Any] = {
    "replicate": 1,
    "machines": {},
    "disks": {name: {"id": f"/{name}"} for name in ("lrs", "lrs-b", "zrs")},
}
FIRST = PlannedTrial(1, 1, 1, 1, "zrs-z1", "first-write")


class Still(Rig):
    """A rig whose disks are where they are wanted, on machines that nobody asks."""

    def device(self, disk: str, machine: str) -> Any:
        return Device("nbd", disk, f"{disk}-fill", 1024 * GIB)


@pytest.fixture
def scenario() -> Scenario:
    return scenario_file.load("zone-disks", "full")


@pytest.fixture
def rig(scenario: Scenario, tmp_path: Path) -> Still:
    return Still(Run(tmp_path), scenario, REPLICATE, None, None)  # type: ignore[arg-type]


def events(run: Run, *names: str, disk: str = "zrs") -> None:
    for name in names:
        run.append(name, replicate=1, disk=disk, disk_id=f"/{disk}")


@pytest.mark.parametrize(
    ("names", "filled", "over"),
    [
        (["marked", "prefill"], True, False),
        (["marked", "prefill", "overwrite"], True, True),
        (["marked", "prefill", "trial"], True, True),  # begun by an older version: it stays as it is
        (["marked", "prefill", "overwrite", "marked"], False, False),
        (["marked", "prefill", "overwrite", "marked", "prefill"], True, False),
    ],
)
def test_the_ledger_says_what_is_done(rig: Still, names: list[str], filled: bool, over: bool) -> None:
    events(rig.run, *names)
    assert states(rig.run, REPLICATE) == ({"zrs"} if filled else set(), {"zrs"} if over else set())


def test_a_killed_run_goes_on_with_the_step_that_it_lacks(
    rig: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def write(rig: Rig, machine: str, disk: str, device: Any, what: str, needed: int) -> Job:
        written.append((what, disk, needed // GIB))
        return Job((), notes=("a note",), content="random")

    monkeypatch.setattr(steps, "_write", write)
    events(rig.run, "marked", "prefill", disk="lrs")
    rig.prefilled, rig.overwritten = states(rig.run, REPLICATE)
    for _ in range(2):
        for disk in ("lrs", "lrs-b"):
            steps.prefill(rig, disk, "vm1")
    assert written == [("overwrite", "lrs", 1000), ("prefill", "lrs-b", 30), ("overwrite", "lrs-b", 30)]
    last = rig.run.ledger()[-1]
    assert (last["event"], last["block_bytes"], last["content"]) == ("overwrite", 65536, "random")
    assert last["notes"] == ["a note"] and last["caps_lifted"]


def test_every_attempt_gets_a_part_of_its_own_where_nobody_wrote(rig: Still) -> None:
    begin = layout.unwritten_offset(rig.scenario, "zrs")
    taken = [steps.region(rig, FIRST, attempt) for attempt in (1, 2)]
    assert taken == [begin, begin + 2 * GIB]
    other = PlannedTrial(1, 1, 1, 2, "lrs-z1", "read-unwritten")
    assert steps.region(rig, other, 1) == layout.unwritten_offset(rig.scenario, "lrs")
    plain = PlannedTrial(1, 1, 1, 3, "zrs-z1", "randwrite-qd1")
    assert steps.region(rig, plain, 1) == 0
    assert [event["trial"] for event in rig.run.ledger()][:2] == [FIRST.name(1), FIRST.name(2)]


def test_what_is_used_up_fails_the_trial_in_a_sentence(rig: Still) -> None:
    with pytest.raises(NoRoomError, match=r"no part of it is left that nobody wrote to: begin a new run"):
        for attempt in range(1, 20):
            steps.region(rig, FIRST, attempt)
    end = max(event["offset"] + event["bytes"] for event in rig.run.ledger())
    assert end <= 1024 * GIB - layout.MARK_ROOM < end + 2 * GIB


def test_arms_are_in_the_state_that_their_first_trial_met(rig: Still, scenario: Scenario) -> None:
    events(rig.run, "marked", "prefill", "overwrite")
    events(rig.run, "marked", "prefill", disk="lrs")
    for arm, disk in (("zrs-z1", "zrs"), ("lrs-z1", "lrs"), ("lrs-b-z1", "lrs-b")):
        rig.run.append("trial", replicate=1, arm=arm, disk=disk, disk_id=f"/{disk}", status="ok")
    of_arms = protocol.of_arms(scenario, rig.run.ledger())
    assert of_arms["zrs-z1"].overwritten and of_arms["zrs-z1"].known
    assert of_arms["lrs-z1"].filled and not of_arms["lrs-z1"].known
    assert not of_arms["lrs-b-z1"].filled
