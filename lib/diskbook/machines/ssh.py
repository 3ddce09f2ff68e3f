"""Machines over SSH: commands, and detached jobs that survive a lost connection.

The host's key is known before the first connection and nothing else is accepted.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import shlex
import socket
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

import fabric
import paramiko

from diskbook.base.errors import DiskbookError

T = TypeVar("T")

CONNECT_S = 10.0
# A connection may be away for a minute; a job on the machine goes on meanwhile.
RECONNECT_S = float(os.environ.get("DISKBOOK_RECONNECT_S", "90"))
LOOK_S = 3.0  # a machine that does not answer for so long is looked after, again and again
LOOK_EVERY_S = 10.0
CUTS = 20  # so often may one command be cut off after a while; a machine that only hangs is given up some day
_LOST = (paramiko.SSHException, EOFError, OSError)

# In a job's folder: whether its shell, which leads the job, still runs. Its number may be another's by now.
_RUNS = '[ "/proc/$(cat pid)/cwd" -ef . ]'
# Sleep until the job should be done; after a lost connection some or all of that has gone by.
_PAUSE = "a=$(($(date +%s) - $(stat -c %Y pid))); [ $a -gt 1 ] || a=0; " + (
    "[ -e status ] || sleep $(echo \"{:.2f} $a\" | awk '{{ print ($1 > $2) ? $1 - $2 : 0 }}')"
)
_MTIME = "date -u -r $f +%FT%T.%6N+00:00"
# A worker of fio leads a session of its own: the job is its group and whatever descends from it.
_END = (
    "{ t() { for c in $(cat /proc/$1/task/*/children); do echo $c; t $c; done; }; "
    '$(cat as_root 2>/dev/null) kill -s KILL -- "-$(cat pid)" $(t "$(cat pid)"); }'
)


@dataclass(frozen=True)
class Host:
    """How to reach a machine. `host_key` is its public key line ("ssh-ed25519 AAAA...")."""

    name: str
    address: str
    port: int
    user: str
    host_key: str
    private_key: Path


@dataclass(frozen=True)
class Output:
    """What a command left: exit status and bytes of both streams."""

    status: int
    stdout: bytes
    stderr: bytes


class JobLost(DiskbookError):
    """The machine restarted, or somebody ended the job, while it ran."""


class Care(Protocol):
    """Looks after a machine that does not answer."""

    def __call__(self, host: Host, last: bool) -> Host | None:
        """Do what can be done; return where the machine listens, or None when nothing was done.

        `last` says that the connection is about to be given up. Raises DiskbookError when it is hopeless.
        """


class Connection:
    """An SSH connection to one machine, made anew when it breaks.

    Parameters
    ----------
    host
        The machine.
    care
        Asked when it does not answer: it may have another address by now, or have been stopped.
    """

    def __init__(self, host: Host, care: Care | None = None) -> None:
        self.host = host
        self._care = care
        self._fabric: fabric.Connection | None = None
        self._answered = False

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; jobs on the machine go on."""
        if self._fabric is not None:
            self._fabric.close()
            self._fabric = None

    def run(self, command: str, *, stdin: bytes = b"", timeout_s: float = 60.0) -> Output:
        """Run a command that may be repeated safely, reconnecting where the connection breaks."""
        return self._persist(lambda: self._run_once(command, stdin, timeout_s))

    def check(self, command: str, **kwargs: Any) -> bytes:
        """Run a command that must succeed, and return what it printed.

        Raises
        ------
        DiskbookError
            With the command's own message when it fails.
        """
        output = self.run(command, **kwargs)
        if output.status != 0:
            said = output.stderr.decode(errors="replace").strip() or "it printed nothing"
            raise DiskbookError(
                f"machine {self.host.name}: '{command[:40]}' ended with {output.status}: {said}"
            )
        return output.stdout

    def follow(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[str]:
        """Run a command and yield its lines as it prints them; it is run once, and never repeated.

        Ends with the command, with the connection, or when nothing has come for so long.
        """
        self.check("true")  # reconnects where that is needed
        with contextlib.suppress(*_LOST), self._transport().open_session(timeout=30) as channel:
            channel.settimeout(silence_s)
            channel.exec_command(command)
            channel.sendall(stdin)
            channel.shutdown_write()
            rest = b""
            while part := channel.recv(65536):
                *lines, rest = (rest + part).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)

    def start_job(self, name: str, command: list[str], *, root: bool = False) -> None:
        """Start a detached job in a folder of its own. Doing it twice starts it once.

        Standard output goes to `stdout`, standard error to `stderr`, the exit status to `status`.
        """
        line = shlex.join(["sudo", "-n", *command] if root else command)
        mark = "echo sudo -n >as_root; " if root else ""
        # The shell leads a session of its own, so that its number names the whole job.
        script = f"{mark}echo $$ >pid.part; mv pid.part pid; {line} >stdout 2>stderr; echo $? >s; mv s status"
        start = f"cd jobs/{name} && exec setsid nohup sh -c {shlex.quote(script)}"
        self.check(
            # Folders of finished jobs go when the next one starts: one command less between two trials.
            f'for s in jobs/*/status; do [ "$s" = jobs/{name}/status ] || rm -rf "${{s%/status}}"; done; '
            f"mkdir -p jobs; mkdir jobs/{name} 2>/dev/null && ({start}) </dev/null >/dev/null 2>&1 & "
            f"n=0; while [ ! -e jobs/{name}/pid ] && [ $n -lt 500 ]; do sleep 0.01; n=$((n+1)); done; true"
        )

    def finish_job(
        self, name: str, files: Iterable[str], *, expected_s: float, limit_s: float
    ) -> dict[str, bytes]:
        """Wait for a job and fetch its files.

        Parameters
        ----------
        name
            As given to `start_job`.
        files
            Names to fetch; what is missing is left out. `status`, `stdout` and `stderr` always come along.
        expected_s
            How long it should take, before which there is no need to look.
        limit_s
            After this it is taken for hung, and ended.

        Raises
        ------
        JobLost
            When it ended without leaving a status.
        """
        wanted = " ".join(shlex.quote(file) for file in ("status", "stdout", "stderr", *files))
        patience = max(1, int((limit_s - expected_s) * 10))
        wait = (
            f"cd jobs/{name} || exit 9; {_PAUSE.format(expected_s)}; n=0; while [ ! -e status ]; do "
            f"{_RUNS} || {{ sleep 0.3; [ -e status ] || exit 8; }}; "
            f"n=$((n+1)); [ $n -gt {patience} ] && {{ {_END}; exit 7; }}; sleep 0.1; done; "
            f"ls -d {wanted} 2>/dev/null | tar -cf - -T -"
        )
        output = self.run(wait, timeout_s=limit_s + 30)
        if output.status in (7, 8, 9):
            why = {7: f"took more than {limit_s:.0f} s and was ended", 8: "ended without a status"}
            raise JobLost(
                f"machine {self.host.name}: job {name} {why.get(output.status, 'is not there any more')}"
            )
        return _untar(output.stdout)

    def jobs(self) -> list[str]:
        """Names of the jobs that were started on the machine and not forgotten."""
        return self.run("ls jobs").stdout.decode().split()

    def job_times(self, name: str) -> tuple[str, str]:
        """When a finished job began and ended, by the machine's clock, as ISO 8601 text in UTC."""
        began, ended = (
            self.check(f"cd jobs/{name} && for f in pid status; do {_MTIME}; done").decode().split()
        )
        return began, ended

    def end_jobs(self) -> None:
        """End what an earlier session left running on the machine, and forget all its jobs."""
        self.check(
            f'for j in jobs/*/; do (cd "$j" 2>/dev/null && {_RUNS} && {_END}) 2>/dev/null; done; rm -rf jobs'
        )

    def _run_once(self, command: str, stdin: bytes, timeout_s: float) -> Output:
        channel = self._transport().open_session(timeout=30)
        with channel:
            channel.settimeout(timeout_s)
            channel.exec_command(command)
            self._answered = True
            if stdin:
                channel.sendall(stdin)
            channel.shutdown_write()
            stdout = channel.makefile("rb").read()
            stderr = channel.makefile_stderr("rb").read()
            status = channel.recv_exit_status()
        if status == -1:  # the connection went before the status came
            raise EOFError("connection lost")
        return Output(status, stdout, stderr)

    def _transport(self) -> paramiko.Transport:
        if self._fabric is None or not self._fabric.is_connected:
            self._fabric = _connect(self.host)
            _give_up_in_time(self._fabric.transport.sock)
        transport = self._fabric.transport
        transport.set_keepalive(5)
        return transport

    def _persist(self, action: Callable[[], T]) -> T:
        outage = _Outage()
        while True:
            outage.trying()
            self._answered = False
            try:
                return action()
            except paramiko.BadHostKeyException as error:
                if self._look_after(last=False):  # another machine may have got its address
                    continue
                raise DiskbookError(f"machine {self.host.name}: {error}; it is not the one we made") from None
            except _LOST as error:
                outage.failed(self._answered)
                self._endure(outage, error)

    def _endure(self, outage: _Outage, error: BaseException) -> None:
        """Wait a little before the next attempt; look after the machine when it is due.

        Raises
        ------
        DiskbookError
            When the machine has been away for too long, or cannot come back.
        """
        self.close()
        over = outage.away_s > RECONNECT_S
        if (over or outage.look_is_due()) and self._look_after(last=over):
            outage.begin_anew()
        elif over:
            raise DiskbookError(
                f"machine {self.host.name} cannot be reached at {self.host.address}:{self.host.port} "
                f"({error}); see whether it runs, then resume"
            ) from None
        time.sleep(0.5)

    def _look_after(self, *, last: bool) -> bool:
        """Have somebody look after the machine; tell whether something was done."""
        found = self._care(self.host, last) if self._care else None
        if found is not None:
            self.close()
            self.host = found
        return found is not None


