"""Runs on a real emulator: measured to the end, and resumed after all that goes wrong on the way."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from diskbook.cloud import kinds
from diskbook.design import schedule
from diskbook.facts import files
from diskbook.facts.errors import DiskbookError, Stopped
from diskbook.hosts import guest
from diskbook.measure.bench import trials
from diskbook.measure.bench.rig import Rig
from diskbook.measure.runs import stages
from diskbook.results import plan as plans, tables
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support import SCENARIOS, played
from support.emulated import leftovers
from support.measuring import (
    QUIET,
    begin,
    break_fio,
    cut_sessions,
    events,
    groups_of,
    held_job,
    hold,
    let_go,
    meanwhile,
    on_machine,
    output_of,
)

pytestmark = pytest.mark.emulator

# --- a run that nothing happens to


@dataclass(frozen=True)
class Lived:
    """A run from begin to teardown, with its ledger after the first and the second call of `benchmark`."""

    run: Run
    measured: list[dict[str, Any]]
    measured_again: list[dict[str, Any]]
    left: list[str]


@pytest.fixture(scope="module")
def lived(place: Path) -> Lived:
    run = begin("lived", QUIET, "small")
    kinds.of(run).start(run, owner=True)
    folder = lifecycle.connect(run.manifest["emulator"]["name"]).folder
    try:
        stages.provision(run)
        stages.benchmark(run)
        measured = run.ledger()
        stages.provision(run)
        stages.benchmark(run)
        measured_again = run.ledger()
    finally:
        stages.teardown(run)
    return Lived(run, measured, measured_again, leftovers(folder))


def test_every_planned_trial_is_measured_once(lived: Lived) -> None:
    trials = events(lived.run, "trial")
    assert [trial["status"] for trial in trials] == ["ok"] * 9
    cells = {(trial["arm"], trial["workload"]) for trial in trials}
    assert len(cells) == 9 and {arm for arm, _ in cells} == {"lrs-z1", "zrs-z1", "zrs-z2"}
    assert {trial["attempt"] for trial in trials} == {1}
    for step in ("prefill", "overwrite"):
        assert sorted(event["disk"] for event in events(lived.run, step, caps_lifted=True)) == ["lrs", "zrs"]


def test_both_checks_come_out_as_expected(lived: Lived) -> None:
    refused, intact = events(lived.run, "finding")
    assert (refused["ok"], refused["observed"]) == (True, "BadRequest")
    assert "VM zone: '2'. Disk zone: '1'" in refused["text"]
    assert (intact["ok"], intact["observed"]) == (True, 64)  # 4 MiB in blocks of 64 KiB


def test_tables_are_built_from_the_raw_files(lived: Lived) -> None:
    trials = tables.build(lived.run).trials
    assert set(trials.status) == {"ok"}
    assert set(trials.provenance) == {"emulated"}
    by_load = trials.set_index(["arm", "workload", "direction"]).sort_index()
    for arm in ("lrs-z1", "zrs-z1", "zrs-z2"):
        parts = by_load.lat_mean_ms[arm, "commit-qd1"]
        assert parts["commit"] == pytest.approx(parts["write"] + parts["sync"])
    truth = json.loads((lived.run.folder / "truth.json").read_text())
    drawn = played.drawn_ms(trials, truth).groupby(trials["arm"] + " " + trials["workload"]).mean()
    assert drawn["zrs-z1 write-qd1"] > 1.5 * drawn["lrs-z1 write-qd1"] > 0
    writes = by_load.loc[(slice(None), "write-qd1", "write"), "lat_mean_ms"].droplevel([1, 2])
    assert all(writes[arm] > drawn[f"{arm} write-qd1"] - played.EARLY_MS for arm in writes.index)
    for event in events(lived.run, "trial"):
        assert {"json", "lat_log", "iops_log"} <= set(event["files"])
        assert output_of(lived.run, event).startswith(("{", "fio:"))


def test_every_trial_knows_its_machine_and_what_a_commit_did(lived: Lived) -> None:
    built = tables.build(lived.run)
    assert (
        len(built.guest) == 9
    )  # of each trial; asked once a disk and machine, with a finished run not again
    assert set(built.guest.kernel) == {f"Linux {os.uname().release}"}
    assert set(built.guest.driver) == {guest.NBD} and set(built.guest.ioengine) == {"nbd"}
    assert built.guest.write_cache.isna().all() and built.guest.scheduler.isna().all()
    assert set(built.guest.image) == {"Canonical:ubuntu-24_04-lts:server:1.0.10"}
    assert lived.run.manifest["images"] == {"linux": "1.0.10"}
    for name in ("usr_pct", "sys_pct", "steal_pct", "busiest_core_pct"):
        assert built.guest[name].between(0, 101).all(), name
    assert (built.guest.busiest_core_pct > 0).all()
    by_load = built.trials.groupby("workload").durability.agg(set)
    assert by_load["commit-qd1"] == {"flushed"} and by_load["write-qd1"] == {""}


def test_a_finished_run_repeats_nothing(lived: Lived) -> None:
    assert lived.measured_again == lived.measured


def test_teardown_leaves_nothing_but_the_results(lived: Lived) -> None:
    manifest = lived.run.manifest
    assert lived.left == []
    assert manifest["emulator"]["name"] not in [one.name for one in lifecycle.status()]
    assert [row["deleted_utc"] is not None for row in manifest["resource_groups"]] == [True]
    assert events(lived.run, "operation", name="delete resource group")
    assert not (lived.run.folder / "keys").exists()
    truth = json.loads((lived.run.folder / "truth.json").read_text())
    assert [trial["matched"] for trial in truth["trials"]] == [True] * 9


# --- fio fails


@pytest.mark.parametrize("tiny", ["standard"], indirect=True)
def test_failed_trials_are_told_and_tried_once_more(tiny: Run) -> None:
    # Reads fail in another way each first time and then succeed; writes always fail.
    break_fio(
        tiny,
        read=f"1) fail 'engine nbd not loadable' ;; 3) {shutil.which('fio')} \"$@\" | head -c 900; exit 0 ;;",
        write="1) exit 0 ;; *) fail 'pid=7, err=5/file:io_u.c:1876, error=Input/output error' ;;",
    )
    stages.benchmark(tiny)

    reads, writes = (events(tiny, "trial", workload=name) for name in ("read-qd1", "write-qd1"))
    assert [(row["block"], row["attempt"], row["status"]) for row in reads] == [
        (1, 1, "failed"),
        (1, 2, "ok"),
        (2, 1, "failed"),
        (2, 2, "ok"),
    ]
    assert reads[0]["error"].endswith('fio failed with "engine nbd not loadable"')
    assert output_of(tiny, reads[0], "err") == "fio: engine nbd not loadable\n"
    assert "fio's JSON is cut or damaged at line" in reads[2]["error"]
    assert 0 < len(output_of(tiny, reads[2])) <= 900
    assert [row["status"] for row in writes] == ["failed"] * 4
    assert writes[0]["error"].endswith("fio wrote no output")
    assert all("error=Input/output error" in row["error"] for row in writes[1:])
    assert [event["block"] for event in events(tiny, "block", status="complete")] == [1, 2]

    table = tables.build(tiny).trials
    failed = table[table.status == "failed"]
    assert sorted(failed.trial) == sorted(row["trial"] for row in [*writes, reads[0], reads[2]])
    assert set(failed.direction) == {"none"} and failed.lat_mean_ms.isna().all()
    assert dict(zip(failed.trial, failed.error, strict=True))[reads[0]["trial"]] == reads[0]["error"]
    assert sorted(table[table.status == "ok"].trial) == [reads[1]["trial"], reads[3]["trial"]]


def test_a_prefill_that_failed_is_done_anew_and_a_block_of_failures_is_repeated(tiny: Run) -> None:
    trials = {"read": "1|2) fail 'no luck' ;;", "write": "1|2) fail 'no luck either' ;;"}
    break_fio(tiny, prefill="1) fail 'no such device' ;;", **trials)
    with pytest.raises(DiskbookError, match=r"prefill of lrs: fio failed with .no such device"):
        stages.benchmark(tiny)
    assert not events(tiny, "trial")
    with pytest.raises(DiskbookError, match=r"no trial of block 1 succeeded; .*fio failed with .no luck"):
        stages.benchmark(tiny)
    assert not events(tiny, "block", status="complete")
    stages.benchmark(tiny)
    assert [row["status"] for row in events(tiny, "trial")] == ["failed"] * 4 + ["ok"] * 2


# --- no room for results


class SmallDisk:
    """The folder of runs on a disk of its own that a test can fill."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._filler = folder / "filler"
        self._patch = patch
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
        self.real = os.getuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0

    def fill(self, left_bytes: int) -> None:
        """Leave so much room; where nothing can be mounted, every new raw file is refused instead."""
        if not self.real:
            self._patch.setattr(files, "write_atomic", _refuse_raw(files.write_atomic))
            return
        state = os.statvfs(self.folder)
        self._filler.write_bytes(b"\0" * (state.f_bavail * state.f_frsize - left_bytes))

    def empty(self) -> None:
        """Make room again."""
        self._filler.unlink(missing_ok=True)
        self._patch.undo()

    def close(self) -> None:
        if self.real:
            subprocess.run(["umount", str(self.folder)], check=True)


