"""Stores on a disk and on a real server: whole or not there, one owner, nothing replaced, every hash held."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from diskbook.batch import stored
from diskbook.batch.stores import fetch, lease, push, record as records, verify
from diskbook.batch.stores.address import Address
from diskbook.batch.stores.contents import MANIFEST, Folder
from diskbook.batch.stores.lease import LeaseLostError
from diskbook.batch.stores.objects import LocalObjects, NotAsStoredError, Objects, RemoteObjects, open_objects
from diskbook.batch.stores.sync import keeping
from diskbook.cli import cli
from diskbook.facts.errors import DiskbookError, Stopped, UsageError
from diskbook.results.run import Run, folder_of, open_run
from support.emulated import soon
from support.stores import add_trial, contents, small_run

pytestmark = pytest.mark.emulator

SHORT_S = 3.0
"""A lease."""
LONG_S = 1000.0
"""Added to when an owner was last seen, so that a busy machine takes nothing of its lease."""


@pytest.fixture
def run(store: Address, tmp_path: Path) -> Run:
    return small_run(tmp_path / "runs" / "lab-1")


def environment() -> dict[str, str]:
    """Return that of this process, for one that imports what tests share."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def objects_of(store: Address) -> Objects:
    return open_objects(store / "lab-1", 5)


def test_a_run_comes_back_byte_for_byte(store: Address, run: Run, tmp_path: Path) -> None:
    first = push.push(run.folder, store)
    assert fetch.fetch(store / "lab-1", tmp_path / "copy" / "lab-1")
    assert contents(tmp_path / "copy" / "lab-1") == contents(run.folder)
    assert not (tmp_path / "copy/lab-1/keys").exists()
    assert not any("PRIVATE" in str(objects_of(store).read(name)) for name in objects_of(store).names())
    assert (first.files, first.sent) == (6, 5)
    assert push.push(run.folder, store).sent == 0


def test_no_more_is_read_of_an_object_than_it_may_have(store: Address) -> None:
    objects = objects_of(store)
    assert objects.create("x", b"abc") and objects.create("empty", b"")
    assert [objects.read("x", 3), objects.read("x"), objects.read("empty", 0)] == [b"abc", b"abc", b""]
    assert objects.read("empty") == b"" and not objects.create("x", b"ab")
    for most in (0, 2):
        with pytest.raises(NotAsStoredError, match=f"x has more than {most} bytes"):
            objects.read("x", most)


def test_every_command_that_takes_a_run_takes_its_address(store: Address, run: Run) -> None:
    push.push(run.folder, store)
    copy = open_run(str(store / "lab-1"))
    assert (copy.name, copy.ledger(), copy.is_signed) == ("lab-1", run.ledger(), True)
    add_trial(run, 7)
    push.push(run.folder, store)
    assert len(open_run(str(store / "lab-1")).ledger()) == len(copy.ledger()) + 1
    with pytest.raises(UsageError, match=r"there is no run at .*/lab-2; 'diskbook verify .*' lists the runs"):
        open_run(str(store / "lab-2"))


