"""An SSH connection to a machine: commands, and detached jobs that survive a lost connection.

The host's key is known before the first connection and nothing else is accepted.
"""

import base64
import contextlib
import io
import socket
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import fabric
import paramiko

from diskbook.facts.errors import DiskbookError
from diskbook.hosts import jobs, private_access
from diskbook.hosts.private_access import TunnelBroken

T = TypeVar("T")

_LOST = (paramiko.SSHException, EOFError, OSError)


class UnreachableError(DiskbookError):
    """A machine does not answer, or lets nobody in; `__cause__` is the last failure."""


@dataclass(frozen=True)
class Host:
    """How to reach a machine: `host_key` is its public key line, `route` leads to a private one."""

    name: str
    address: str
    port: int
    user: str
    host_key: str
    private_key: Path
    route: private_access.Route | None = None


@dataclass(frozen=True)
class Output:
    """What a command left: exit status and bytes of both streams."""

    status: int
    stdout: bytes
    stderr: bytes


class OnUnreachable(Protocol):
    """Called about a machine that does not answer: to bring it back, or to say where it listens now."""

    def __call__(self, host: Host, last: bool) -> Host | None:
        """Do what can be done; return where the machine listens, or None when nothing was done.

        `last` says that the connection is about to be given up. Raises DiskbookError when it is hopeless.
        """


class Connection:
    """An SSH connection to one machine, made again when it breaks; `on_unreachable` may find it elsewhere."""

    stranger = "it is not the one we made"
    """What is said of a machine with another host key."""

    def __init__(self, host: Host, on_unreachable: OnUnreachable | None = None) -> None:
        self.host = host
        self._on_unreachable = on_unreachable
        self._fabric: fabric.Connection | None = None
        self._way: private_access.Way | None = None
        self._answered = False

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; jobs on the machine go on."""
        if self._fabric is not None:
            self._fabric.close()
            self._fabric = None
        if self._way is not None:
            self._way.close()
            self._way = None

    def run(self, command: str, *, stdin: bytes = b"", timeout_s: float = 60.0) -> Output:
        """Run a command that may be repeated safely, reconnecting where the connection breaks."""
        return self._persist(lambda: self._run_once(command, stdin, timeout_s))

    def check(self, command: str, **kwargs: Any) -> bytes:
        """Run a command that must succeed, and return what it printed; DiskbookError with its own message."""
        output = self.run(command, **kwargs)
        if output.status != 0:
            message = output.stderr.decode(errors="replace").strip() or "it printed nothing"
            raise DiskbookError(
                f"machine {self.host.name}: '{command[:40]}' ended with {output.status}: {message}"
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
        """Start a detached job in a folder of its own, with its output and status; twice starts it once."""
        self.check(jobs.start(name, command, root=root))

    def finish_job(self, name: str, files: Iterable[str], *, limit_s: float) -> dict[str, bytes]:
        """Wait for a job and fetch its files, as far as they are there, with `status`, `stdout` and `stderr`.

        After `limit_s` it is taken for hung, and ended. Raises JobLost when it left no status.
        """
        command = jobs.finish(name, files, limit_s=limit_s)
        output = self.run(command, timeout_s=limit_s + 30)
        why_lost = jobs.lost(output.status, limit_s)
        if why_lost:
            raise jobs.JobLost(f"machine {self.host.name}: job {name} {why_lost}")
        return untar(output.stdout)

    def job_names(self) -> list[str]:
        """Names of the jobs that were started on the machine and not forgotten."""
        return self.run(jobs.LIST).stdout.decode().split()

    def job_times(self, name: str) -> tuple[str, str]:
        """When a finished job began and ended, by the machine's clock, as ISO 8601 text in UTC."""
        began, ended = self.check(jobs.times(name)).decode().split()
        return began, ended

    def end_jobs(self) -> None:
        """End what an earlier session left running on the machine, and forget all its jobs."""
        self.check(jobs.END_ALL)

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
            self.close()
            self._way = private_access.open_way(self.host.address, self.host.port, self.host.route)
            self._fabric = connect(self.host, self._way)
            _give_up_in_time((self._way.gateway or self._fabric).transport.sock)
        transport = self._fabric.transport
        transport.set_keepalive(5)
        return transport

    def _persist(self, action: Callable[[], T]) -> T:
        outage = private_access.Reconnect()
        while True:
            outage.trying()
            self._answered = False
            try:
                return action()
            except paramiko.BadHostKeyException as error:
                if self._report_unreachable(last=False):  # another machine may have got its address
                    continue
                raise DiskbookError(
                    f"machine {self.host.name} shows another host key than its own: {self.stranger}"
                ) from error
            except _LOST as error:
                outage.failed(self._answered)
                self._wait_to_reconnect(outage, error)

    def _wait_to_reconnect(self, outage: private_access.Reconnect, error: BaseException) -> None:
        """Wait before the next attempt, look after the machine when due; DiskbookError when it stays away."""
        self.close()
        last = outage.is_hopeless
        if (last or outage.look_is_due()) and self._report_unreachable(last=last):
            outage.begin_anew()
        elif last:
            raise UnreachableError(self._away(error)) from error
        time.sleep(0.5)

    def _away(self, error: BaseException) -> str:
        """Say why the machine cannot be reached; what leads to it may be the cause."""
        name, route = self.host.name, self.host.route
        if isinstance(error, private_access.JumpAway | TunnelBroken):
            return f"{error}, so machine {name} cannot be reached; mend that, then resume"
        place = f"{self.host.address}:{self.host.port}" + f" from {route}" * isinstance(
            route, private_access.Jump
        )
        why = f"({private_access.reason(error)}); see whether it runs, then resume"
        return f"machine {name} cannot be reached at {place} {why}"

    def _report_unreachable(self, *, last: bool) -> bool:
        """Call `on_unreachable`; tell whether something was done."""
        host = self._on_unreachable(self.host, last) if self._on_unreachable else None
        if host is not None:
            self.close()
            self.host = host
        return host is not None