def _refuse_raw(write: Callable[..., None]) -> Callable[..., None]:
    def refuse(path: Path, content: str | bytes) -> None:
        if path.parent.name == "raw":
            raise OSError(28, "No space left on device")
        write(path, content)

    return refuse


@pytest.fixture
def small_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallDisk]:
    with pytest.MonkeyPatch.context() as patch:
        disk = SmallDisk(place / "disk", patch)
        monkeypatch.setenv("DISKBOOK_RUNS", str(disk.folder))
        try:
            yield disk
        finally:
            disk.close()


def test_a_full_disk_stops_the_run_and_loses_no_trial(small_disk: SmallDisk, shared: dict[str, Any]) -> None:
    run = begin("full", shared, preset="standard")
    stages.provision(run)
    small_disk.fill(left_bytes=32 * 1024)
    with pytest.raises(DiskbookError) as stopped:
        stages.benchmark(run)
    assert str(stopped.value) == (
        f"cannot write to {run.folder}: the disk is full; finished trials are kept: make room, then "
        "'diskbook run --resume full'"
    )
    kept = run.ledger()
    assert len(events(run, "trial", status="ok")) < 4

    small_disk.empty()
    stages.benchmark(run)
    assert run.ledger()[: len(kept)] == kept
    assert len(run.manifest["replicates"]) == 1
    table = tables.build(run).trials
    assert len(table[table.status == "ok"]) == 4

    small_disk.fill(left_bytes=0)
    with contextlib.suppress(DiskbookError):
        stages.teardown(run)
    assert not groups_of(run)  # a full disk is no reason to leave machines standing
    assert not (run.folder / "keys").exists()
    small_disk.empty()
    stages.teardown(run)
    assert all(row["deleted_utc"] for row in run.manifest["resource_groups"])