def test_a_copy_that_is_cut_off_is_not_seen_and_goes_on(
    store: Address, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    push.push(run.folder, store)
    before = open_run(str(store / "lab-1")).ledger()
    for number in range(10, 20):
        add_trial(run, number)
    kind: Any = LocalObjects if store.scheme == "file" else RemoteObjects
    create, sent = kind.create, []

    def failing(self: Any, name: str, content: bytes) -> bool:
        if name.startswith("files/"):
            sent.append(name)
            if len(sent) > 5:
                raise DiskbookError("the way is gone")
        return bool(create(self, name, content))

    monkeypatch.setattr(kind, "create", failing)
    with pytest.raises(DiskbookError, match="the way is gone"):
        push.push(run.folder, store)
    monkeypatch.setattr(kind, "create", create)
    assert open_run(str(store / "lab-1")).ledger() == before
    assert next(iter(verify.verify(store))).faults == []
    push.push(run.folder, store)
    assert open_run(str(store / "lab-1")).ledger() == run.ledger()
    result = next(iter(verify.verify(store)))
    assert (result.unused, result.faults, result.state) == (0, [], "whole")


def test_an_unfinished_run_is_gone_on_with_and_not_read(store: Address, run: Run, tmp_path: Path) -> None:
    push.push(run.folder, store, whole=False)
    address = store / "lab-1"
    with pytest.raises(UsageError, match=r"is not whole yet \(it was cut off\)"):
        open_run(str(address))
    with pytest.raises(UsageError, match="--unfinished"):
        fetch.fetch(address, tmp_path / "copy" / "lab-1")
    other = tmp_path / "other" / "lab-1"
    assert fetch.fetch(address, other, unfinished=True)
    assert contents(other) == contents(run.folder)
    add_trial(Run(other), 8)
    push.push(other, store)
    with pytest.raises(UsageError, match="further on than this folder; 'diskbook fetch"):
        push.push(run.folder, store)
    assert fetch.fetch(address, run.folder)
    assert contents(run.folder) == contents(other)
    assert not fetch.fetch(address, run.folder)


@pytest.mark.parametrize("store", ["file"], indirect=True)
def test_a_part_that_is_brought_again_is_whole_for_whoever_reads_it(
    store: Address, run: Run, tmp_path: Path
) -> None:
    """As where a batch runs, and another process prices it: both bring manifests into one folder."""
    part, address = tmp_path / "part", store / "lab-1"
    names = (MANIFEST, records.LEDGER)
    push.push(run.folder, store)
    fetch.fetch_part(address, part, names.__contains__)
    before = [(part / name).read_bytes() for name in names]
    add_trial(run, 8)
    run.update_manifest(number=1)
    push.push(run.folder, store)
    with (part / names[0]).open("rb") as manifest, (part / names[1]).open("rb") as ledger:
        fetch.fetch_part(address, part, names.__contains__)
        assert [manifest.read(), ledger.read()] == before
    assert (Run(part).manifest, Run(part).ledger()) == (run.manifest, run.ledger())


@pytest.mark.parametrize("store", ["file"], indirect=True)  # what is there is compared here
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: next(folder.glob("raw/*")).write_bytes(b"X"), "which is another here"),
        (lambda folder: next(folder.glob("raw/*")).unlink(), "which is missing here"),
        (lambda folder: (folder / "ledger.jsonl").write_text('{"event": "x"}\n' * 9), "has another ledger"),
        (lambda folder: (folder / "raw/x").symlink_to("/etc/passwd"), "is a link"),
    ],
)
def test_what_was_stored_is_never_replaced(store: Address, run: Run, change: Any, words: str) -> None:
    push.push(run.folder, store)
    before = {name: objects_of(store).read(name) for name in objects_of(store).names("files")}
    change(run.folder)
    with pytest.raises(DiskbookError, match=words):
        push.push(run.folder, store)
    assert {name: objects_of(store).read(name) for name in objects_of(store).names("files")} == before
    assert next(iter(verify.verify(store))).faults == []


def test_of_many_who_claim_a_run_one_gets_it(store: Address) -> None:
    def claim(_: int) -> str:
        try:
            return lease.claim(objects_of(store), SHORT_S).owner
        except DiskbookError as error:
            return str(error)

    living = threading.Event()
    owner = lease.claim(objects_of(store), 6 * SHORT_S)

    def live() -> None:
        while not living.wait(SHORT_S / 15):
            owner.beat()

    thread = threading.Thread(target=live)
    thread.start()
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(claim, range(3)))
    living.set()
    thread.join()
    assert all("is being worked on by" in answer for answer in answers)
    push.release(owner)
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(claim, range(3)))
    state = lease.read(objects_of(store)).state
    # Who shows no sign of life afterwards is followed by others, each after a whole lease.
    claims = [json.loads(objects_of(store).read(name)) for name in sorted(objects_of(store).names("log"))]
    assert [item["token"] for item in claims if item["kind"] == "claim"] == list(range(1, state.token + 1))
    assert state.holder in answers


