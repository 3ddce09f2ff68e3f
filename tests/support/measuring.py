"""Runs that are begun, measured and meddled with on a real emulator."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from diskbook.cloud.azure.keys import run_key
from diskbook.cloud.connect import clients_of
from diskbook.hosts.ssh import Connection, Host
from diskbook.measure.runs import stages
from diskbook.results import attached
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support import SCENARIOS
from support.emulated import leftovers, soon

QUIET = {"profile": "quiet", "time_scale": 0.0}

# Fails as a test says and is fio otherwise. It counts the calls of each workload's trials.
BROKEN_FIO = """#!/bin/sh
count() {{ n=$(cat "$HOME/count-$1" 2>/dev/null); n=$((${{n:-0}} + 1)); echo $n >"$HOME/count-$1"; }}
fail() {{ echo "fio: $1" >&2; exit 5; }}
case "$*" in
  *--name=prefill*) count prefill; case $n in {prefill} *) ;; esac ;;
  *--name=trial*--rw=randread*) count read; case $n in {read} *) ;; esac ;;
  *--name=trial*--rw=randwrite*) count write; case $n in {write} *) ;; esac ;;
esac
exec {fio} "$@"
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Runs and emulators of these tests live in one folder with a short path; nothing is left of them."""
    with (
        tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        folder = Path(name)
        patch.setenv("TMPDIR", name)
        patch.setenv("DISKBOOK_RUNS", str(folder / "runs"))
        yield folder
        for one in lifecycle.status():
            lifecycle.stop(one.name)
        assert soon(lambda: not leftovers(folder))


@pytest.fixture(scope="module")
def shared(place: Path) -> dict[str, Any]:
    """An emulator that the user named: runs use it and leave it running."""
    lifecycle.start("shared", **QUIET, owner=True)  # type: ignore[arg-type]
    return {"name": "shared"}


def begin(name: str, emulator: dict[str, Any], scenario: str = "tiny", preset: str = "quick") -> Run:
    """Begin a run of a test scenario."""
    return stages.begin(name, str(SCENARIOS / f"{scenario}.toml"), "emulator", preset, emulator=emulator)


def run_name(request: pytest.FixtureRequest) -> str:
    """Name for the run of a test, which no other test has."""
    return f"{request.node.name[5:25]}-{zlib.crc32(request.node.name.encode()):x}".replace("_", "-")


@pytest.fixture
def tiny(shared: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[Run]:
    """A provisioned run of the tiny scenario, one or two blocks, torn down in the end."""
    run = begin(run_name(request), shared, preset=getattr(request, "param", "quick"))
    stages.provision(run)
    yield run
    stages.teardown(run)
    assert not groups_of(run)


def events(run: Run, kind: str, **wanted: Any) -> list[dict[str, Any]]:
    """Lines of the ledger of one kind, those with the values wanted."""
    lines = [event for event in run.ledger() if event["event"] == kind]
    return [line for line in lines if all(line[key] == value for key, value in wanted.items())]


def groups_of(run: Run) -> list[str]:
    """Resource groups that the cloud has for a run."""
    found = clients_of(run).resource.resource_groups.list()
    return [group.name for group in found if (group.tags or {}).get("diskbook-run") == run.name]


@contextlib.contextmanager
def on_machine(run: Run, name: str = "vm1") -> Iterator[Connection]:
    """Sign in to a machine of the run."""
    host = run.manifest["replicates"][-1]["machines"][name]["host"]
    with Connection(Host(**host, private_key=run_key(run.folder))) as connection:
        yield connection


def break_fio(run: Run, **cases: str) -> None:
    """Put a fio before the real one; `cases` are the arms of a shell `case` on the number of the call."""
    arms = {"prefill": "", "read": "", "write": "", **cases}
    script = BROKEN_FIO.format(fio=shutil.which("fio"), **arms)
    with on_machine(run) as connection:
        path = '"$DISKBOOK_MACHINE_FOLDER/bin/fio"'
        connection.check(f"cat >{path}; chmod +x {path}", stdin=script.encode())


def hold(run: Run, trials: str) -> None:
    """Have trials of the run wait before fio begins, until `let_go`.

    A test can then disturb them at any time. A pattern of the shell names them: "r1-b01-p001-*-a1".
    """
    arm = f'*) case $PWD in */jobs/{trials}) until [ -e "$HOME/go-on" ]; do sleep 0.1; done ;; esac ;;'
    break_fio(run, read=arm, write=arm)


def let_go(job: Path) -> None:
    """Let the trial of a job go on that is held, and all others of its machine."""
    (job.parents[1] / "go-on").touch()


@contextlib.contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Do something in a thread while the body runs; what it raises is raised in the end."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            action()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    yield
    thread.join()
    if raised:
        raise raised[0]


def cut_sessions(listener: psutil.Process) -> list[int]:
    """Kill all sessions of an sshd but not what they run; return their process ids.

    A session can have two processes. The second keeps the connection for a while when the first is killed.
    """
    cut = []
    for process in listener.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name().startswith("sshd"):  # sshd-session since OpenSSH 9.8
                process.kill()
                cut.append(process.pid)
    return cut


def output_of(run: Run, trial: dict[str, Any], kind: str = "json") -> str:
    """What the tool left, compared with its hash."""
    return attached.read_bytes(run.folder, trial["files"][kind]).decode()


def held_job(run: Run, trials: str) -> Path:
    """Wait for the job of a trial, whose name a pattern gives; return its folder on the run's machine."""
    folder = lifecycle.connect(run.manifest["emulator"]["name"]).folder
    found: list[Path] = []

    def runs() -> bool:
        """Whether one has begun that has not ended."""
        begun = [path for path in folder.glob(f"vms/*/home/jobs/{trials}") if (path / "pid").exists()]
        found[:] = [path for path in begun if not (path / "status").exists()]
        return bool(found)

    assert soon(runs)
    return found[0]
