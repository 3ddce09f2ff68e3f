"""Losses: what they come to, what is taken away and brought back, failures, and real ones on an emulator."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.connect import clients_of
from diskbook.clusters import tables as cluster_tables
from diskbook.clusters.measure import loss_record, losses, volumes
from diskbook.clusters.powershell import steps
from diskbook.clusters.powershell.steps import StepFailed
from diskbook.design import scenario_file, schema
from diskbook.design.model import Scenario
from diskbook.facts.errors import DiskbookError
from diskbook.measure.bench.rig import Rig
from diskbook.measure.runs import stages
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support import SCENARIOS, scripted_nodes
from support.measuring import events, place
from support.scripted_nodes import ScriptedRig

__all__ = ["place"]


def scenario(*names: str) -> Scenario:
    """The scenario of losses, with those of these names alone."""
    whole = scenario_file.load(str(SCENARIOS / "losses.toml"), "quick")
    return whole.model_copy(update={"loss": tuple(item for item in whole.loss if item.name in names)})


# ---- what a loss comes to --------------------------------------------------------------------------------

LOAD = {"began_s": 100.0, "bin_s": 0.5, "counts": [0, 10, 10, 0, 5], "written": 20, "verified": 20}


def test_rates_are_those_of_the_stretch_of_time() -> None:
    assert loss_record.first_s(LOAD) == 100.5
    assert loss_record.rate(LOAD, 100.5, 101.5) == 20.0
    assert loss_record.rate(LOAD, 100.75, 101.25) == 20.0
    assert loss_record.rate(LOAD, 101.5, 102.5) == 5.0
    assert loss_record.rate(LOAD, 200.0, 201.0) == 0.0
    assert loss_record.rate(LOAD, 101.0, 101.4) is None and loss_record.rate(LOAD, 102.0, 101.0) is None


def test_a_clock_that_differs_by_less_than_an_answer_takes_is_not_corrected() -> None:
    assert [loss_record.skew_s(node_s, 100.0) for node_s in (99.0, 101.5, 97.0, 160.0)] == [0, 0, -3, 60]


@pytest.mark.parametrize(
    ("health", "status", "online"),
    [("Healthy", "OK", True), ("Warning", "Degraded", True), ("Warning", "InService, Degraded", True),
     ("Unhealthy", "Detached", False), ("absent", "", False)],
)  # fmt: skip
def test_a_volume_is_online_where_storage_spaces_has_it(health: str, status: str, online: bool) -> None:
    assert loss_record.is_online({"health": health, "status": status}) is online


def test_bytes_of_repairs_are_summed_by_their_volume() -> None:
    jobs = [
        {"name": "two-way-10-Repair", "bytes_done": 5},
        {"name": "Two-Way-1-Repair", "bytes_done": 2},
        {"name": "two-way-1-Repair", "bytes_done": 1},
        {"name": "Optimize", "bytes_done": 9},
        {"name": "nested-Repair", "bytes_done": None},
    ]
    found = loss_record.bytes_of(jobs, "bytes_done", ["two-way-1", "two-way-10", "nested"])
    assert found == {"two-way-1": 3.0, "two-way-10": 5.0, "nested": 0.0}


def test_members_of_a_pool_are_lost_together() -> None:
    groups = {
        group.lost: group for group in losses.groups(scenario("mirror-node", "nested-node", "majority"))
    }
    node, majority = groups["node"], groups["two-nodes"]
    assert [loss.volume for loss in node.losses] == ["mirror", "nested"] and node.nodes == ["n2"]
    assert (majority.nodes, majority.drives, majority.pool.key) == (["t2", "t3"], {}, "small-trio")
    (each,) = losses.groups(scenario("mirror-drive-each"))
    assert each.drives == {"n1": ["p10-n1-1"], "n2": ["p10-n2-1"]} and each.nodes == []


# ---- failures, on scripted nodes -------------------------------------------------------------------------


class Scripted(ScriptedRig):
    """A replicate whose nodes write and heal as a test says."""

    opened: list[Node]

    def new_connection(self, machine: str, *, recover: bool = True) -> Any:
        self.opened.append(Node(machine, self.nodes))
        return self.opened[-1]


class Node(scripted_nodes.Node):
    loads = 0  # that were written through this connection

    def _health(self, asked: steps.Loss) -> list[dict[str, Any]]:
        return [{"volume": name, "health": "Healthy", "status": "OK"} for name in asked.volumes]

    def _fail(self, asked: steps.Loss) -> tuple[dict[str, Any], list[str]]:
        return {"noticed_s": 0.1, "health": self._health(asked), "jobs": []}, []

    def _restore(self, asked: steps.Loss) -> tuple[dict[str, Any], list[str]]:
        return {"done": True, "health": self._health(asked), "jobs": [], "ended": []}, []

    def _verify(self, asked: steps.Verify) -> tuple[dict[str, Any], list[str]]:
        if asked.action == "write":
            self.loads += 1
            threading.Event().wait(0.3)
        row = {"began_s": 0.0, "counts": [3], "written": 3, "errors": 0, "last_error": "", "verified": 3}
        return {"now_s": 0.0, "volumes": [{"volume": name, **row} for name in ("mirror", "nested")]}, []


@dataclass
class Taken:
    """What the cloud was asked, in order."""

    asked: list[tuple[str, Any]] = field(default_factory=list)

    def detach_all(self, disks: list[str], machine: str) -> None:
        self.asked.append(("detach", (machine, *disks)))

    def attach_all(self, disks: Any, machine: str) -> dict[str, int]:
        self.asked.append(("attach", (machine, len(disks))))
        return {disk.name: lun for lun, disk in enumerate(disks)}


class Power:
    """Power of machines that are none."""

    taken: Taken

    def __init__(self, *_: Any) -> None:
        pass

    def off(self, failure: str, machine: str) -> None:
        self.taken.asked.append((failure, machine))

    def on(self, machine: str) -> None:
        self.taken.asked.append(("on", machine))


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    spaces = scripted_nodes.rig(tmp_path / "run", monkeypatch)
    chosen = scenario("mirror-drive-each", "nested-drive-each", "mirror-node", "nested-node")
    entries = {
        name: {"volume": name, "pool": "p10-pair", "path": f"C:\\{name}", "size_bytes": 2**30}
        for name in ("mirror", "nested")
    }
    disks = {disk.name: {"unique_id": disk.name, "lun": 0} for disk, _ in chosen.made_disks()}
    row = {**spaces.replicate, "volumes": entries, "pool_disks": disks}
    row["machines"] = {name: {"id": f"/{name}", "host": {"name": f"r1-{name}"}} for name in ("n1", "n2")}
    spaces.run.update_manifest(replicates=[row])
    made = Scripted(spaces.run, chosen, row, Taken(), None, time_scale=0.0)  # type: ignore[arg-type]
    made.nodes, made.opened = spaces.nodes, []
    Power.taken = made.attachments  # type: ignore[assignment]
    monkeypatch.setattr(losses, "Power", Power)
    for name in ("LEAST_BEFORE_S", "LEAST_DURING_S"):
        monkeypatch.setattr(losses, name, 0.0)
    yield made
    made.close()


def asked(rig: Scripted) -> list[tuple[str, Any]]:
    taken: Taken = rig.attachments  # type: ignore[assignment]
    return taken.asked


def test_each_loss_is_recorded_for_each_volume_and_not_played_again(scripted: Scripted) -> None:
    losses.play(scripted, None)  # type: ignore[arg-type]
    done = events(scripted.run, "loss", status="ok")
    assert [event["name"] for event in done] == [item.name for item in _by_group(scripted.scenario)]
    assert sorted(asked(scripted)[:2]) == [("detach", ("n1", "p10-n1-1")), ("detach", ("n2", "p10-n2-1"))]
    assert asked(scripted)[4:] == [("crash", "n2"), ("on", "n2")]
    assert {event["resync_bytes"] for event in done} == {None}
    frame = cluster_tables._losses("run", scripted.run.ledger())
    assert len(frame) == 4 and list(frame.columns) == schema.LOSSES.names
    before = len(scripted.run.ledger())
    losses.play(scripted, None)  # type: ignore[arg-type]
    assert len(scripted.run.ledger()) == before


def _by_group(chosen: Scenario) -> list[Any]:
    return [loss for group in losses.groups(chosen) for loss in group.losses]


def test_no_two_loads_share_a_connection(scripted: Scripted) -> None:
    losses.play(scripted, None)  # type: ignore[arg-type]
    assert [node.loads for node in scripted.opened if node.loads] == [1, 1, 1, 1]


@pytest.mark.parametrize("step", ["fail", "verify"])
def test_what_fails_is_recorded_with_its_sentence_and_members_come_back(
    scripted: Scripted, step: str
) -> None:
    scripted.nodes.plant[step] = StepFailed("r1-n1: it cannot be done")
    losses.play(scripted, None)  # type: ignore[arg-type]
    failed = events(scripted.run, "loss", status="failed")
    assert {event["error"] for event in failed} == {"r1-n1: it cannot be done"} and len(failed) == 8
    assert {event["attempt"] for event in failed} == {1, 2}
    frame = cluster_tables._losses("run", scripted.run.ledger())
    assert len(frame) == 4 and frame["online"].isna().all()
    assert set(frame["blocks_written"]) == {0} and set(frame["error"]) == {"r1-n1: it cannot be done"}
    taken = [what for what, _ in asked(scripted)]
    assert taken.count("detach") == taken.count("attach") and taken.count("crash") == taken.count("on")
    assert losses.remaining(scripted.run, scripted.scenario, 1) == list(scripted.scenario.loss)


def test_a_member_that_does_not_come_back_stops_the_run(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise DiskbookError("Azure has no room")

    monkeypatch.setattr(Power, "on", refused)
    with pytest.raises(DiskbookError, match="Azure has no room"):
        losses.play(scripted, None)  # type: ignore[arg-type]


def test_a_repair_that_does_not_end_stops_the_run_and_names_the_volume(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "LEAST_WAIT_S", 0.0)
    ill = [{"volume": "mirror", "health": "Warning", "status": "Degraded"}]
    job = {"name": "mirror-Repair", "bytes_total": 7}
    good: list[dict[str, Any]] = [{}, {}]
    scripted.nodes.plant["restore"] = [*good, *[{"done": False, "health": ill, "jobs": [job]}] * 20]
    with pytest.raises(
        DiskbookError, match="mirror is not whole again 0 s after the loss of a drive of each"
    ):
        losses.play(scripted, None)  # type: ignore[arg-type]


def test_a_killed_run_brings_back_what_it_had_taken_away(scripted: Scripted) -> None:
    losses.mend(scripted, None)  # type: ignore[arg-type]
    assert asked(scripted) == []
    about = {"replicate": 1, "pool": "p10-pair", "lost": "node", "attempt": 1}
    scripted.run.append("loss", status="begun", name="mirror-node", members={}, **about)
    losses.mend(scripted, None)  # type: ignore[arg-type]
    assert asked(scripted) == [("on", "n2")]
    assert [request.node for request in scripted.nodes.requests("restore")] == ["r1-n2"]


# ---- real ones -------------------------------------------------------------------------------------------


@dataclass
class Stage:
    """A replicate of the scenario on a real emulator, without the cluster of three nodes."""

    run: Run
    rig: Rig
    clients: Any

    def lose(self, *names: str) -> None:
        """Have the scenario lose what has these names, and nothing else."""
        chosen = tuple(loss for loss in self.run.scenario.loss if loss.name in names)
        self.rig.scenario = self.run.scenario.model_copy(update={"loss": chosen})


@pytest.fixture(scope="module")
def stage(place: Path) -> Iterator[Stage]:
    text = (SCENARIOS / "losses.toml").read_text("utf-8")
    of_trio = re.compile(r'"(t[1-3]|trio|three|small)"')
    parts = [part for part in text.split("\n\n") if not of_trio.search(part)]
    file = place / "pair.toml"
    file.write_text("\n\n".join(parts), "utf-8")
    lifecycle.start("losses", profile="quiet", time_scale=0.0, owner=True)
    run = stages.begin("losses", str(file), "emulator", "quick", emulator={"name": "losses"})
    with contextlib.ExitStack() as ended:
        ended.callback(lifecycle.stop, "losses")
        ended.callback(stages.teardown, run)
        stages.provision(run)
        clients = clients_of(run)
        rig = Rig.of(clients, run, run.scenario, run.manifest["replicates"][0], threading.Event())
        ended.callback(rig.close)
        volumes.make(rig, clients)
        yield Stage(run, rig, clients)


@pytest.mark.emulator
def test_a_drive_of_each_node_is_lost_and_what_was_acknowledged_is_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "LEAST_BEFORE_S", 5.0)  # a busy machine begins a load late
    monkeypatch.setattr(losses, "LEAST_DURING_S", 3.0)
    stage.lose("mirror-drive-each", "nested-drive-each")
    losses.play(stage.rig, stage.clients)
    failed = [event["error"] for event in events(stage.run, "loss", status="failed")]
    mirror, nested = events(stage.run, "loss", status="ok")
    assert (mirror["online"], nested["online"]) == ("no", "yes"), failed
    assert (mirror["expected_online"], nested["expected_online"]) == ("no", "yes")
    for event in (mirror, nested):
        assert event["blocks_verified"] == event["blocks_written"] > 0
        assert event["noticed_s"] > 0 and event["resync_s"] > 0
        kept = json.loads(gzip.decompress((stage.run.folder / event["file"]["path"]).read_bytes()))
        assert (kept["written"][event["volume"]]["errors"] > 0) is (event is mirror)
        assert list(kept["marks"]) == ["lost", "noticed", "ended", "back", "whole"]
    assert mirror["iops_during"] == 0 < nested["iops_during"] and nested["resync_bytes"] >= 4 * 2**20
    frame = tables.build(stage.run).losses
    assert frame["online"].tolist() == ["no", "yes"] and frame["error"].isna().all()
    tables.write(tables.build(stage.run), stage.run.folder)
    assert tables.read(stage.run.folder).losses.equals(frame)


@pytest.mark.emulator
def test_a_run_that_was_killed_in_a_loss_is_whole_before_it_goes_on(stage: Stage) -> None:
    stage.lose("mirror-node")
    (group,) = losses.groups(stage.rig.scenario)
    about = {"replicate": 1, "pool": group.pool.key, "lost": group.lost, "attempt": 1}
    stage.run.append("loss", status="begun", name="mirror-node", members={}, **about)
    losses._Members(stage.rig, stage.clients, group).take_away()
    assert stages.running_machines(stage.run, stage.clients, 1) is not None
    losses.mend(stage.rig, stage.clients)
    volumes.make(stage.rig, stage.clients)
    assert [loss.name for loss in losses.remaining(stage.run, stage.rig.scenario, 1)] == ["mirror-node"]


@pytest.mark.emulator
def test_the_layout_of_an_emulated_volume_is_in_the_manifest(stage: Stage) -> None:
    layout = stage.run.manifest["replicates"][0]["volumes"]["nested"]["layout"]
    (tier,) = layout["tiers"]
    assert layout["nodes"] == [0] * 4 + [1] * 4 and not tier["parity"]
    assert len(tier["members"]) == 8 and len(tier["members"][0]) == 4
