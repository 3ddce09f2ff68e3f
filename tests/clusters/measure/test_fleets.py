"""Fleets on scripted nodes: volumes of one entry, their files before each block, trials on all machines."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from diskbook.clusters.measure import fleets, volumes
from diskbook.clusters.powershell.steps import StepFailed
from diskbook.design import schedule
from diskbook.facts import files
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB, MIB
from diskbook.measure.bench import steps, trials
from diskbook.results import tables
from support.measuring import events
from support.scripted_nodes import ScriptedRig, rig

FILE = 64 * MIB


def several(tables: dict[str, Any]) -> None:
    """Two mirrors of one entry, a fleet on them, and the same fleet on the other nodes."""
    tables["volume"][1]["count"] = 2
    tables["volume"][1]["size_gib"] = 32
    arms = {arm["name"]: arm for arm in tables["arm"]}
    arms["remote"].update(owner=None, aligned=False)
    load = {**tables["workload"][1], "working_set_gib": 0.0625, "runtime_s": 2.0, "blocks": 2}
    tables["workload"] = [
        {**load, "name": "plain", "arms": ["alone"]},
        {**load, "name": "fleet", "instances": 4, "threads": 2, "arms": ["owner", "remote"]},
        {**load, "name": "single", "tool": "vmfleet", "queue_depth": 1, "arms": ["owner"]},
    ]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedRig:
    made = rig(tmp_path / "run", monkeypatch, several)
    volumes.make(made, None)  # type: ignore[arg-type]
    for name in made.scenario.members_of(made.scenario.volume_named("mirror")):
        made.replicate["volumes"][name]["fill_path"] = f"C:\\Fill\\{name}"
    monkeypatch.setattr(trials, "PAUSE_S", 0.0)
    return made


def measure(place: ScriptedRig, arm: str, load: str = "fleet") -> None:
    """Measure one cell of the first block."""
    block = schedule.plan(place.scenario)[0]
    cell = (arm, load)
    alone = schedule.Block(1, 1, tuple(item for item in block.trials if (item.arm, item.workload) == cell))
    trials.measure(place, [alone])


def test_volumes_of_an_entry_are_made_one_by_one_and_owned_in_turn(place: ScriptedRig) -> None:
    made = place.run.manifest["replicates"][0]["volumes"]
    assert {name: entry["entry"] for name, entry in made.items()} == {
        "simple": "simple",
        "mirror-1": "mirror",
        "mirror-2": "mirror",
    }
    assert [made[name]["id"] for name in ("mirror-1", "mirror-2")] == ["g/r1-mirror-1", "g/r1-mirror-2"]
    assert volumes.place(place, place.scenario.arm_named("owner")) == {"mirror-1": "n1", "mirror-2": "n2"}
    assert place.nodes.owners == {"simple": "r1-single", "mirror-1": "r1-n1", "mirror-2": "r1-n2"}
    volumes.idle(place)
    assert ("mirror-1", "mirror-2") in [request.volumes for request in place.nodes.requests("idle")]
    assert place.owners == {}


def test_a_trial_runs_on_all_volumes_and_its_archive_is_its_result(place: ScriptedRig) -> None:
    measure(place, "owner")
    request = place.nodes.requests("fleet")[-1]
    places = [(volume.name, volume.path, volume.node) for volume in request.volumes]
    assert places == [
        ("mirror-1", "C:\\ClusterStorage\\mirror-1", "r1-n1"),
        ("mirror-2", "C:\\ClusterStorage\\mirror-2", "r1-n2"),
    ]
    assert (request.instances, request.file_bytes, request.create, request.by) == (
        2,
        FILE,
        False,
        "processes",
    )
    assert request.line.startswith("-Z20M -z -h -t2 -o4 -b4k -r4k -w100 -W0 -d2")
    (trial,) = events(place.run, "trial")
    assert request.spec == trial["trial"] and trial["status"] == "ok"
    assert (trial["machine"], trial["tool"], trial["owner"]) == ("n1", "vmfleet", "")
    assert (trial["disk"], trial["disk_id"], trial["volume"]) == ("", "g/r1-mirror", "mirror")
    assert set(trial["files"]) == {"fleet", "counters"}
    path = place.run.folder / trial["files"]["fleet"]["path"]
    with zipfile.ZipFile(io.BytesIO(files.read_packed(path))) as archive:
        assert len(archive.namelist()) == 5
    assert [task for _, step, task, _ in place.nodes.asked if step == "fleet"] == [True, True]
    assert not events(place.run, "step", step="fleet")  # the trial's own line says it


def test_a_single_machine_has_the_first_volume(place: ScriptedRig) -> None:
    measure(place, "owner", "single")
    request = place.nodes.requests("fleet")[-1]
    assert [(volume.name, volume.node) for volume in request.volumes] == [("mirror-1", "r1-n1")]
    assert request.instances == 1 and "-t1 -o1 " in request.line
    (trial,) = events(place.run, "trial")
    assert (trial["status"], trial["tool"], trial["volume"]) == ("ok", "vmfleet", "mirror")


def test_machines_that_are_not_aligned_run_on_the_node_after_the_owner(place: ScriptedRig) -> None:
    measure(place, "remote")
    request = place.nodes.requests("fleet")[-1]
    assert [(volume.name, volume.node) for volume in request.volumes] == [
        ("mirror-1", "r1-n2"),
        ("mirror-2", "r1-n1"),
    ]
    assert place.nodes.owners["mirror-1"] == "r1-n1"


def test_before_each_block_every_file_is_written_and_volumes_are_waited_for_again(place: ScriptedRig) -> None:
    place.nodes.asked.clear()
    measure(place, "owner")
    steps = [step for machine, step in place.nodes.steps("idle", "fleet") if machine == "n1"]
    assert steps == ["idle", "fleet", "idle", "fleet", "idle"]
    request = place.nodes.requests("fleet")[0]
    assert request.create and (request.instances, request.file_bytes) == (2, FILE)
    assert [volume.path for volume in request.volumes] == ["C:\\Fill\\mirror-1", "C:\\Fill\\mirror-2"]
    assert f"-c{FILE}" in request.line or "-c64M" in request.line
    (filled,) = events(place.run, "prefill")
    assert (filled["volume"], filled["bytes"], filled["caps_lifted"]) == ("mirror", 4 * FILE, True)
    fleets.warm_up(place)
    assert len(events(place.run, "prefill")) == 2


def test_after_writes_to_two_tiers_the_next_trial_waits_until_nothing_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tiers(tables: dict[str, Any]) -> None:
        several(tables)
        tables["volume"][1].update(
            kind="nested-parity", size_gib=None, mirror_gib=4, parity_gib=20, columns=1
        )

    made = rig(tmp_path / "tiers", monkeypatch, tiers)
    volumes.make(made, None)  # type: ignore[arg-type]
    block = schedule.plan(made.scenario)[0]
    cells = [item for item in block.trials if item.workload == "fleet"]
    trials.measure(made, [schedule.Block(1, 1, tuple(cells))])
    steps = [step for machine, step in made.nodes.steps("idle", "fleet") if machine == "n1"]
    # Before the block, after the files are written, between the two trials, and at the end.
    assert steps == ["idle", "fleet", "idle", "fleet", "idle", "fleet", "idle"]
    between = [request for request in made.nodes.requests("idle") if request.volumes[0] == "mirror-1"][2]
    assert between.quiet_s == 1 and between.volumes == ("mirror-1", "mirror-2")
    totals = made.nodes.steps("counters")
    assert len(totals) == 8  # of two nodes, before and after each trial: what moved between is not a trial's


def test_files_are_written_for_longer_until_the_slowest_machine_has_all_of_it(
    place: ScriptedRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.nodes.fleet_iops = 40.0  # of a MiB each
    assert fleets.warm_up(place)
    seconds = [request.line.partition("-d")[2].split()[0] for request in place.nodes.requests("fleet")]
    assert seconds == ["1", "3"]
    monkeypatch.setattr(fleets, "FILLS", 1)
    with pytest.raises(
        DiskbookError, match="mirror: 41943040 of 67108864 bytes of a file were written in 1 a"
    ):
        fleets.warm_up(place)


def test_results_of_another_trial_are_refused_and_the_trial_is_tried_again(place: ScriptedRig) -> None:
    measure(place, "owner")
    request = place.nodes.requests("fleet")[-1]
    left = place.nodes.requests("fleet")[0]
    node = place.new_connection("n1")
    place.nodes.plant["fleet"] = [{}, node._fleet(left)[0]]
    measure(place, "owner")
    statuses = [(event["status"], event["error"]) for event in events(place.run, "trial")][1:]
    assert statuses[0][0] == "failed" and "answered with results of another: result-" in statuses[0][1]
    assert statuses[1] == ("ok", None)
    assert place.nodes.requests("fleet")[-1].spec != request.spec


@pytest.mark.parametrize("archive", ["", "AAAA"])
def test_an_answer_that_is_no_archive_is_one_sentence(place: ScriptedRig, archive: str) -> None:
    place.nodes.plant["fleet"] = {"archive": archive}
    with pytest.raises(StepFailed, match=r"^the fleet of warmup1-mirror-1 answered with no archive: "):
        fleets.warm_up(place)


def test_a_volume_alone_is_prefilled_once_and_has_no_fleet(place: ScriptedRig) -> None:
    arm = place.scenario.arm_named("alone")
    assert fleets.device(place, place.scenario.arm_named("owner")).size_bytes == 32 * GIB
    for state in (place.prefilled, place.overwritten):
        state.add(volumes.ledger_place(place, arm.volume)["disk_id"])
    device = steps.of(place.scenario).device(place, arm, place.scenario.workload_named("plain"))
    assert device.target == "S:\\diskbook.dat" and not place.nodes.requests("fleet")


def test_the_tables_of_a_run_have_its_fleets(place: ScriptedRig) -> None:
    measure(place, "owner")
    document = place.run.manifest
    limits = {"limits": {"iops": 500, "mb_s": 100}}
    for kind in ("machines", "disks"):
        for row in document["replicates"][0][kind].values():
            row.update(size="Standard_D4as_v4", **limits)
    place.run.write_manifest(
        {**document, "provenance": "emulated", "site": "s2d-azure", "cloud": "emulator",
         "scenario": place.scenario.model_dump(mode="json")}
    )  # fmt: skip
    made = tables.build(place.run)
    (row,) = made.trials.to_dict("records")
    assert (row["volume"], row["owner"], row["outstanding"], row["iops"]) == ("mirror", "", 32, 800.0)
    assert len(made.fleet) == 4 and set(made.fleet["volume"]) == {"mirror-1", "mirror-2"}
    # Two disks a node, both volumes together: each write takes an I/O on each node.
    assert row["cap_disk_iops"] == 1000.0