# --- a finding other than expected


def test_an_attachment_that_had_to_be_refused_and_was_not(shared: dict[str, Any]) -> None:
    changed = {"check.refused.disk": "zrs"}
    path = str(SCENARIOS / "small.toml")
    run = stages.begin("wrong", path, "emulator", "quick", changed, shared)
    stages.provision(run)
    try:
        told = "check refused: attaching zrs to vm2 succeeded, though it had to be refused"
        with pytest.raises(DiskbookError, match=f"^{told}$"):
            stages.benchmark(run)
        (finding,) = events(run, "finding")
        assert (finding["ok"], finding["expected"], finding["observed"]) == (False, "BadRequest", "attached")
        assert not events(run, "trial") and not stages.finished(run)
    finally:
        stages.teardown(run)


# --- what goes away during a run


def test_a_lost_session_loses_no_trial(tiny: Run) -> None:
    cut: list[int] = []

    def act() -> None:
        job = held_job(tiny, "r1-b01-p001-*")
        listener = psutil.Process(int((job.parents[2] / "sshd.pid").read_text()))
        cut.extend(cut_sessions(listener))
        let_go(job)

    hold(tiny, "r1-b01-p001-*")
    with meanwhile(act):
        stages.benchmark(tiny)
    assert cut
    assert [(row["status"], row["attempt"]) for row in events(tiny, "trial")] == [("ok", 1)] * 2


