"""The way to a machine without a public address: a jump host, or a tunnel of Azure Bastion.

A jump host is used as OpenSSH's ProxyJump does: its host key must be known to the user, who signs in with
their own keys or their agent. A tunnel is a process of the Azure CLI, opened with a connection and ended
with it.

`az network bastion tunnel` listens on a port of this computer and hands every connection on to a port of the
target (MicrosoftDocs/azure-docs, articles/bastion/connect-vm-native-client-linux.md). It needs a Bastion of
SKU Standard or Premium with native client support. Whatever ends this process, the tunnel's guard sees its
standard input close, and ends the tunnel.

Also decides when a silent machine is recovered, and when its connection is given up.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import fabric
import paramiko
import psutil

from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook.facts.paths import SSH_CONFIG
from diskbook.hosts import tunnel_guard

CONNECT_S = 10.0
# A connection may be away for a minute; a job on the machine goes on meanwhile.
RECONNECT_S = paths.seconds_from_environment("DISKBOOK_RECONNECT_S", usual=90.0, most=3600.0)
LOOK_S = 3.0  # a machine that does not answer for so long is looked after, again and again
LOOK_EVERY_S = 10.0
CUTS = 20  # so often may one command be cut off after a while; a machine that only hangs is given up some day


class Reconnect:
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

    @property
    def is_hopeless(self) -> bool:
        """Whether the machine has been away for too long."""
        return self.away_s > RECONNECT_S

    def look_is_due(self) -> bool:
        """Whether it is time to look after the machine (again)."""
        if self.away_s < self._look_at_s:
            return False
        self._look_at_s = self.away_s + LOOK_EVERY_S
        return True


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


def azure_cli() -> str:
    """Path of the Azure CLI; DiskbookError where there is none."""
    path = shutil.which("az")
    if path is None:
        raise DiskbookError(NO_CLI)
    return path


def tunnel_command(bastion: Bastion, port: int) -> list[str]:
    """What opens a tunnel to SSH of the target at a port of this computer."""
    return [
        azure_cli(), "network", "bastion", "tunnel", "--name", bastion.name,
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
        call = [sys.executable, "-I", tunnel_guard.__file__, *tunnel_command(bastion, self.port)]
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


_NO_KEY = "No authentication methods available"  # paramiko's words where there is no key and no agent
_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"


@dataclass(frozen=True)
class Jump:
    """A jump host; what is None is taken from the SSH configuration."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        user, port = f"{self.user}@" if self.user else "", f":{self.port}" if self.port else ""
        return f"{user}{self.host}{port}"


Route = Jump | Bastion


def reason(error: BaseException) -> str:
    """What broke a connection, without the numbers and addresses that libraries put around it."""
    if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError):
        error = next(iter(error.errors.values()))  # one for each address of a name
    words = getattr(error, "strerror", None) or getattr(error, "text", None) or str(error)
    return words or ("the connection was cut" if isinstance(error, EOFError) else type(error).__name__)


class JumpAway(OSError):
    """A jump host does not answer at the moment; it may be tried again."""


@dataclass
class Way:
    """An open way to a machine: where to connect to, and through what."""

    address: str
    port: int
    gateway: fabric.Connection | None = None
    channel: paramiko.Channel | None = None
    tunnel: Tunnel | None = None

    def close(self) -> None:
        """Close what was opened for it."""
        if self.gateway is not None:
            self.gateway.close()
        if self.tunnel is not None:
            self.tunnel.close()


class NoConfig(paramiko.SSHConfig):
    """An empty SSH configuration. It does not ask who runs this: a user id in a container may lack a name."""

    def lookup(self, hostname: str) -> paramiko.SSHConfigDict:
        """Return the host alone."""
        return paramiko.SSHConfigDict(hostname=hostname)


