"""The run folder: nothing is lost, nothing foreign is touched."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from diskbook.facts import client
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.results import attached, run as runs
from support.manifests import MINIMAL


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> runs.Run:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # some tests remove what lies there
    made = runs.create("one")
    made.write_manifest({**MINIMAL, "run": "one"})
    return made


def test_an_existing_folder_is_never_taken(folder: runs.Run) -> None:
    with pytest.raises(UsageError, match="exists already"):
        runs.create("one")


@pytest.mark.parametrize(
    "cut", ['{"event": "cut sho', '{"event": "trial", "files": {"json": {"path": "x"}}', "{"]
)
def test_the_ledger_survives_a_line_cut_by_a_crash(folder: runs.Run, cut: str) -> None:
    folder.append("first")
    with (folder.folder / "ledger.jsonl").open("a") as file:
        file.write(cut)
    assert [event["event"] for event in folder.ledger()] == ["first"]
    folder.append("second")
    assert [event["event"] for event in folder.ledger()] == ["first", "second"]


def test_a_line_that_lacks_its_end_alone_counts(folder: runs.Run) -> None:
    (folder.folder / "ledger.jsonl").write_text('{"event": "first"}')
    folder.append("second")
    assert [event["event"] for event in folder.ledger()] == ["first", "second"]


def test_a_damaged_ledger_line_is_named(folder: runs.Run) -> None:
    (folder.folder / "ledger.jsonl").write_text('{"event": "a"}\n{"event" "b"}\n{"event": "c"}\n')
    with pytest.raises(DiskbookError, match="line 2 is damaged"):
        folder.ledger()


def test_events_written_side_by_side_do_not_mix(folder: runs.Run) -> None:
    before, long = len(folder.ledger()), "x" * 40_000

    def write(machine: int) -> None:
        for number in range(25):
            folder.append("step", machine=machine, number=number, changed=long)

    with ThreadPoolExecutor(4) as machines:
        list(machines.map(write, range(4)))
    events = folder.ledger()[before:]
    assert sorted((event["machine"], event["number"]) for event in events) == [
        (machine, number) for machine in range(4) for number in range(25)
    ]


def test_raw_files_are_written_once(folder: runs.Run) -> None:
    first = folder.write_raw("t.json", b"abc")
    assert folder.write_raw("t.json", b"abc") == first
    assert gzip.decompress((folder.folder / first["path"]).read_bytes()) == b"abc"
    with pytest.raises(DiskbookError, match="never overwritten"):
        folder.write_raw("t.json", b"abd")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "it has no manifest.json"),
        ("{", "is damaged"),
        ('{"a": 1}', "not a manifest of this workbook"),
        ("[]", "not a manifest of this workbook"),
        ('{"schema": 99, "run": "x"}', "has schema 99"),
    ],
)
def test_a_foreign_or_corrupt_folder_is_named(folder: runs.Run, content: str | None, said: str) -> None:
    manifest = folder.folder / "manifest.json"
    manifest.unlink()
    if content is not None:
        manifest.write_text(content)
    with pytest.raises(DiskbookError, match=said):
        runs.open_run("one")


def test_an_unknown_run_gets_the_nearest(folder: runs.Run) -> None:
    with pytest.raises(UsageError, match="did you mean 'one'"):
        runs.open_run("onne")


def test_only_one_process_works_on_a_run(folder: runs.Run) -> None:
    with folder.locked(), pytest.raises(DiskbookError, match="another process"):
        with runs.Run(folder.folder).locked():
            pass


def test_a_failed_write_leaves_the_old_manifest(folder: runs.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(DiskbookError, match=r"cannot write to .*/one: the disk is full; .* make room"):
        folder.update_manifest(extra=1)
    assert json.loads((folder.folder / "manifest.json").read_text())["run"] == "one"
    assert not list(folder.folder.glob(".manifest*"))


# --- whose word it is


def test_what_this_client_writes_is_signed_and_stays_so(folder: runs.Run) -> None:
    assert folder.is_signed
    folder.update_manifest(kept=True)
    folder.check_signed()


@pytest.mark.parametrize(
    "changes", [{"kept": False}, {"signature": None}, {"signature": "0" * 64}, {"run": "another"}]
)
def test_a_change_by_another_hand_is_noticed_and_is_not_signed_later(
    folder: runs.Run, changes: dict[str, object]
) -> None:
    path = folder.folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    for _ in range(2):
        assert not folder.is_signed
        with pytest.raises(DiskbookError, match="was not begun by you on this computer, or its"):
            folder.check_signed()
        folder.update_manifest(more=1)


def test_a_copy_by_another_name_is_not_the_run(folder: runs.Run) -> None:
    copy = runs.Run(folder.folder.with_name("two"))
    shutil.copytree(folder.folder, copy.folder)
    assert not copy.is_signed
    elsewhere = folder.folder.parent / "elsewhere" / "one"
    shutil.move(folder.folder, elsewhere)
    assert runs.Run(elsewhere).is_signed  # a folder may be moved


def test_an_older_manifest_that_is_put_back_is_refused(folder: runs.Run) -> None:
    path = folder.folder / "manifest.json"
    older = path.read_bytes()
    folder.update_manifest(kept=True)
    newest = path.read_bytes()
    path.write_bytes(older)
    for _ in range(2):
        assert not folder.is_signed
        with pytest.raises(DiskbookError, match="is older than the newest that was written for this run"):
            folder.check_signed()
        folder.update_manifest(more=1)  # which does not sign it
        path.write_bytes(older)
    path.write_bytes(newest)
    folder.check_signed()


def test_a_new_run_in_a_folder_that_was_removed_goes_on_counting(folder: runs.Run) -> None:
    folder.update_manifest(kept=True)
    older = (folder.folder / "manifest.json").read_bytes()
    shutil.rmtree(folder.folder)
    made = runs.create("one")
    made.write_manifest({**MINIMAL, "run": "one"})
    made.check_signed()
    (folder.folder / "manifest.json").write_bytes(older)
    assert not made.is_signed


@pytest.mark.parametrize("note", [None, b"", b"nonsense"])
def test_a_note_that_is_lost_stops_no_run(folder: runs.Run, note: bytes | None) -> None:
    folder.update_manifest(kept=True)
    shutil.rmtree(client.home() / "revisions")
    if note is not None:
        (client.home() / "revisions").mkdir()
        client._note_of(folder.folder).write_bytes(note)
    folder.check_signed()
    folder.update_manifest(kept=False)
    assert folder.is_signed and client.newest_revision(folder.folder) == 3


def test_many_writers_leave_the_newest_manifest(folder: runs.Run) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: folder.update_manifest(extra=number), range(40)))
        assert all(pool.map(lambda _: folder.is_signed, range(8)))
    assert folder.manifest["revision"] == client.newest_revision(folder.folder) == 41


def test_a_manifest_written_before_there_were_signatures_is_read(folder: runs.Run) -> None:
    path = folder.folder / "manifest.json"
    content = json.loads(path.read_text())
    del content["signature"]
    path.write_text(json.dumps(content))
    assert runs.open_run("one").manifest["run"] == "one"


# --- links


@pytest.mark.parametrize("place", ["ledger.jsonl", ".lock", "raw/x.gz", "figures", "keys", "a/b/c"])
@pytest.mark.parametrize("target", ["victim", "nowhere"])
def test_a_folder_with_a_link_is_not_opened(folder: runs.Run, place: str, target: str) -> None:
    path = folder.folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    (folder.folder.parent / "victim").mkdir()
    path.symlink_to(folder.folder.parent / target)
    with pytest.raises(DiskbookError, match=f"has a link in it .'{place}'., so it is not opened"):
        runs.open_run("one")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_ledger_or_lock_that_is_a_file_elsewhere_is_not_written(
    folder: runs.Run, link: Callable[[Path, Path], None]
) -> None:
    victim = folder.folder.parent / "victim"
    victim.write_text("export PATH\n")
    for name in ("ledger.jsonl", ".lock"):
        link(victim, folder.folder / name)
    with pytest.raises(DiskbookError, match="so it was not written"):
        folder.append("event")
    with pytest.raises(DiskbookError, match="so it was not written"), folder.locked():
        pass
    assert victim.read_text() == "export PATH\n"


# --- what the ledger names


@pytest.mark.parametrize(
    "place", ["../victim.gz", "raw/../../victim.gz", "manifest.json", "/etc/passwd", "raw"]
)
def test_a_raw_file_lies_in_the_folder_of_raw_files(folder: runs.Run, place: str) -> None:
    (folder.folder / "raw").mkdir()
    with pytest.raises(DiskbookError, match=r"the ledger of one names .* as a raw file; restore the ledger"):
        attached.read_bytes(folder.folder, {"path": place, "sha256": "0" * 64})


def test_a_raw_file_is_no_pipe_that_is_waited_for(folder: runs.Run) -> None:
    (folder.folder / "raw").mkdir()
    os.mkfifo(folder.folder / "raw" / "x.gz")
    with pytest.raises(DiskbookError, match="as a raw file"):
        attached.read_bytes(folder.folder, {"path": "raw/x.gz", "sha256": "0" * 64})


def test_a_process_keeps_the_secret_that_it_began_with(
    folder: runs.Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = [{"name": "g-1", "deleted_utc": None}, {"name": "g-2", "deleted_utc": "2026-01-01T00:00:00+00:00"}]
    folder.update_manifest(resource_groups=rows)
    secret = client.home() / "secret"
    kept = secret.read_bytes()
    try:
        secret.unlink()
        folder.update_manifest(extra=1)
        folder.check_signed()
        monkeypatch.setattr(client, "_read_secrets", {})  # as a process that begins now
        with pytest.raises(
            DiskbookError, match=r"secret of this client is missing: restore \S+secret; "
        ) as told:
            folder.check_signed()
        assert "'diskbook sweep --delete --group g-1' deletes it" in str(told.value)
        assert "g-2" not in str(told.value)
    finally:
        secret.write_bytes(kept)
        secret.chmod(0o600)


def test_a_stage_is_done_by_its_own_end_alone(folder: runs.Run) -> None:
    folder.append("stage", stage="provision")
    folder.append("look", stage="benchmark")
    assert folder.done("provision") and not folder.done("benchmark")
