"""Stores that somebody else wrote: one sentence, no wait, no memory, and no folder among the runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from diskbook.batch import stored
from diskbook.batch.stores import lease, push, record as records
from diskbook.batch.stores.address import Address
from diskbook.batch.stores.contents import MANIFEST
from diskbook.batch.stores.objects import LocalObjects, NotAsStoredError
from diskbook.batch.stores.record import LEDGER, Entry
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import sweep
from diskbook.results import run as runs
from support.emulated import soon
from support.manifests import MINIMAL
from support.stores import contents, small_run

NAME = "lab-1"
BRACKETS = b"[" * 100_000
LEDGER_LINE = b'{"event": "stage", "stage": "benchmark", "time_utc": "2026-01-01T00:00:00+00:00"}\n'
FILES = {
    MANIFEST: json.dumps({**MINIMAL, "run": NAME}).encode(),
    LEDGER: LEDGER_LINE,
    "figures/x": b"x",
    "raw/" + "n" * 200: b"y",
    "empty.txt": b"",
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Address:
    monkeypatch.setattr("diskbook.facts.paths.CACHE", tmp_path / "cache")
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    (tmp_path / "runs").mkdir()
    return Address("file", str(tmp_path / "store"))


def plant(store: Address, files: dict[str, bytes]) -> Path:
    """Store a run that has these files; return where their contents are."""
    objects = LocalObjects(store / NAME)
    hold = lease.claim(objects)
    entries = {name: Entry.of(content) for name, content in files.items()}
    for name, content in files.items():
        path = Path(objects.address.path, records.place_of(name, entries[name]))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError:
            continue  # names that no file system takes
    hold.append("complete", files=entries)
    return Path(objects.address.path)


def refused(store: Address, words: str) -> None:
    """Both ways of bringing a run say why not, and leave nothing."""
    for bring in (lambda: stored.fetch(str(store / NAME)), lambda: runs.open_run(str(store / NAME))):
        with pytest.raises(DiskbookError, match=words) as told:
            bring()
        assert "\n" not in str(told.value)
    assert list(runs.runs_root().iterdir()) == []


def test_a_store_with_plain_files_is_fetched(store: Address) -> None:
    plant(store, FILES)
    run, changed = stored.fetch(str(store / NAME))
    assert changed and contents(run.folder) == FILES


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"figures": b"z"}, "names 'figures' as a file and as a folder"),
        ({f"{LEDGER}/x": b"z"}, "names 'ledger.jsonl' as a file and as a folder"),
        ({"a/" * 30 + "b": b"z"}, "names a file that no run has"),
        ({"n" * 300: b"z"}, "names a file that no run has"),
        ({"n" * 100_000: b"z"}, "names a file that no run has"),
        ({MANIFEST: BRACKETS}, f"nothing of file://.*{NAME} was fetched: .*{NAME}/manifest.json is damaged"),
        ({MANIFEST: b"{}"}, "is not a manifest of this workbook"),
        ({MANIFEST: FILES[MANIFEST].replace(b"lab-1", b"lab-2")}, "holds the run 'lab-2'"),
        ({LEDGER: BRACKETS + b"\n" + LEDGER_LINE}, "ledger.jsonl, line 1 is damaged"),
        ({LEDGER: b"\xff\n"}, "ledger.jsonl is damaged"),
    ],
)
def test_a_run_that_is_not_valid_stays_outside(store: Address, change: dict[str, bytes], words: str) -> None:
    plant(store, {**FILES, **change})
    refused(store, words)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(6 * 2**30)


def becomes(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


CHANGES = {
    "larger": (grow, "bytes, which is too large"),
    "pipe": (becomes(os.mkfifo), "is not a plain file"),
    "device": (becomes(lambda path: path.symlink_to("/dev/zero")), "is not a plain file"),
    "folder": (becomes(Path.mkdir), "is not a plain file|Is a directory"),
    "brackets": (lambda path: path.write_bytes(BRACKETS), "is damaged|bytes, which is too large"),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("place", ["files/*/x", "files/*/figures/x", "log/00000002.json"])
def test_an_object_is_read_as_far_as_its_entry_says(store: Address, place: str, kind: str) -> None:
    (path,) = plant(store, {**FILES, "x": b"x"}).glob(place)
    change, words = CHANGES[kind]
    change(path)
    refused(store, words)


def test_a_sign_of_life_with_brackets_is_no_traceback(store: Address) -> None:
    objects = LocalObjects(store / NAME)
    hold = lease.claim(objects)
    objects.replace(f"lease/{hold.token:08}.json", BRACKETS[:9000])
    assert lease._look(hold.log)[1] == lease._LONGEST_S
    objects.replace(f"lease/{hold.token:08}.json", BRACKETS)
    with pytest.raises(NotAsStoredError):
        lease._look(hold.log)


@pytest.mark.parametrize("length", ["NaN", "Infinity", "-Infinity", "-1", "0", '"nan"', "1e999", "1" * 400])
def test_a_lease_without_a_length_gives_a_live_run_to_nobody(store: Address, length: str) -> None:
    objects = LocalObjects(store / NAME)
    hold = lease.claim(objects)
    objects.replace(f"lease/{hold.token:08}.json", f'{{"lease_s": {length}}}'.encode())
    assert lease._look(hold.log)[1] == lease._LONGEST_S
    with pytest.raises(DiskbookError, match=r"a lease of .* s: choose"):
        lease.claim(LocalObjects(store / "other"), float(length.strip('"')[:300]))


@pytest.mark.emulator
def test_folders_that_are_nested_too_deeply_are_read_or_told(store: Address) -> None:
    place = plant(store, FILES) / records.FOLDER
    subprocess.run(["mkdir", "-p", f"{place}/{'d/' * 100}"], check=True)
    lease.read(LocalObjects(store / NAME))
    subprocess.run(["mkdir", "-p", f"{place}/{'d/' * 1500}"], check=True)
    try:
        lease.read(LocalObjects(store / NAME))  # as Python does from 3.12 on
    except DiskbookError as error:
        assert "has folders nested too deeply" in str(error)
    finally:  # as deep as that, no test would be cleared up after
        subprocess.run(["rm", "-r", str(place)], check=True)


def test_what_is_stored_over_a_pipe_is_told(store: Address, tmp_path: Path) -> None:
    run = small_run(tmp_path / NAME)
    entry = Entry.of((run.folder / MANIFEST).read_bytes())
    place = Path((store / NAME).path, records.place_of(MANIFEST, entry))
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    with pytest.raises(DiskbookError, match="is there with other content"):
        push.push(run.folder, store)


def test_an_update_that_is_not_valid_changes_nothing(store: Address, tmp_path: Path) -> None:
    plant(store, FILES)
    run, _ = stored.fetch(str(store / NAME))
    objects = LocalObjects(store / NAME)
    hold = lease.claim(objects)
    worse = {**FILES, MANIFEST: b"{}", "new.txt": b"new"}
    for name, content in worse.items():
        objects.create(records.place_of(name, Entry.of(content)), content)
    hold.append("complete", files={name: Entry.of(content) for name, content in worse.items()})
    with pytest.raises(DiskbookError, match="is not a manifest of this workbook"):
        stored.fetch(str(store / NAME))
    assert contents(run.folder) == FILES
    assert list(runs.runs_root().iterdir()) == [run.folder]


KILLED = """
import sys, time
from diskbook.batch import stored
from diskbook.batch.stores import push
push.read = lambda *_: time.sleep(600)
stored.fetch(sys.argv[1])
"""


@pytest.mark.emulator
def test_what_a_killed_fetch_leaves_is_swept(store: Address) -> None:
    plant(store, FILES)

    def parts() -> list[str]:
        return [row.text for row in sweep.on_this_computer() if ".diskbook-fetch-" in row.text]

    process = subprocess.Popen([sys.executable, "-c", KILLED, str(store / NAME)], env=dict(os.environ))
    try:
        assert soon(lambda: list(runs.runs_root().glob(".diskbook-fetch-*/.lock")))
        assert soon(lambda: list(runs.runs_root().glob(f".diskbook-fetch-*/{NAME}")))
        assert parts() == []  # it is at work
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(parts()) == 1
    for row in sweep.on_this_computer():
        if ".diskbook-fetch-" in row.text:
            row.remove()
    assert list(runs.runs_root().iterdir()) == []
