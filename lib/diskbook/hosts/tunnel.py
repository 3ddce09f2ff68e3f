"""A tunnel of Azure Bastion: a process of the Azure CLI, which ends with the connection it was opened for.

`az network bastion tunnel` listens on a port of this computer and hands every connection on to a port of the
target (MicrosoftDocs/azure-docs, articles/bastion/connect-vm-native-client-linux.md). It needs a Bastion of
SKU Standard or Premium with native client support. Whatever ends this process, the tunnel's guard sees its
standard input close, and ends the tunnel.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import psutil

from diskbook.facts.errors import DiskbookError
from diskbook.hosts import tunnel_guard

OPEN_S = 60.0  # the CLI takes some seconds to start, and asks Azure who may use the Bastion
END_S = 5.0
NO_CLI = (
    "a tunnel of Azure Bastion is opened by the Azure CLI, and there is no program 'az' here; install it "
    "(https://aka.ms/azure-cli), with 'az extension add --name bastion', or use network.jump_host"
)


@dataclass(frozen=True)
class Bastion:
    """A Bastion by its names, and the id of the machine that it leads to."""

    name: str
    group: str
    subscription: str
    target: str


class TunnelBroken(OSError):
    """A tunnel does not open, or has ended; it may be tried again."""


def program() -> str:
    """Path of the Azure CLI; DiskbookError where there is none."""
    path = shutil.which("az")
    if path is None:
        raise DiskbookError(NO_CLI)
    return path


def command(bastion: Bastion, port: int) -> list[str]:
    """What opens a tunnel to SSH of the target at a port of this computer."""
    return [
        program(), "network", "bastion", "tunnel", "--name", bastion.name,
        "--resource-group", bastion.group, "--subscription", bastion.subscription,
        "--target-resource-id", bastion.target, "--resource-port", "22", "--port", str(port),
    ]  # fmt: skip


class Tunnel:
    """An open tunnel; it listens at `port` of 127.0.0.1.

    Raises TunnelBroken when it does not open, with the last line that the CLI wrote. Raises DiskbookError
    when there is no Azure CLI.
    """

    def __init__(self, bastion: Bastion) -> None:
        self.port = _free_port()
        self._bastion = bastion
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the tunnel)
        call = [sys.executable, "-I", tunnel_guard.__file__, *command(bastion, self.port)]
        self._guard = subprocess.Popen(
            call,
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the tunnel and all that belongs to it."""
        if self._guard.stdin is not None and not self._guard.stdin.closed:
            self._guard.stdin.close()
        try:
            self._guard.wait(END_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._guard.pid, signal.SIGKILL)
            self._guard.wait()
        self._log.close()

    def _wait(self) -> None:
        """Wait until the tunnel listens."""
        deadline = time.monotonic() + OPEN_S
        while time.monotonic() < deadline:
            if self._guard.poll() is not None:
                raise TunnelBroken(f"the tunnel of Bastion {self._bastion.name} has ended: {self._last()}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                if self._is_listening():
                    return
            time.sleep(0.05)
        raise TunnelBroken(
            f"the tunnel of Bastion {self._bastion.name} did not open within {OPEN_S:.0f} s: {self._last()}"
        )

    def _is_listening(self) -> bool:
        """Whether a process of this tunnel has the port; another tunnel's may have taken it first."""
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self._guard.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    places = process.net_connections("tcp")
                    if any(at.status == psutil.CONN_LISTEN and at.laddr.port == self.port for at in places):
                        return True
        return False

    def _last(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "az said nothing")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