def open_way(address: str, port: int, route: Route | None) -> Way:
    """Open the way to a machine.

    Raises OSError, paramiko.SSHException when it does not open now, but may later. Raises DiskbookError when
    the jump host's key is unknown or another one, it lets nobody in, or there is no Azure CLI.
    """
    if route is None:
        return Way(address, port)
    if isinstance(route, Bastion):
        tunnel = Tunnel(route)
        return Way("127.0.0.1", tunnel.port, tunnel=tunnel)
    gateway = open_jump(route)
    try:
        # Not by fabric's own gateway, which waits an hour for a machine that does not answer.
        channel = gateway.transport.open_channel(
            "direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=CONNECT_S
        )
    except BaseException:
        gateway.close()
        raise
    return Way(address, port, gateway=gateway, channel=channel)


def open_jump(jump: Jump) -> fabric.Connection:
    """Connect to a jump host once; raises as `open_way` does."""
    config = _user_config().lookup(jump.host)
    port = jump.port or int(config.get("port", 22))
    connection = fabric.Connection(
        config.get("hostname", jump.host),
        user=jump.user or config.get("user") or getpass.getuser(),
        port=port,
        config=fabric.Config(ssh_config=NoConfig(), lazy=True),
        connect_timeout=int(CONNECT_S),
        connect_kwargs=_keys(config),
    )
    for path in config.get("userknownhostsfile", _KNOWN_HOSTS).split():
        with contextlib.suppress(FileNotFoundError):
            connection.client.load_system_host_keys(str(Path(path).expanduser()))
    connection.client.set_missing_host_key_policy(_Unknown(jump))
    try:
        _sign_in(connection)
    except paramiko.BadHostKeyException as error:
        where = f"another host key than {error.hostname} has in your known_hosts"
        raise DiskbookError(f"jump host {jump} shows {where}; see who changed it before you go on") from None
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise _failure(jump, error) from error
    return connection


def _sign_in(connection: fabric.Connection) -> None:
    try:
        connection.open()
        connection.transport.set_keepalive(5)
    except BaseException:
        connection.client.close()  # of one that let nobody in a thread would be left
        raise


def _failure(jump: Jump, error: Exception) -> Exception:
    """What to raise where a jump host lets nobody in, or does not answer."""
    why = reason(error)
    if isinstance(error, paramiko.AuthenticationException) or _NO_KEY in str(error):
        return DiskbookError(
            f"jump host {jump} does not let you in ({why}); load your key with ssh-add, or name it by "
            "IdentityFile in ~/.ssh/config"
        )
    return JumpAway(f"jump host {jump} cannot be reached ({why})")


class _Unknown(paramiko.MissingHostKeyPolicy):
    """Refuses a jump host that the user has never met."""

    def __init__(self, jump: Jump) -> None:
        self._jump = jump

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Raise DiskbookError."""
        raise DiskbookError(
            f"the host key of jump host {self._jump} is not known here ({key.get_name()} of {hostname}); "
            "sign in to it once with 'ssh', compare the key and accept it"
        )


def _user_config() -> paramiko.SSHConfig:
    named = os.environ.get(SSH_CONFIG, "")
    path = Path(named or "~/.ssh/config").expanduser()
    try:
        return paramiko.SSHConfig.from_path(str(path))
    except FileNotFoundError:
        if named:
            raise DiskbookError(f"{SSH_CONFIG}: there is no file {path}; name an SSH configuration") from None
        return paramiko.SSHConfig()
    except (OSError, paramiko.ConfigParseError, UnicodeDecodeError) as error:
        raise DiskbookError(f"{path} cannot be read as an SSH configuration ({error}); mend it") from None


def _keys(config: paramiko.SSHConfigDict) -> dict[str, object]:
    """How to sign in: with the keys named, the agent's, and those in ~/.ssh, as OpenSSH does."""
    named = [Path(path).expanduser() for path in config.get("identityfile", [])]
    own = config.get("identitiesonly", "no").lower() != "yes"
    files = [str(path) for path in named if path.is_file()]
    return {"key_filename": files, "allow_agent": own, "look_for_keys": own}
