"""The place where one run is played: folders, an emulator and the command line, all of its own."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from checks.store_proxy import Proxy
from diskbook.batch.stores.address import Address
from diskbook.results import run as runs
from diskbook_emulator import lifecycle
from diskbook_emulator.machine import Machine
from diskbook_emulator.types import Json

SCENARIO = Path(__file__).with_name("tiny.toml")
VOLUMES = Path(__file__).with_name("volumes.toml")
OWN = Path(__file__).with_name("own.toml")
OWN_PLACE = "place"  # where hosts of one's own have their disk, in the scene's folder "own"
NAME = "it"
EMULATOR = "named"
PLAYED: dict[str, Any] = {"profile": "quiet", "time_scale": 0.005}
RECONNECT_S = 8.0  # instead of a minute and a half: nobody here drives through a tunnel
LEASE_S = 10.0  # of a run in a store, instead of a minute
WAIT_S = 600.0


class NotStruck(Exception):
    """A fault could not be put in place: the run ended before, or never came so far."""


@dataclass
class Store:
    """Where the run is kept while it is worked on, and what serves that, if anything."""

    address: Address
    proxy: Proxy | None = None
    pid: int | None = None


@dataclass
class Scene:
    """One run in a folder of its own, which is the temporary folder of all that belongs to it.

    `named` says that the emulator was started by hand, so that machines outlive the client. `host` is a host
    of one's own, `store` where the run is kept, `places` the folders that a fault has made, `after` what is
    to be done at the end.
    """

    folder: Path
    named: bool
    scenario: Path = SCENARIO
    process: subprocess.Popen[str] | None = None
    notes: list[str] = field(default_factory=list)
    host: Machine | None = None
    store: Store | None = None
    places: set[str] = field(default_factory=set)
    after: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def own(self) -> bool:
        """Whether the run is on hosts of one's own, and there is no emulator."""
        return self.scenario == OWN

    @property
    def run(self) -> runs.Run:
        return runs.Run(runs.folder_of(NAME))

    @property
    def emulator(self) -> lifecycle.Connection:
        """The emulator that the run uses, while it runs."""
        return lifecycle.connect(EMULATOR if self.named else self.run.manifest["emulator"]["name"])

    def begin(self, *options: str) -> None:
        """Start the run by the command line."""
        if self.own:
            hosts = ["--cloud", "inventory", "--hosts", str(self.folder / "own" / "hosts.toml")]
            self._start("run", str(self.scenario), "--name", NAME, *hosts)
            return
        emulator = ["--emulator", EMULATOR]
        if not self.named:
            emulator = ["--time-scale", str(PLAYED["time_scale"]), "--emulator-profile", PLAYED["profile"]]
        kept = ["--store", str(self.store.address)] if self.store else []
        self._start("run", str(self.scenario), "--name", NAME, *emulator, *kept, *options)

    def resume(self, *options: str) -> None:
        """Resume the run by the command line, with its scenario's file if options change that."""
        named = [str(self.scenario)] if options else []
        again = str(self.store.address / NAME) if self.store else NAME
        self._start("run", *named, "--resume", again, *options)

    def ask(self, *words: str) -> tuple[int, str]:
        """Do something else by the command line; return how that ended, as `end` does."""
        self._start(*words)
        return self.end()

    def diskbook(self, *words: str) -> str:
        """Do something else by the command line that must go well, and return what it printed."""
        status, sentence = self.ask(*words)
        if status:
            raise NotStruck(f"'diskbook {' '.join(words)}' ended with {status}: {sentence}")
        return sentence

    def end(self) -> tuple[int, str]:
        """Wait for the command; return its exit status and the last thing it said on standard error."""
        assert self.process is not None
        self.process.wait(WAIT_S)
        lines = (self.folder / "err").read_text(errors="replace").strip().splitlines()
        if "Traceback" in "".join(lines):
            return self.process.returncode, f"a traceback: {lines[-1]}"
        return self.process.returncode, lines[-1].removeprefix("diskbook: ") if lines else ""

    def kill(self) -> None:
        """End the command and all it started, where they still run."""
        for process in reversed(self.family()):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _start(self, *words: str) -> None:
        code = "from diskbook.cli import main; main()"
        with (self.folder / "out").open("w") as out, (self.folder / "err").open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *words],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )

    # what a fault waits for

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until something is so, while the run goes on; return what the condition gave."""
        deadline = time.monotonic() + WAIT_S
        while not (value := _quietly(condition)):
            if self.process is not None and self.process.poll() is not None:
                raise NotStruck(f"the run ended before {what}: {self.end()[1]}")
            if time.monotonic() > deadline:
                raise NotStruck(f"{what}: it never came to that")
            time.sleep(0.05)
        return value

    def events(self, kind: str, **values: Any) -> list[Json]:
        """Lines of the run's ledger of one kind, those with the values wanted."""
        lines = [event for event in self.run.ledger() if event["event"] == kind]
        return [line for line in lines if all(line.get(key) == value for key, value in values.items())]

    def said(self, text: str) -> bool:
        """Whether the command has printed this so far."""
        return text in (self.folder / "out").read_text(errors="replace")

    def jobs(self, pattern: str) -> list[Path]:
        """Folders, on the machines, of jobs that began and have not ended."""
        place, jobs = self.folder / "own" / OWN_PLACE, f"diskbook-*/jobs/{pattern}"
        folders = place.glob(jobs) if self.own else self.emulator.folder.glob(f"vms/*/home/jobs/{pattern}")
        return [path for path in folders if (path / "pid").exists() and not (path / "status").exists()]

    # processes

    def family(self, word: str = "") -> list[psutil.Process]:
        """Processes of the command, it first, that have a word in their command line."""
        assert self.process is not None
        try:
            root = psutil.Process(self.process.pid)
            return [member for member in (root, *root.children(recursive=True)) if word in line_of(member)]
        except psutil.Error:
            return []


def line_of(process: psutil.Process) -> str:
    """Command line of a process; empty when it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _quietly(condition: Callable[[], Any]) -> Any:
    """Ask; what is not there yet (a folder, an emulator) counts as no."""
    try:
        return condition()
    except Exception:
        return None


@contextlib.contextmanager
def scene(named: bool, faults: Sequence[Json] = (), scenario: Path = SCENARIO) -> Iterator[Scene]:
    """Set a scene, and clear it away."""
    folder = Path(tempfile.mkdtemp(prefix="diskbook-fault-", dir="/tmp"))
    (folder / "runs").mkdir()
    # A process plays one scene, so that its environment can be the scene's.
    os.environ |= {
        "TMPDIR": str(folder),
        "DISKBOOK_RUNS": str(folder / "runs"),
        "DISKBOOK_RECONNECT_S": str(RECONNECT_S),
        "DISKBOOK_LEASE_S": str(LEASE_S),
    }
    tempfile.tempdir = None
    try:
        if named:
            lifecycle.start(EMULATOR, **PLAYED, owner=True, faults=faults)
        made = Scene(folder, named, scenario)
        try:
            yield made
        finally:
            made.kill()
            made.after.close()
    finally:
        _clear(folder)


def _clear(folder: Path) -> None:
    for emulator in lifecycle.status():
        with contextlib.suppress(Exception):
            lifecycle.stop(emulator.name)
    for mount in psutil.disk_partitions(all=True):
        if mount.mountpoint.startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", mount.mountpoint], check=False)
    shutil.rmtree(folder, ignore_errors=True)
