"""Runs on hosts of one's own, in earnest: this machine, and an sshd on loopback that comes and goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import keys
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.hosts import stage
from diskbook.hosts.ssh import Host
from diskbook.measure.runs import stages, sweep
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook_emulator.machine import Machine
from support.own_hosts import OWN, begun, disk_folder, hosts_file, server, written

pytestmark = pytest.mark.emulator


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on a disk, and runs elsewhere."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("diskbook.hosts.private_access.RECONNECT_S", 1.0)
    with disk_folder() as folder:
        yield folder


@pytest.fixture
def remote(tmp_path: Path, place: Path) -> Iterator[tuple[Machine, Host]]:
    with server(tmp_path) as made:
        yield made


def data_of(run: Run) -> Path:
    return Path(run.manifest["replicates"][0]["disks"]["disk"]["place"]["target"])


def events(run: Run, kind: str) -> list[Any]:
    return [event for event in run.ledger() if event["event"] == kind]


def test_this_machine_is_measured_and_nothing_is_left(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "mine").write_text("stays")
    run = begun("here", folder=place)
    assert run.manifest["provenance"] == "inventory" and run.manifest["resource_groups"] == []
    stages.provision(run)
    assert data_of(run).parent.parent == place and data_of(run).stat().st_mode & 0o777 == 0o600
    stages.benchmark(run)
    table = tables.build(run).trials
    assert set(table["provenance"]) == {"inventory"} and set(table["status"]) == {"ok"}
    assert table.filter(regex="^cap_").isna().all().all() and set(table["credit_state"]) == {"none"}
    assert run.manifest["emulator"] is None and run.manifest["azure"] is None
    stages.teardown(run)
    assert [path.name for path in place.iterdir()] == ["mine"]
    assert f"removed {data_of(run)} on here" in capsys.readouterr().out
    stages.teardown(run)  # twice is as good as once


def test_what_stands_is_taken_and_what_is_gone_is_made_again(place: Path) -> None:
    run = begun("again", folder=place)
    stages.provision(run)
    first = data_of(run).stat().st_ino
    stages.provision(run)
    assert data_of(run).stat().st_ino == first and len(events(run, "marked")) == 1
    stages.teardown(run)
    assert not data_of(run).exists()
    stages.provision(run)  # the same disk: no other replicate
    assert [row["replicate"] for row in run.manifest["replicates"]] == [1] and len(events(run, "marked")) == 2
    stages.benchmark(run)
    assert len(events(run, "prefill")) == 1
    stages.teardown(run)


def test_what_is_not_the_runs_own_is_left(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = begun("foreign", folder=place)
    stages.provision(run)
    data = data_of(run)
    (data.parent / "notes").write_text("of somebody")
    data.write_bytes(b"something else")
    with pytest.raises(DiskbookError, match="does not carry the mark of this run, so nothing was written"):
        stages.benchmark(run)
    stages.teardown(run)
    said = capsys.readouterr().out
    assert f"{data} does not carry the mark of this run, so it was left" in said
    assert f"{data.parent} holds something that the run did not make, so it was left" in said
    assert data.read_bytes() == b"something else" and (data.parent / "notes").exists()
    assert "not torn down: " in stage.standing_text(run.manifest)


def test_a_killed_run_s_files_are_swept(place: Path) -> None:
    run = begun("killed", folder=place)
    stages.provision(run)
    run.update_manifest(kept=False)
    (leftover,) = [row for row in sweep.on_this_computer() if "run killed, not torn down" in row.text]
    assert leftover.goes
    leftover.remove()
    assert list(place.iterdir()) == [] and not [
        row for row in sweep.on_this_computer() if "run killed" in row.text
    ]


def test_a_host_over_ssh_vanishes_comes_back_and_the_run_goes_on(
    tmp_path: Path, place: Path, remote: tuple[Machine, Host], capsys: pytest.CaptureFixture[str]
) -> None:
    machine, host = remote
    run = begun("ssh", hosts=hosts_file(tmp_path, host, paths=[str(place)]))
    stages.provision(run)
    machine.stop()
    with pytest.raises(DiskbookError, match=r"machine here cannot be reached at 127.0.0.1:\d+ .*then resume"):
        stages.benchmark(run)
    stages.teardown(run)
    said = capsys.readouterr().out
    assert "left: host here (" in said and "'diskbook teardown ssh' removes what is there" in said
    assert data_of(run).exists() and "not torn down" in stage.standing_text(run.manifest)
    machine.start()
    stages.provision(run)
    stages.benchmark(run)
    assert stages.finished(run) and len(events(run, "marked")) == 1
    stages.teardown(run)
    assert list(place.iterdir()) == []
    assert not (machine.folder / "home" / "jobs").exists()  # a home is its user's


def test_what_a_host_refuses_is_told(remote: tuple[Machine, Host], tmp_path: Path) -> None:
    _, host = remote
    other = key_pair(tmp_path)
    for changed, sentence in (
        (replace(host, host_key=other[0]), "shows another host key than host_key has: .*find out why"),
        (replace(host, private_key=other[1]), "does not let .* in with identity_file .*authorized_keys"),
        (replace(host, port=1), "does not answer .*; see whether it runs"),
        (replace(host, address="no-such-host.invalid"), "does not answer"),
    ):
        with pytest.raises(DiskbookError, match=sentence):
            stage.try_once(changed)
    stage.try_once(host)


def key_pair(folder: Path) -> tuple[str, Path]:
    """Another key pair: the line of its public half, and the file of its private one."""
    pair = keys.new_pair("other")
    private = folder / "other"
    private.write_text(pair.private)
    return " ".join(pair.public.split()[:2]), private


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("absent/deeper", "is not there, nor is the folder that it would lie in"),
        ("link", "is a way by a link to .*folder; name that itself"),
        ("link/new", "is a way by a link to .*folder/new"),
        ("file", "is there already, and is not written over"),
        ("new", 'only a device or new file is named; write folder = "/..."'),
    ],
)
def test_paths_that_are_not_what_they_seem_are_refused(
    tmp_path: Path, place: Path, path: str, sentence: str
) -> None:
    (place / "folder").mkdir()
    (place / "link").symlink_to(place / "folder")
    (place / "file").write_text("of somebody")
    run = begun("refused", hosts=written(tmp_path, {"name": "here", "paths": [str(place / path)]}))
    with pytest.raises(DiskbookError, match=sentence):
        stages.provision(run)
    assert (place / "file").read_text() == "of somebody" and list((place / "folder").iterdir()) == []
    assert not (place / "new").exists() and run.manifest.get("places", []) == []


def test_a_new_file_is_measured_where_it_was_named(tmp_path: Path, place: Path) -> None:
    (place / "work").mkdir()
    row = {"name": "here", "folder": str(place / "work"), "paths": [str(place / "new.dat")]}
    run = begun("file", hosts=written(tmp_path, row))
    stages.provision(run)
    assert data_of(run) == place / "new.dat"
    stages.teardown(run)
    assert [path.name for path in place.rglob("*")] == ["work"]


def test_memory_and_too_little_room_are_refused(place: Path) -> None:
    memory = Path("/dev/shm")
    if memory.is_dir():
        with pytest.raises(DiskbookError, match=r"lies in memory .tmpfs"):
            stages.provision(begun("memory", folder=memory))
    larger = {"disk.disk.size_gib": 32767, "all_workloads.working_set_gib": 32000}
    huge = stages.begin("huge", OWN, "inventory", "quick", larger, inventory={"folder": str(place)})
    with pytest.raises(DiskbookError, match=r"32000\.0 GiB are measured with .* left over; make room"):
        stages.provision(huge)
    assert list(place.iterdir()) == []


def test_a_disk_that_is_full_is_told_in_place_of_what_the_tool_says(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun("full", folder=place)
    stages.provision(run)
    error = DiskbookError("prefill of disk: fio wrote no output")
    stage.check_room(run, error)
    monkeypatch.setattr(stage, "FULL_BYTES", 2**60)
    with pytest.raises(DiskbookError, match=r"host here: the disk of .* is full; make room there") as told:
        stage.check_room(run, error)
    assert told.value.__cause__ is error
    stages.teardown(run)


def test_hosts_go_with_the_inventory_alone(place: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hosts and a folder go with --cloud inventory, not with emulator"):
        stages.begin("x", "local-disk", "emulator", inventory={"folder": str(place)})
    with pytest.raises(UsageError, match="--folder goes without --hosts"):
        begun("x", folder=place, hosts=tmp_path / "hosts.toml")
    assert not (tmp_path / "runs").exists()
