"""Connections to hosts that nobody made for a run: over SSH, or to this very machine without it.

Commands run in a folder of the run's own there, since a home is its user's, and in the C locale.
"""

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import paramiko

from diskbook.facts.errors import DiskbookError
from diskbook.hosts import ssh

HERE = "this machine"
"""Address of a host that is reached without SSH."""
_ENVIRONMENT = 'PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C; export PATH LC_ALL; umask 077'
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR")
_UNKNOWN_KIND = "not found in known_hosts"  # paramiko's words for a host key of a kind that is not on record


def here(name: str) -> ssh.Host:
    """Return this machine as a host, by its name in the scenario."""
    return ssh.Host(name, HERE, 0, os.environ.get("USER", ""), "", Path())


def in_folder(command: str, folder: str) -> str:
    """Write a command so that any login shell has `sh` run it in a folder."""
    return f"exec sh -c {shlex.quote(f'{_ENVIRONMENT}; cd {shlex.quote(folder)} || exit 1; {command}')}"


class OwnHostConnection(ssh.Connection):
    """An SSH connection to a host of the user's own; see `ssh.Connection`. `folder` must be there."""

    stranger = "it is not the one that the hosts file has; find out why before you trust it"

    def __init__(self, host: ssh.Host, folder: str = "/") -> None:
        super().__init__(host)
        self.folder = folder

    def _run_once(self, command: str, stdin: bytes, timeout_s: float) -> ssh.Output:
        return super()._run_once(in_folder(command, self.folder), stdin, timeout_s)


class LocalConnection(ssh.Connection):
    """This machine in place of one behind SSH: commands run as this user. `folder` must be there."""

    def __init__(self, name: str, folder: str = "/") -> None:
        super().__init__(here(name))
        self.folder = folder

    def run(self, command: str, *, stdin: bytes = b"", timeout_s: float = 60.0) -> ssh.Output:
        """Run a command; nothing breaks here, so it is run once."""
        words = ["sh", "-c", in_folder(command, self.folder)]
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        try:
            done = subprocess.run(
                words,
                input=stdin,
                capture_output=True,
                timeout=timeout_s,
                env=environment,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DiskbookError(
                f"machine {self.host.name}: '{command[:40]}' took more than {timeout_s:.0f} s"
            ) from None
        return ssh.Output(done.returncode, done.stdout, done.stderr)

    def follow(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[str]:
        """Run a command and yield its lines once it has ended."""
        output = self.run(command, stdin=stdin, timeout_s=silence_s)
        yield from output.stdout.decode(errors="replace").splitlines()


def try_once(host: ssh.Host) -> None:
    """Connect to a host once, to say what is wrong with it before anything is begun.

    Raises DiskbookError with what does not fit: address, host key, user or key; no password is ever asked.
    """
    where = f"host {host.name} ({host.user}@{host.address}:{host.port})"
    key = f"identity_file {host.private_key}"
    try:
        ssh.connect(host).close()
    except paramiko.BadHostKeyException:
        raise DiskbookError(
            f"{where} shows another host key than host_key has: {OwnHostConnection.stranger}"
        ) from None
    except paramiko.PasswordRequiredException:
        raise DiskbookError(
            f"{where}: {key} is locked by a passphrase, and none is asked here; name a key without one"
        ) from None
    except paramiko.AuthenticationException:
        raise DiskbookError(
            f"{where} does not let {host.user} in with {key}; add its public half to authorized_keys there"
        ) from None
    except (paramiko.SSHException, EOFError, OSError, ValueError) as error:
        raise DiskbookError(_unreachable(where, error)) from None


def _unreachable(where: str, error: Exception) -> str:
    if _UNKNOWN_KIND in str(error):
        return f"{where} shows a host key of another kind than host_key has; write the line of that kind"
    return f"{where} does not answer ({str(error) or type(error).__name__}); see whether it runs"
