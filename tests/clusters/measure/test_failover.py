"""Zone drills on a real emulator: what is lost is counted, what it takes adds up, and machines run again."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure.attach import Attachments, group_and_name
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.connect import clients_of
from diskbook.clusters.analysis import shared_zrs
from diskbook.clusters.measure import failover
from diskbook.clusters.measure.failover import BlockWriter
from diskbook.design import scenario_file
from diskbook.design.model import Drill, Scenario
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.bench import blocks_remote, checks
from diskbook.measure.bench.blocks_remote import BLOCK
from diskbook.measure.bench.rig import Rig
from diskbook.measure.runs import stages
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.results.run import Run
from diskbook.results.tables import build
from diskbook_emulator import lifecycle
from support import SCENARIOS, emulated

pytestmark = pytest.mark.emulator

DRILLS = SCENARIOS / "drills.toml"


@pytest.fixture(scope="module")
def done() -> Iterator[Run]:
    """A run with a drill of each kind, measured; its machines stand, for further drills."""
    with emulated.own_place():
        lifecycle.start("drills", profile="quiet", time_scale=0.01, owner=True)
        folder = stages.begin("drills", str(DRILLS), "emulator", "quick", emulator={"name": "drills"})
        stages.provision(folder)
        stages.benchmark(folder)
        yield folder
        stages.teardown(folder)
        lifecycle.stop("drills")


class Stage:
    """The rig of the run, with other drills than those of its scenario."""

    def __init__(self, folder: Run, name: str, kind: str, failure: str = "crash") -> None:
        self.folder = folder
        self.clients = clients_of(folder)
        (row,) = folder.manifest["replicates"]
        raw = {"name": name, "kind": kind, "failure": failure, "disk": "zrs", "write_s": 0.2}
        spec = Drill.model_validate({**raw, "from_machine": "node1", "machine": "node2"})
        scenario: Scenario = folder.scenario.model_copy(update={"drill": (spec,)})
        self.rig = Rig.of(self.clients, folder, scenario, row, threading.Event())

    def play(self) -> dict[str, Any]:
        """Do the drill; the last event of it."""
        try:
            failover.run_drills(self.rig, self.clients)
        finally:
            self.rig.close()
        return outcomes(self.folder, self.rig.scenario.drill[0].name)[-1]


def outcomes(folder: Run, name: str | None = None) -> list[dict[str, Any]]:
    """Events of drills, those of one or of all."""
    events = [event for event in folder.ledger() if event["event"] == "drill"]
    return [event for event in events if name in (None, event["name"])]


def powers(folder: Run, clients: Clients) -> set[str]:
    """Power states of the run's machines."""
    (row,) = folder.manifest["replicates"]
    views = [
        clients.compute.virtual_machines.instance_view(*group_and_name(machine["id"]))
        for machine in row["machines"].values()
    ]
    return {status.code for view in views for status in view.statuses if status.code.startswith("PowerState")}


def test_nothing_is_lost_and_the_steps_add_up(done: Run) -> None:
    found = [event for event in outcomes(done) if event["status"] == "ok"]
    failed = [event["error"] for event in outcomes(done) if event["status"] == "failed"]
    if failed:
        warnings.warn(f"a drill was tried again: {failed}", stacklevel=1)
    assert [event["name"] for event in found] == ["shared-crash", "standby-stop", "cold-deallocate"], failed
    for event in found:
        assert event["lost"] == 0 and event["acknowledged"] > 0
        assert sum(step["real_s"] for step in event["steps"]) == pytest.approx(event["rto_s"], abs=0.002)
        assert all(step["unscaled_s"] >= step["real_s"] - 0.001 for step in event["steps"])
        lines = gzip.decompress((done.folder / event["acks"]["path"]).read_bytes()).splitlines()
        assert [json.loads(line)["ack"] for line in lines] == list(range(event["acknowledged"]))
    told = [event["told_to_end"] for event in found]
    assert not told[0]  # of a machine that stops, the session may be cut before the writer's word
    named = [[step["step"] for step in event["steps"]] for event in found]
    end = ["seen", "verified", "written"]
    assert named == [
        ["noticed", "preempted", "verified", "written"],
        ["noticed", "off", "detached", "attached", *end],
        ["noticed", "off", "detached", "started", "attached", *end],
    ]


