"""Volumes of a replicate on scripted nodes: the order of steps, what they are asked, what stops a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diskbook.clusters.measure import node_steps, pools, volumes
from diskbook.clusters.powershell import steps
from diskbook.clusters.powershell.steps import StepFailed
from diskbook.design import schedule
from diskbook.design.model import Volume
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB, KIB
from diskbook.measure.bench import steps as orphans, trials
from support.measuring import events
from support.scripted_nodes import WITNESS_KEY, ScriptedRig, rig


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_steps, "_PAUSES_S", (0.0, 0.0))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedRig:
    return rig(tmp_path / "run", monkeypatch)


def make(place: ScriptedRig) -> dict[str, Any]:
    volumes.make(place, None)  # type: ignore[arg-type]
    row: dict[str, Any] = place.run.manifest["replicates"][0]
    return row


def test_disks_nodes_cluster_pools_and_volumes_come_in_order(place: ScriptedRig) -> None:
    row = make(place)
    asked = place.nodes.steps()
    assert {machine for machine, step in asked[:3]} == {"single", "n1", "n2"}
    assert {step for _, step in asked[:3]} == {"prepare"}
    assert [step for machine, step in asked if machine == "n1"] == [
        "prepare",
        "validate",
        "cluster",
        "enable",
        "volume",
    ]
    assert [step for machine, step in asked if machine == "single"] == ["prepare", "enable", "volume"]
    as_task = {(machine, step): task for machine, step, task, _ in place.nodes.asked}
    assert as_task["n1", "enable"] and as_task["n1", "cluster"] and not as_task["single", "enable"]
    assert not as_task["n1", "prepare"]
    mirror, simple = row["volumes"]["mirror"], row["volumes"]["simple"]
    assert (mirror["id"], mirror["owner"], mirror["nodes"]) == ("g/r1-mirror", "n1", ["n1", "n2"])
    assert (mirror["kind"], mirror["parts"][0]["copies"], mirror["cluster"]) == ("two-way", 2, "s2d")
    assert (simple["owner"], simple["path"], simple["cluster"]) == ("single", "S:\\", None)
    (formed,) = place.nodes.requests("cluster")
    assert (formed.witness_account, formed.witness_key) == ("dbk1", WITNESS_KEY)
    assert row["clusters"]["s2d"]["nodes"] == ["n1", "n2"]
    assert row["clusters"]["s2d"]["validation"]["warnings"] == ["a warning"]
    (report,) = place.run.raw_paths()
    assert report.name == "validation-r1-s2d-1-a-report.htm.gz"
    recorded = events(place.run, "step")
    assert {event["ok"] for event in recorded} == {True} and len(recorded) == len(asked)
    assert set(recorded[0]) == {
        "event",
        "time_utc",
        "replicate",
        "step",
        "node",
        "ok",
        "error",
        "changed",
        "seconds",
    }


def test_the_pool_has_exactly_the_disks_of_the_run_by_windows_own_names(place: ScriptedRig) -> None:
    row = make(place)
    clustered = next(item for item in place.nodes.requests("enable") if item.clustered)
    assert clustered.pool == "dbk-p10" and len(clustered.disks) == 4
    first = clustered.disks[0]
    assert (first.node, first.lun, first.unique_id, first.size_bytes) == ("r1-n1", 0, "w-n1-0", 128 * GIB)
    assert row["pool_disks"]["p10-n2-2"] == {"unique_id": "w-n2-1", "lun": 1}
    assert set(row["pools"]) == {"p10-single", "p10-s2d"}


def test_a_resumed_run_asks_every_step_again_but_proves_no_pooled_disk(
    place: ScriptedRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make(place)

    def gone(*_: Any, **__: Any) -> None:
        raise AssertionError("a disk of a pool is no drive any more")

    monkeypatch.setattr(pools.machine_disks, "ours", gone)
    place.nodes.asked.clear()
    place.nodes.shows_ids = False
    assert make(place) == first
    again = [step for machine, step in place.nodes.steps() if machine == "n1"]
    assert again == ["prepare", "cluster", "enable", "volume"]  # the report is kept


def test_a_node_is_restarted_as_often_as_that_is_due(place: ScriptedRig) -> None:
    place.nodes.restarts = {"n2": 2}
    make(place)
    prepared = [machine for machine, step in place.nodes.steps("prepare")]
    assert prepared.count("n2") == 3 and prepared.count("n1") == 1
    assert all(request.restart for request in place.nodes.requests("prepare"))


def test_a_restart_that_does_not_end_is_told(place: ScriptedRig, monkeypatch: pytest.MonkeyPatch) -> None:
    place.nodes.restarts = {"n2": 10**6}
    monkeypatch.setattr(node_steps, "RESTART_S", 0.05)
    with pytest.raises(StepFailed, match=r"^r1-n2: a restart is still due 0 s after it was asked for$"):
        make(place)


@pytest.mark.parametrize(
    ("step", "planted", "message"),
    [
        ("enable", {"block_cache_mb": 1024}, r"pool dbk-p10 of .*: BlockCacheSize is 1024 MB, but no cache"),
        ("enable", {"disks": [{"unique_id": "other"}]}, r"does not consist of this run's disks; .*other"),
        ("cluster", {"nodes": ["R1-N1"]}, "cluster s2d has the nodes n1, not n1, n2"),
        ("cluster", {"nodes": ["R1-N1", "OTHER"]}, "OTHER is not a machine of replicate 1"),
        ("volume", {"owner": "elsewhere"}, "elsewhere is not a machine of replicate 1"),
        ("volume", {"size_bytes": 5}, "has 5 bytes, but 68719476736 were asked for"),
        ("volume", {"parts": []}, "has 0 parts, not 1"),
    ],
)
def test_what_is_not_as_it_was_asked_for_stops_the_run(
    place: ScriptedRig, step: str, planted: dict[str, Any], message: str
) -> None:
    place.nodes.plant[step] = planted
    with pytest.raises(DiskbookError, match=message):
        make(place)


@pytest.mark.parametrize("fact", ["resiliency", "copies", "columns", "redundancy", "interleave_bytes"])
def test_each_fact_of_a_volume_is_held_against_what_was_asked(fact: str) -> None:
    request = steps.striped("dbk", "v", 64 * GIB, 4, 3)
    request = request.model_copy(
        update={"parts": (request.parts[0].model_copy(update={"interleave_bytes": 1}),)}
    )
    part = {"name": "v", **request.parts[0].model_dump(), "footprint_bytes": 192 * GIB}
    state = {"parts": [part], "size_bytes": 64 * GIB}
    volumes.check("volume v", request, state)
    with pytest.raises(DiskbookError, match=rf"^volume v: {fact} of v is other, but .* was asked for$"):
        volumes.check("volume v", request, {**state, "parts": [{**part, fact: "other"}]})
    small = {**state, "parts": [{**part, "footprint_bytes": 191 * GIB}]}
    with pytest.raises(DiskbookError, match=r"takes .* bytes of the pool; its copies need"):
        volumes.check("volume v", request, small)


def test_a_disk_that_windows_does_not_name_is_not_put_into_a_pool(place: ScriptedRig) -> None:
    place.nodes.shows_ids = False
    with pytest.raises(DiskbookError, match="shows no uniqueId, so it cannot be distinguished from others"):
        make(place)
    assert not place.nodes.steps("enable")


@pytest.mark.parametrize(
    ("fields", "sizes", "parts"),
    [
        (
            {"kind": "simple", "machine": "single", "size_gib": 8, "interleave_kib": 64},
            (8, None, None),
            [(1, 64)],
        ),
        ({"kind": "two-way", "cluster": "s2d", "size_gib": 8}, (8, None, None), [(2, 256)]),
        ({"kind": "three-way", "cluster": "s2d", "size_gib": 8}, (8, None, None), [(3, 256)]),
        ({"kind": "nested-mirror", "cluster": "s2d", "size_gib": 8}, (None, 8, None), [(4, None)]),
        (
            {"kind": "nested-parity", "cluster": "s2d", "mirror_gib": 2, "parity_gib": 6},
            (None, 2, 6),
            [(4, None), (2, None)],
        ),
    ],
)
def test_every_kind_of_volume_is_asked_for_in_its_own_words(
    fields: dict[str, Any], sizes: tuple[Any, ...], parts: list[tuple[int, int | None]]
) -> None:
    volume = Volume(name="v", disk="p10", columns=2, **fields)
    request = volumes.asked("dbk", volume)
    asked = (request.size_bytes, request.mirror_bytes, request.parity_bytes)
    assert asked == tuple(size and size * GIB for size in sizes)
    interleaves = [kib and kib * KIB for _, kib in parts]
    assert [part.copies for part in request.parts] == [copies for copies, _ in parts]
    assert [part.interleave_bytes for part in request.parts] == interleaves
    assert request.interleave_bytes == (64 * KIB if volume.kind == "simple" else None)


def test_the_volumes_of_one_server_have_letters_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(tables: dict[str, Any]) -> None:
        tables["disk"] += ({**tables["disk"][0], "name": "more"},)
        tables["volume"] += ({**tables["volume"][0], "name": "second", "disk": "more"},)

    row = make(rig(tmp_path / "run", monkeypatch, another))
    assert [row["volumes"][name]["path"] for name in ("simple", "second")] == ["S:\\", "T:\\"]


def test_a_step_that_fails_is_recorded_in_the_nodes_own_words_without_secrets(place: ScriptedRig) -> None:
    password = node_steps.password(place.run.folder)
    spoken = f"{password} and {WITNESS_KEY} are not liked (step cluster on r1-n1)"
    place.nodes.plant["cluster"] = StepFailed(spoken)
    with pytest.raises(
        StepFailed, match=r"^\(hidden\) and \(hidden\) are not liked \(step cluster on r1-n1\)$"
    ):
        make(place)
    (failed,) = events(place.run, "step", ok=False)
    assert (failed["step"], failed["node"]) == ("cluster", "n1")
    assert failed["error"] == "(hidden) and (hidden) are not liked (step cluster on r1-n1)"
    text = (place.run.folder / "ledger.jsonl").read_text() + (place.run.folder / "manifest.json").read_text()
    assert password not in text and WITNESS_KEY not in text


# --- while it is measured


def test_a_volume_is_moved_to_the_owner_of_its_arm_and_only_then(place: ScriptedRig) -> None:
    make(place)
    owner, remote, alone = (place.scenario.arm_named(name) for name in ("owner", "remote", "alone"))
    placed = [volumes.place(place, arm) for arm in (owner, owner, remote, remote, owner, alone)]
    assert [node for each in placed for node in each.values()] == ["n1", "n1", "n2", "n2", "n1", "single"]
    assert placed[2] == {"mirror": "n2"}
    assert [request.node for request in place.nodes.requests("place")] == ["r1-n1", "r1-n2", "r1-n1"]
    moved = [event["changed"] for event in events(place.run, "step", step="place")]
    assert moved == [[], ["owner"], ["owner"]]


def test_an_owner_that_stays_away_fails_the_trial(place: ScriptedRig) -> None:
    make(place)
    place.nodes.plant["place"] = {"owner": "R1-N1"}
    with pytest.raises(StepFailed, match=r"^volume mirror is owned by n1, though n2 was asked for$"):
        volumes.place(place, place.scenario.arm_named("remote"))


def test_before_a_block_all_volumes_are_waited_for_and_owners_asked_anew(place: ScriptedRig) -> None:
    make(place)
    arm = place.scenario.arm_named("owner")
    volumes.place(place, arm)
    volumes.idle(place)
    volumes.place(place, arm)
    waited = {machine: request for machine, step, _, request in place.nodes.asked if step == "idle"}
    assert {machine: request.volumes for machine, request in waited.items()} == {
        "single": ("simple",),
        "n1": ("mirror",),
    }
    assert {request.quiet_s for request in waited.values()} == {0}
    assert len(place.nodes.requests("place")) == 2


def test_a_block_at_whose_end_a_volume_is_not_healthy_is_not_complete(
    place: ScriptedRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(place)
    ill = StepFailed("mirror is degraded (step idle on r1-n1)")
    place.nodes.plant["idle"] = [{}, {}, ill, ill]  # both pools before the block, both after it
    monkeypatch.setattr(trials, "_try_trial", lambda *_: True)
    with pytest.raises(StepFailed, match=r"^mirror is degraded .*; block 1 .* is measured again"):
        trials.measure(place, schedule.plan(place.scenario)[:1])
    assert [event["status"] for event in events(place.run, "block")] == ["begun"]
    waits = [request.wait_s for request in place.nodes.requests("idle")]
    assert min(waits[:2]) >= 10 and waits[2:] == [0, 0]


def test_the_file_that_is_measured_lies_on_the_volume_and_may_be_filled_elsewhere(place: ScriptedRig) -> None:
    make(place)
    simple = volumes.device(place, place.scenario.arm_named("alone"))
    assert (simple.target, simple.prefill_target) == ("S:\\diskbook.dat", "S:\\diskbook.dat")
    place.replicate["volumes"]["mirror"]["fill_path"] = "C:\\Fill\\mirror"
    mirror = volumes.device(place, place.scenario.arm_named("remote"))
    assert mirror.target == "C:\\ClusterStorage\\mirror\\diskbook.dat"
    assert mirror.prefill_target == "C:\\Fill\\mirror\\diskbook.dat" and mirror.size_bytes == 64 * GIB


def test_the_orphaned_job_of_a_trial_on_a_volume_is_recorded_where_it_ran(
    place: ScriptedRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(place)
    block = schedule.plan(place.scenario)[0].numbered(1)
    place.run.append("block", replicate=1, block=block.block, status="begun")
    job = orphans.OrphanedJob(1, {"stderr": b"ERROR: it ended"}, "2026-01-01T00:00:00", "2026-01-01T00:00:01")
    machines = []

    def fetch(rig: Any, machine: str, *_: Any) -> orphans.OrphanedJob:
        machines.append(machine)
        return job

    monkeypatch.setattr(orphans, "fetch_orphaned_job", fetch)
    assert not trials._completed_by_orphaned_job(place, block)
    (recorded,) = events(place.run, "trial")
    arm = place.scenario.arm_named(block.trials[0].arm)
    assert (recorded["volume"], recorded["owner"]) == (arm.volume, arm.owner or arm.machine)
    assert (recorded["disk"], recorded["disk_id"]) == ("", f"g/r1-{arm.volume}")
    assert recorded["adopted"] and recorded["lun"] is None and machines == [arm.machine]
