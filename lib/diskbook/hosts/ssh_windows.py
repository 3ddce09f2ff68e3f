"""An SSH connection to a Windows machine: jobs and disks by the scripts of `powershell`, and others."""

import base64
import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diskbook.facts.errors import DiskbookError
from diskbook.hosts import jobs
from diskbook.hosts.powershell import data_disks, encoded, script
from diskbook.hosts.ssh import Connection, Host, OnUnreachable, Output

_READ, _READ_WRITE = 0x80000000, 0xC0000000
_ANSWERS_S = 60.0  # what a script may take longer than its time before its connection is taken for dead
# What cmd.exe reads itself: some characters everywhere, others but for words in quotation marks, which is how
# `list2cmdline` writes those with a space.
_READ_BY_CMD = re.compile(r'[%"\x00-\x1f\x7f]|^[^ ]*[&|<>()^!][^ ]*$')


def command_line(command: Sequence[str]) -> str:
    """Write a command as a line of a batch file; DiskbookError where cmd.exe would read a part itself."""
    strange = next((word for word in command if _READ_BY_CMD.search(word)), None)
    if strange is not None:
        raise DiskbookError(f"{command[0]} is not run: cmd.exe would read a part of {strange!r} itself")
    return subprocess.list2cmdline(command)


class NoAnswer(DiskbookError):
    """A script did not end in its time; what it is has to be put before this sentence."""


class WindowsConnection(Connection):
    """An SSH connection to a Windows machine; see `ssh.Connection`."""

    def __init__(self, host: Host, on_unreachable: OnUnreachable | None = None) -> None:
        super().__init__(host, on_unreachable)
        self._put: set[str] = set()

    def run_script(
        self, command: str, request: bytes, scripts: Mapping[str, str], *, limit_s: float
    ) -> Output:
        """Run a command line of scripts, whose texts are put to their paths before, once a connection.

        It may be repeated safely, and is where the connection breaks. `request` travels on standard input
        alone. Raises NoAnswer when it does not end within `limit_s`.
        """
        for path, text in scripts.items():
            if path not in self._put:
                self._check("put", stdin=base64.b64encode(text.encode()), path=path)
                self._put.add(path)
        return self._persist(lambda: self._run_script_once(command, request, limit_s + _ANSWERS_S))

    def _run_script_once(self, command: str, request: bytes, limit_s: float) -> Output:
        try:
            return self._run_once(command, request, limit_s)
        except TimeoutError:
            if not self._answered:
                raise
            raise NoAnswer(f"gave no answer in {limit_s:.0f} s") from None

    def start_job(self, name: str, command: list[str], *, root: bool = False) -> None:
        """Start a detached job in a folder of its own; the connection has the administrator's rights."""
        self._check("start", name=jobs.checked(name), command=command_line(command))

    def finish_job(self, name: str, files: Iterable[str], *, limit_s: float) -> dict[str, bytes]:
        """Wait for a job and fetch its files; raises JobLost as `ssh.Connection.finish_job` does."""
        output = self._powershell(
            "finish",
            timeout_s=limit_s + 60,
            name=name,
            files=[*jobs.STREAMS, *files],
            patience_ms=round(limit_s * 1000),
        )
        why_lost = jobs.lost(output.status, limit_s)
        if why_lost:
            raise jobs.JobLost(f"machine {self.host.name}: job {name} {why_lost}")
        if output.status != 0:
            raise self._failed("finish", output)
        rows = [line.split(" ", 1) for line in output.stdout.decode().splitlines() if line.strip()]
        return {row[0]: base64.b64decode(row[1]) if len(row) > 1 else b"" for row in rows}

    def job_names(self) -> list[str]:
        """Names of the jobs that were started on the machine and not forgotten."""
        return self._check("jobs").decode().split()

    def job_times(self, name: str) -> tuple[str, str]:
        """When a finished job began and ended, by the machine's clock, as ISO 8601 text in UTC."""
        began, ended = self._check("times", name=name).decode().split()
        return began, ended

    def end_jobs(self) -> None:
        """End what an earlier session left running on the machine, and forget all its jobs."""
        self._check("end")

    def disks(self) -> list[dict[str, Any]]:
        """Azure's data disks as the machine sees them: `lun`, `number` of the drive, `size_bytes`, `style`.

        Emulated machines alone add `prefill_target`.
        """
        text = self._check("disks").decode().strip()
        rows = json.loads(text) if text else []
        return data_disks([rows] if isinstance(rows, dict) else rows)

    def disk_facts(self, number: int) -> dict[str, Any]:
        """Say what is on a physical drive: `style`, `partitions`, `own`, `head`, `tail`, `mark` (base64).

        `head` and `tail` are digests of the first and the last MiB; `mark` is the block that the last begins
        with. Emulated machines add `unique_id`.
        """
        facts: dict[str, Any] = json.loads(self._check("facts", number=number, access=_READ))
        return facts

    def guest(self, number: int | None) -> dict[str, Any]:
        """Say what machine this is, and of a physical drive how it caches writes; see `guest.of_windows`."""
        facts: dict[str, Any] = json.loads(self._check("guest", number=number))
        return facts

    def write_mark(self, number: int, at: int, content: bytes) -> None:
        """Write a block at a place of a physical drive; its trailing zeros need not travel."""
        mark = base64.b64encode(content.rstrip(b"\0")).decode()
        self._check("mark", number=number, access=_READ_WRITE, at=at, mark=mark, size=len(content))

    def _check(self, which: str, /, *, stdin: bytes = b"", **parameters: Any) -> bytes:
        output = self._powershell(which, stdin=stdin, **parameters)
        if output.status != 0:
            raise self._failed(which, output)
        return output.stdout

    def _failed(self, which: str, output: Output) -> DiskbookError:
        message = (output.stderr.decode(errors="replace").strip() or "it printed nothing").splitlines()[0]
        return DiskbookError(
            f"machine {self.host.name}: script '{which}' ended with {output.status}: {message}"
        )

    def _powershell(
        self, which: str, /, *, timeout_s: float = 120.0, stdin: bytes = b"", **parameters: Any
    ) -> Output:
        return self.run(encoded(script(which, **parameters)), stdin=stdin, timeout_s=timeout_s)