def _give_up_in_time(sock: socket.socket) -> None:
    """Have TCP notice a machine that was switched off: without an answer to our keep-alives it is lost."""
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(private_access.RECONNECT_S * 1000))


def connect(host: Host, way: private_access.Way | None = None) -> fabric.Connection:
    """Connect to a machine once; raises what paramiko does, also for a host key that is not its own.

    `way` is one opened to it, by default straight to its address.
    """
    way = way or private_access.Way(host.address, host.port)
    # An empty SSH configuration: the user's own files must not change what is measured, or whom is trusted.
    config = fabric.Config(ssh_config=private_access.NoConfig(), lazy=True)
    connection = fabric.Connection(
        way.address,
        user=host.user,
        port=way.port,
        config=config,
        connect_timeout=int(private_access.CONNECT_S),
        connect_kwargs={
            "key_filename": str(host.private_key),
            "allow_agent": False,
            "look_for_keys": False,
            "sock": way.channel,
        },
    )
    kind, blob = host.host_key.split()[:2]
    entry = way.address if way.port == 22 else f"[{way.address}]:{way.port}"
    key = paramiko.PKey.from_type_string(kind, paramiko.util.b(base64.b64decode(blob)))
    connection.client.get_host_keys().add(entry, kind, key)
    connection.client.set_missing_host_key_policy(paramiko.RejectPolicy())
    connection.open()
    return connection


def untar(content: bytes) -> dict[str, bytes]:
    """Return the plain files of a tar archive; none is packed, so what a machine sends does not grow here."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            members = [member for member in archive.getmembers() if member.isreg() and not member.issparse()]
            return {member.name: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]
    except tarfile.TarError as error:
        raise DiskbookError(f"what the machine sent is not an archive of a job's files ({error})") from None
