"""A Dask cluster of programs, as users start them: a scheduler, and workers with folders of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from support.emulated import soon

_SCHEDULER = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
_WORKER = ("--host", "127.0.0.1", "--no-dashboard", "--no-nanny", "--memory-limit", "0")


@dataclass
class Programs:
    """A scheduler and its workers, without the nannies that would start them again."""

    folder: Path
    tls: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    address: str = ""

    def scheduler(self) -> subprocess.Popen[bytes]:
        """Start the scheduler."""
        file = self.folder / "scheduler.json"
        protocol = ("--protocol", "tls://") if self.tls else ()
        process = self._start(
            "scheduler", "scheduler", *_SCHEDULER, *protocol, "--scheduler-file", str(file), *self.tls
        )
        assert soon(lambda: file.exists() and file.read_text().endswith("}")), self.said("scheduler")
        self.address = file.read_text().split('"address": "')[1].split('"')[0]
        return process

    def worker(self, name: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker, whose machine has a folder of its own for runs."""
        runs = self.folder / name
        runs.mkdir(exist_ok=True)
        place = ("--local-directory", str(self.folder / "dask"), "--name", name)
        words = (*_WORKER, *place, *words, *self.tls)
        return self._start(
            name, "worker", self.address, *words, **{"DISKBOOK_RUNS": str(runs), **environment}
        )

    def said(self, name: str) -> str:
        """What a program has said."""
        return (self.folder / f"{name}.log").read_text()

    def _start(self, name: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words]
        env = {**os.environ, **self.environment, **environment}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.started.append(
                subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)
            )
        return self.started[-1]

    def end(self) -> None:
        """End all of it, as its user would."""
        for process in reversed(self.started):
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 20
        for process in self.started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
            process.kill()
            process.wait()


@contextlib.contextmanager
def programs(folder: Path, *tls: str, **environment: str) -> Iterator[Programs]:
    """Have a scheduler for the length of a with block."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Programs(folder, tls, environment)
    try:
        made.scheduler()
        yield made
    finally:
        made.end()