def test_the_lease_that_the_owner_named_is_waited_for(
    store: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One who takes a shorter one himself must not take a run from one who lives."""
    lease.claim(objects_of(store), 2 * SHORT_S)
    monkeypatch.setattr(lease, "LEASE_S", SHORT_S / 10)
    began = time.monotonic()
    lease.claim(objects_of(store), SHORT_S)
    assert time.monotonic() - began >= 2 * SHORT_S


def test_who_has_lost_a_run_stores_nothing_more(store: Address, run: Run) -> None:
    late = lease.claim(objects_of(store), SHORT_S)
    late._seen += LONG_S  # asleep, and without a sense of time
    push.store_new(late, Folder(run.folder))
    began = time.monotonic()
    hold = lease.claim(objects_of(store), SHORT_S)
    assert time.monotonic() - began >= SHORT_S
    assert (late.token, hold.token) == (1, 2)
    hold._seen += LONG_S
    add_trial(run, 30)
    before = sorted(objects_of(store).names("log"))
    with pytest.raises(LeaseLostError, match="was taken over by"):
        push.store_new(late, Folder(run.folder))
    with pytest.raises(LeaseLostError, match="was taken over by"):
        late.beat()
    assert sorted(objects_of(store).names("log")) == before
    push.complete(hold, Folder(run.folder))
    assert open_run(str(store / "lab-1")).ledger() == run.ledger()
    assert next(iter(verify.verify(store))).faults == []


WRITER = """
import sys
from pathlib import Path
from diskbook.results.run import Run
from support.stores import add_trial
run, number = Run(Path(sys.argv[1])), 2
for line in sys.stdin:  # a line asks for that many trials
    for number in range(number + 1, number + 1 + int(line)):
        add_trial(run, number)
        run.update_manifest(last=number)
        print(number, flush=True)
"""


def test_a_run_that_is_worked_on_is_stored_as_it_was_at_one_moment(store: Address, run: Run) -> None:
    """Each upload begins when the first of some trials is there, while the others are being added."""
    run.update_manifest(last=2)
    hold, folder, trials = lease.claim(objects_of(store)), Folder(run.folder), 20
    last: list[int] = []  # trial in each stored manifest
    command = [sys.executable, "-c", WRITER, str(run.folder)]
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin is not None and writer.stdout is not None
        firsts = range(3, 3 + 3 * trials, trials)
        for first in firsts:
            hold.beat()
            print(trials, file=writer.stdin, flush=True)
            assert writer.stdout.readline() == f"{first}\n"
            push.store_new(hold, folder)
            state = hold.log.state
            manifest = json.loads(push.read(hold.log.objects, "manifest.json", state.files["manifest.json"]))
            lines = push.ledger_of(state, hold.log.objects).splitlines()
            events = [event for event in map(json.loads, lines) if event["event"] == "trial"]
            assert int(events[-1]["trial"].removeprefix("r1-b")) - manifest["last"] in (0, 1)
            assert all(event["files"]["result"]["path"] in state.files for event in events)
            last.append(manifest["last"])
            assert [int(writer.stdout.readline()) for _ in range(1, trials)][-1] == first + trials - 1
    assert any(number < first + trials - 1 for number, first in zip(last, firsts, strict=True))
    push.complete(hold, folder)
    assert contents(open_run(str(store / "lab-1")).folder) == contents(run.folder)
    assert next(iter(verify.verify(store))).words.endswith(": every hash agrees")


WORKER = """
import sys, threading, time
from pathlib import Path
from diskbook.batch.stores import address
from diskbook.batch.stores.sync import keeping
from diskbook.results.run import Run
from support.emulated import soon
from support.stores import add_trial
run = Run(Path(sys.argv[1]))
with keeping(run.folder, address.run(sys.argv[2]), print, lambda: True, float(sys.argv[3])):
    print("owned", flush=True)
    for number in range(100, 100000):
        add_trial(run, number)
        time.sleep(0.02)
"""


@pytest.mark.parametrize("store", ["abfs"], indirect=True)
def test_another_goes_on_where_a_killed_worker_ended(store: Address, run: Run, tmp_path: Path) -> None:
    """On a disk: `tests/whole/test_batch.py`."""
    address = store / "lab-1"
    command = [sys.executable, "-c", WORKER, str(run.folder), str(address), str(2 * SHORT_S)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None and worker.stdout.readline() == "owned\n"
        assert soon(lambda: "100" in str(lease.read(objects_of(store)).state.tail))
        worker.send_signal(signal.SIGKILL)
    other = tmp_path / "other" / "lab-1"
    fetch.fetch(address, other, unfinished=True)
    names = [event["trial"] for event in Run(other).ledger() if event["event"] == "trial"]
    assert "r1-b100" in names and len(names) == len(set(names))
    assert run.folder.joinpath("ledger.jsonl").read_bytes().startswith((other / "ledger.jsonl").read_bytes())
    assert all((other / "raw" / f"{name}.json.gz").exists() for name in names)
    lost: list[Any] = []
    with keeping(other, address, lost.append, lambda: True, 2 * SHORT_S) as hold:
        add_trial(Run(other), 5)
        assert hold.token == 2
    assert open_run(str(address)).ledger() == Run(other).ledger() and not lost


def test_the_worker_whose_run_was_taken_over_is_stopped(store: Address, run: Run) -> None:
    lost: list[str] = []
    with pytest.raises(LeaseLostError, match="was taken over by"):
        with keeping(
            run.folder, store / "lab-1", lambda error: lost.append(str(error)), lambda: True, 2 * SHORT_S
        ):
            # As another does that has seen no sign of life.
            log = lease.read(objects_of(store))
            lease._append(log, log.state.token + 1, "other", "claim")
            assert soon(lambda: lost)
    assert len(lost) == 1 and "was taken over by other" in lost[0]


@pytest.mark.parametrize("store", ["file"], indirect=True)
@pytest.mark.parametrize(
    "end",
    [DiskbookError("no room (resume with 'diskbook run --resume lab-1')"), Stopped(2, "--resume lab-1'")],
)
def test_a_run_in_a_store_says_that_it_goes_on_there(store: Address, run: Run, end: BaseException) -> None:
    with pytest.raises(type(end), match=rf"--resume {store}/lab-1'"), stored.kept(run, store / "lab-1"):
        raise end


def test_a_run_that_is_refused_before_it_made_anything_leaves_nothing(store: Address, run: Run) -> None:
    run.folder.joinpath("ledger.jsonl").write_text("")
    place, refusal = store / "lab-1", DiskbookError("no host answers")
    with pytest.raises(DiskbookError, match="no host"), stored.kept(run, place):
        assert objects_of(store).names()
        raise refusal
    assert not objects_of(store).names() and not (Path(store.path) / "lab-1").exists()
    with stored.kept(run, place):  # its name is free again
        pass
    before = objects_of(store).names()
    with pytest.raises(DiskbookError, match="no host"), stored.kept(run, place):
        raise refusal
    assert before.items() <= objects_of(store).names().items()  # another process had stored it


def test_verify_finds_what_was_changed_or_lost(store: Address, run: Run) -> None:
    push.push(run.folder, store)
    objects, runner = objects_of(store), CliRunner()
    done = runner.invoke(cli, ["verify", str(store)])
    assert (done.exit_code, done.output.strip()) == (0, "lab-1: whole, 6 files, 0.0 MB: every hash agrees")
    raw = next(name for name in objects.names("files") if "/raw/" in name)
    objects.replace(raw, objects.read(raw)[:-1] + b"X")
    done = runner.invoke(cli, ["verify", str(store / "lab-1")])
    words = " ".join(done.output.split())  # broken at the terminal's width
    assert done.exit_code == 1 and f"{raw} is not what was stored: its hash is another" in words
    with pytest.raises(DiskbookError, match="its hash is another"):
        fetch.cached(store / "lab-1")
    last = sorted(objects.names("log"))[-1]
    content = objects.read(last)
    objects.replace(last, content[: len(content) // 2])
    assert "is damaged" in next(iter(verify.verify(store))).words
    objects.replace(last, content.replace(b'"claim"', b'"state"'))
    objects.replace(records.name_of(2), objects.read(records.name_of(2)) + b" ")
    assert "does not follow the record before it" in next(iter(verify.verify(store))).words


def test_the_commands_push_and_fetch(store: Address, run: Run, tmp_path: Path) -> None:
    pushed = stored.push("lab-1", str(store))
    assert pushed.words == f"{store}/lab-1: whole, 6 files, 0.0 MB; 5 sent now"
    _, changed = stored.fetch(f"{store}/lab-1")
    assert not changed
    (tmp_path / "new").mkdir()
    copy, changed = stored.fetch(f"{store}/lab-1", target=tmp_path / "new")
    assert changed and contents(copy.folder) == contents(run.folder)
    with pytest.raises(UsageError, match="is an address: name a run of this machine"):
        folder_of(f"{store}/lab-1")