def test_a_run_cut_during_its_trials_for_evidence_goes_on_with_the_rest(
    shared: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They last a moment here: what is measured again does not depend on it."""
    short = {"runtime_s": 0.2}
    monkeypatch.setattr(
        schedule, "for_evidence", lambda load, s: load.model_copy(update=short) if s else load
    )
    scenario = str(SCENARIOS / "evidence.toml")
    run = stages.begin("cut-evidence", scenario, "emulator", "quick", {"design.evidence_s": 120}, shared)
    whole = trials._trial

    def cut(rig: Rig, planned: schedule.PlannedTrial, attempt: int) -> bool:
        if planned.workload == "write-qd8" and planned.evidence:
            raise Stopped(signal.SIGTERM)
        return whole(rig, planned, attempt)

    stages.provision(run)
    try:
        with monkeypatch.context() as patch, pytest.raises(Stopped):
            patch.setattr(trials, "_trial", cut)
            stages.benchmark(run)
        before = run.ledger()
        stages.benchmark(run)
    finally:
        stages.teardown(run)
    evidence = [(row["workload"], row["position"]) for row in events(run, "trial") if "evidence_s" in row]
    assert evidence == [("read-qd8", 1), ("write-qd8", 1)]
    again = [row for row in run.ledger()[len(before) :] if row["event"] == "trial"]
    assert [row["workload"] for row in again] == ["write-qd8"]


@pytest.mark.parametrize("tiny", ["full"], indirect=True)
def test_a_killed_run_goes_on_with_the_same_machines(tiny: Run, place: Path) -> None:
    before = tiny.manifest["replicates"]
    kill_in_second_block(tiny, "p002")
    killed = tiny.ledger()
    assert len(events(tiny, "trial")) == 3
    leave_behind(tiny)

    stages.provision(tiny)
    stages.benchmark(tiny)
    assert tiny.manifest["replicates"] == before
    assert tiny.ledger()[: len(killed)] == killed
    assert len(events(tiny, "prefill")) == len(events(tiny, "overwrite")) == 1
    assert not [line for line in leftovers(place) if line == "sleep 611"]
    assert_block_two_was_repeated_whole(tiny, killed)


@pytest.mark.parametrize("tiny", ["full"], indirect=True)
def test_a_trial_that_ended_without_its_client_is_not_lost(tiny: Run) -> None:
    kill_in_second_block(tiny, "p002")
    stages.benchmark(tiny)  # it was the last of its block
    assert [row["status"] for row in events(tiny, "block")] == ["begun", "complete"] * 2
    assert_each_trial_is_of_its_time(tiny)
    assert set(tables.build(tiny).trials.status) == {"ok"}
    assert len(events(tiny, "trial")) == 4


@pytest.mark.parametrize("tiny", ["full"], indirect=True)
def test_what_a_cut_block_has_measured_is_kept_beside_its_repetition(tiny: Run) -> None:
    kill_in_second_block(tiny, "p001")
    stages.benchmark(tiny)
    lost, *again = events(tiny, "trial", block=2)
    assert [(row["position"], row["attempt"]) for row in (lost, *again)] == [(1, 1), (1, 2), (2, 1)]
    assert_each_trial_is_of_its_time(tiny)
    table = tables.build(tiny).trials.set_index("trial")
    assert table.status[lost["trial"]] == "incomplete_block"
    assert sorted(table.status) == ["incomplete_block"] + ["ok"] * 4


def kill_in_second_block(run: Run, position: str) -> None:
    """Benchmark in a process of its own, and kill that in a trial of block 2."""
    trial = f"r1-b02-{position}-*"
    hold(run, trial)
    child = multiprocessing.get_context("fork").Process(target=stages.benchmark, args=(run,))
    child.start()
    try:
        job = held_job(run, trial)
    finally:
        child.kill()
        child.join()
    assert child.exitcode == -signal.SIGKILL
    let_go(job)


def leave_behind(run: Run) -> None:
    """What a killed run may leave besides: a job with the next trial's name, half a trial's files."""
    trials = plans.remaining(run, 1)[0].trials
    with on_machine(run) as connection:
        connection.end_jobs()
        connection.start_job(trials[0].name(2), ["sleep", "611"])
    run.write_raw(f"{trials[1].name(1)}.json", b"half")


def assert_block_two_was_repeated_whole(run: Run, killed: list[dict[str, Any]]) -> None:
    table = tables.build(run).trials.set_index("trial")
    assert sorted(table[table.status == "ok"].block) == [1, 1, 2, 2]
    (lost,) = [event["trial"] for event in killed if event["event"] == "trial" and event["block"] == 2]
    assert table.status[lost] == "incomplete_block"
    assert set(table.status) == {"ok", "incomplete_block"}
    assert_each_trial_is_of_its_time(run)


def assert_each_trial_is_of_its_time(run: Run) -> None:
    for trial in events(run, "trial"):  # no output is that of an earlier, unfinished trial
        text = output_of(run, trial)
        ended = json.loads(text[text.index("{") :])["timestamp_ms"] / 1000
        assert ended >= datetime.fromisoformat(trial["started_utc"]).timestamp() + 0.4


def test_machines_that_are_gone_are_replaced_by_a_new_replicate(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diskbook.hosts.private_access.RECONNECT_S", 1.0)
    run = begin("gone", QUIET, preset="standard")
    kinds.of(run).start(run, owner=True)
    name = run.manifest["emulator"]["name"]

    def end_emulator() -> None:
        held_job(run, "r1-b02-*")
        os.kill(lifecycle.connect(name).pid, signal.SIGKILL)

    try:
        stages.provision(run)
        hold(run, "r1-b02-*")
        with meanwhile(end_emulator), pytest.raises(DiskbookError, match="cannot be reached"):
            stages.benchmark(run)
        lifecycle.stop(name)
        with pytest.raises(DiskbookError, match="emulator"):
            stages.benchmark(run)
        first = events(run, "trial", block=1)

        kinds.of(run).start(run, owner=True)
        stages.provision(run)
        stages.benchmark(run)
    finally:
        stages.teardown(run)

    old, new = run.manifest["replicates"]
    assert [(row["replicate"], row["origin"]) for row in (old, new)] == [(1, 1), (2, 1)]
    assert old["disks"]["lrs"]["unique_id"] != new["disks"]["lrs"]["unique_id"]
    assert events(run, "trial", block=1) == first
    table = tables.build(run).trials.query("status == 'ok'")
    assert sorted(zip(table.replicate, table.block, strict=True)) == [(1, 1), (1, 1), (2, 2), (2, 2)]