class _Outage:
    """For how long a machine has not answered, in time that this process was awake."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._cuts = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Count from now on."""
        self.away_s = 0.0
        self._counted: float | None = None
        self._look_at_s = LOOK_S

    def trying(self) -> None:
        """Note the start of an attempt."""
        self._started = time.monotonic()

    def failed(self, answered: bool = False) -> None:
        """Note the end of an attempt that failed; `answered`: the machine had taken the command."""
        now = time.monotonic()
        cut = answered and now - self._started > 2 * CONNECT_S and self._cuts < CUTS
        self._cuts += cut
        if self._counted is None or cut:
            self.begin_anew()  # a command that ran for a while had a connection: the outage begins now
        else:
            # The lid of the laptop may have been closed meanwhile; nobody tried then.
            self.away_s += min(now - self._counted, 2 * CONNECT_S)
        self._counted = now

    def look_is_due(self) -> bool:
        """Whether it is time to look after the machine (again)."""
        if self.away_s < self._look_at_s:
            return False
        self._look_at_s = self.away_s + LOOK_EVERY_S
        return True


def _give_up_in_time(sock: socket.socket) -> None:
    """Have TCP notice a machine that was switched off: without an answer to our keep-alives it is lost."""
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(RECONNECT_S * 1000))


def _connect(host: Host) -> fabric.Connection:
    # An empty SSH configuration: the user's own files must not change what is measured, or whom is trusted.
    config = fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True)
    connection = fabric.Connection(
        host.address,
        user=host.user,
        port=host.port,
        config=config,
        connect_timeout=int(CONNECT_S),
        connect_kwargs={"key_filename": str(host.private_key), "allow_agent": False, "look_for_keys": False},
    )
    kind, blob = host.host_key.split()[:2]
    entry = host.address if host.port == 22 else f"[{host.address}]:{host.port}"
    key = paramiko.PKey.from_type_string(kind, paramiko.util.b(_b64(blob)))
    connection.client.get_host_keys().add(entry, kind, key)
    connection.client.set_missing_host_key_policy(paramiko.RejectPolicy())
    connection.open()
    return connection


def _b64(text: str) -> bytes:
    return base64.b64decode(text)


def _untar(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {member.name: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]