def test_machines_run_in_the_end_and_nobody_is_registered(done: Run) -> None:
    clients = clients_of(done)
    assert powers(done, clients) == {"PowerState/running"}
    stage = Stage(done, "none", "shared")
    try:
        for machine, _ in stage.rig.attachments.where("zrs"):
            target = stage.rig.device("zrs", machine).target
            said = stage.rig.connection(machine).check(f"sg_persist -n -i -k '{target}'")
            assert b"NO registered reservation keys" in said
    finally:
        stage.rig.close()


def test_a_reservation_was_shown_step_by_step(done: Run) -> None:
    (finding,) = [event for event in done.ledger() if event["event"] == "finding"]
    assert finding["ok"] and all(step["expected"] == step["observed"] for step in finding["steps"])
    refused = [step["step"] for step in finding["steps"] if step["observed"] == "refused"]
    assert [step["step"] for step in finding["steps"]] == list(shared_zrs.DONE)
    shown = shared_zrs.reservation_table(analyse(done))
    assert "keys of node2; reserved by node2" in shown and "no finding about Azure" in shown
    assert shown.count(">yes</td>") == len(finding["steps"])
    assert refused == ["the second writes, unregistered", "the first writes, fenced"]


def test_a_lost_block_is_found(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(done, "planted", "standby")
    (backing,) = lifecycle.connect("drills").folder.glob("disks/*.img")
    fail = failover._FailoverTest._fail

    def and_lose_a_block(scene: failover._FailoverTest, writer: BlockWriter) -> None:
        fail(scene, writer)
        with backing.open("r+b") as file:
            file.seek(checks.region_offset(stage.rig.scenario, "zrs"))
            file.write(bytes(BLOCK))

    monkeypatch.setattr(failover._FailoverTest, "_fail", and_lose_a_block)
    event = stage.play()
    assert event["error"] is None
    assert (event["status"], event["lost"], event["lost_blocks"]) == ("ok", 1, [0])
    words = " ".join(shared_zrs.drill_words(analysis(done)))
    assert "1 were lost (RPO is not 0)" in words


def test_acknowledgements_that_come_late_are_told(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that was taken for dead goes on: what it acknowledges then is in no count of lost blocks."""
    stage = Stage(done, "late", "standby")
    fail, detach, writers = failover._FailoverTest._fail, failover._FailoverTest._detach, []

    def and_remember(scene: failover._FailoverTest, writer: BlockWriter) -> None:
        fail(scene, writer)
        writers.append(writer)

    def and_go_on(scene: failover._FailoverTest) -> None:
        writers[0].times += [writers[0].last + 0.1] * 2
        detach(scene)

    monkeypatch.setattr(failover._FailoverTest, "_fail", and_remember)
    monkeypatch.setattr(failover._FailoverTest, "_detach", and_go_on)
    event = stage.play()
    assert event["error"] is None
    assert (event["status"], event["lost"], event["late"]) == ("ok", 0, 2)
    words = " ".join(shared_zrs.drill_words(analysis(done)))
    assert "2 more were acknowledged after the take-over had begun" in words


def test_a_drill_that_was_cut_is_repeated_whole(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        """Stands for the end of the process."""

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(failover._FailoverTest, "_take_over", killed)
        # What Azure has begun goes on to its end.
        patch.setattr(failover._FailoverTest, "__exit__", lambda test, *_: test._off and test._off.result())
        with pytest.raises(Killed):
            Stage(done, "cut", "shared").play()
    event = Stage(done, "cut", "shared").play()
    statuses = [one["status"] for one in outcomes(done, "cut")]
    errors = [one["error"] for one in outcomes(done, "cut") if one["status"] == "failed"]
    if errors:
        warnings.warn(f"a drill was tried again: {errors}", stacklevel=1)
    # The one that was cut has no end; one that failed is tried again.
    assert statuses == ["begun", *["begun", "failed"] * len(errors), "begun", "ok"], event["error"]
    assert event["lost"] == 0
    assert powers(done, clients_of(done)) == {"PowerState/running"}


def test_a_drill_that_fails_is_recorded_and_leaves_machines_running(
    done: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise DiskbookError("attach zrs to node2: no room")

    monkeypatch.setattr("diskbook.cloud.azure.attach.Attachments.attach", refused)
    event = Stage(done, "failing", "standby", "stop").play()
    assert (event["status"], event["error"]) == ("failed", "attach zrs to node2: no room")
    assert powers(done, clients_of(done)) == {"PowerState/running"}
    assert "the drill failed" in " ".join(shared_zrs.drill_words(analysis(done)))


def test_a_drill_that_fails_once_is_tried_again(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    take_over = failover._FailoverTest._take_over

    def fail_at_first(scene: failover._FailoverTest, writer: BlockWriter) -> dict[str, Any]:
        monkeypatch.setattr(failover._FailoverTest, "_take_over", take_over)
        raise DiskbookError("the disk is away for a moment")

    monkeypatch.setattr(failover._FailoverTest, "_take_over", fail_at_first)
    event = Stage(done, "twice", "shared").play()
    assert [row["status"] for row in outcomes(done, "twice")] == ["begun", "failed", "begun", "ok"]
    assert (event["attempt"], event["lost"]) == (2, 0)
    assert "attempt 2, since the ones before failed" in " ".join(shared_zrs.drill_words(analysis(done)))


def test_a_disk_that_is_not_let_go_is_taken_by_force(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    detach, forced = Attachments.detach, []

    def only_by_force(attachments: Attachments, disk: str, machine: str, *, force: bool = False) -> None:
        if machine == "node1" and not force:
            raise DiskbookError("detach zrs from node1: it does not let go")
        forced.append(force)
        detach(attachments, disk, machine, force=force)

    stage = Stage(done, "forced", "standby")
    stage.rig.device("zrs", "node1")
    monkeypatch.setattr(Attachments, "detach", only_by_force)
    event = stage.play()
    assert event["error"] is None
    assert (event["status"], event["lost"]) == ("ok", 0) and forced[-1]


def analysis(folder: Run) -> Analysis:
    return Analysis(folder, folder.scenario, folder.manifest, build(folder))


def test_words_and_table_say_emulated(done: Run) -> None:
    a = analysis(done)
    words, table = shared_zrs.drill_words(a), shared_zrs.drill_table(a)
    assert "no finding about Azure" in words[-1] and "no finding about Azure" in table
    assert "standby VM, disk moved" in table and "failure noticed" in table


def test_without_a_drill_that_is_said(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    a = analysis(done)
    monkeypatch.setattr(shared_zrs, "drills", lambda _: [])
    assert shared_zrs.drill_words(a) == [f"emulated: {shared_zrs.NONE}"]
    assert "<tbody></tbody>" in shared_zrs.drill_table(a)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"disk.zrs.max_shares": 1}, "zrs is not shared"),
        ({"machine.node2.os": "windows"}, "node2 is a Windows machine"),
        ({"drill.shared-crash.machine": "node1"}, "name two machines"),
        ({"drill.shared-crash.machine": "node3"}, "node3"),
        ({"disk.zrs.sku": "Premium_LRS", "disk.zrs.zone": "1"}, "attaches only to a machine in that zone"),
        ({"workload.read-qd1.working_set_gib": 1023.9}, "no room for 256 MiB"),
    ],
)
def test_what_a_drill_needs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        scenario_file.load(str(DRILLS), "quick", changes)


def test_blocks_on_a_device_with_nothing_but_python(tmp_path: Path) -> None:
    disk, tag = tmp_path / "disk", "ab" * 16
    disk.write_bytes(bytes(64 * BLOCK))

    def call(action: str, count: int) -> list[dict[str, Any]]:
        given = [action, str(disk), str(4 * BLOCK), tag, str(count), "0"]
        done = subprocess.run(
            [sys.executable, "-I", blocks_remote.__file__, *given],
            capture_output=True,
            text=True,
            check=False,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    assert call("write", 10) == [{"ack": number} for number in range(10)]
    assert call("verify", 10) == [{"verified": 10, "lost": 0, "lost_blocks": []}]
    assert call("take-over", 11)[0] == {"verified": 10, "lost": 1, "lost_blocks": [10]}
    assert disk.read_bytes()[: 4 * BLOCK] == bytes(4 * BLOCK)
    disk.unlink()
    assert call("verify", 10)[-1]["error"] == "ENOENT"
