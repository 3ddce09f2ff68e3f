"""The way through a jump host or a tunnel: who is trusted, what is said, and that nothing is left."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import paramiko
import psutil
import pytest

from diskbook.facts.errors import DiskbookError
from diskbook.facts.paths import SSH_CONFIG
from diskbook.hosts import private_access, tunnel_guard
from diskbook.hosts.private_access import Bastion, Jump, Tunnel, TunnelBroken
from diskbook_emulator import machine
from diskbook_emulator.jump import ALIAS, JumpHost
from support.emulated import soon

pytestmark = pytest.mark.emulator

BASTION = Bastion("b", "g", "00000000-0000-0000-0000-00000000000a", "/subscriptions/x/vm")


@pytest.fixture(scope="module")
def jump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JumpHost]:
    made = JumpHost(tmp_path_factory.mktemp("corp"), "corp")
    made.begin()
    yield made
    made.delete()


def use(jump: JumpHost, monkeypatch: pytest.MonkeyPatch, *without: str) -> None:
    """Have the SSH configuration of the jump host, without the lines of some keys."""
    lines = (jump.folder / "ssh_config").read_text().splitlines()
    path = jump.folder / "config"
    path.write_text("\n".join(line for line in lines if line.split()[0] not in without))
    monkeypatch.setenv(SSH_CONFIG, str(path))
    monkeypatch.setenv("HOME", str(jump.folder / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def test_a_jump_host_that_is_known_lets_its_user_in(jump: JumpHost, monkeypatch: pytest.MonkeyPatch) -> None:
    use(jump, monkeypatch)
    with private_access.open_jump(Jump(ALIAS)) as connection:
        assert connection.is_connected


def test_an_unknown_host_key_is_refused(jump: JumpHost, monkeypatch: pytest.MonkeyPatch) -> None:
    use(jump, monkeypatch, "UserKnownHostsFile")
    with pytest.raises(DiskbookError, match=r"not known here .*sign in to it once with 'ssh'"):
        private_access.open_jump(Jump(ALIAS))


def test_a_user_without_a_key_is_told(jump: JumpHost, monkeypatch: pytest.MonkeyPatch) -> None:
    use(jump, monkeypatch, "IdentityFile")
    with pytest.raises(DiskbookError, match=r"does not let you in .*ssh-add"):
        private_access.open_jump(Jump(ALIAS))


def test_a_jump_host_that_is_away_may_be_tried_again(jump: JumpHost, monkeypatch: pytest.MonkeyPatch) -> None:
    use(jump, monkeypatch)
    with pytest.raises(private_access.JumpAway, match=f"jump host {ALIAS}:1 cannot be reached"):
        private_access.open_jump(Jump(ALIAS, port=1))


def test_a_jump_host_leads_nowhere_but_to_machines_that_it_knows(
    jump: JumpHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(jump, monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for place in (("127.255.1.4", 22), listener.getsockname()[:2]):
            with pytest.raises(paramiko.ChannelException, match=r"failed|prohibited"):
                private_access.open_way(*place, Jump(ALIAS))


def test_without_the_azure_cli_there_is_no_tunnel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DiskbookError, match=r"no program 'az' here; install it"):
        Tunnel(BASTION)


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Have a program `az`, a script of the shell."""
    path = tmp_path / "az"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_the_command_line_is_microsofts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "")
    words = private_access.tunnel_command(BASTION, 50022)[1:]
    assert words[:3] == ["network", "bastion", "tunnel"]
    assert dict(zip(words[3::2], words[4::2], strict=True)) == {
        "--name": "b",
        "--resource-group": "g",
        "--subscription": BASTION.subscription,
        "--target-resource-id": "/subscriptions/x/vm",
        "--resource-port": "22",
        "--port": "50022",
    }


def test_what_the_azure_cli_says_last_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "echo 'ERROR: Please run az login' >&2; exit 1")
    with pytest.raises(TunnelBroken, match="Bastion b has ended: ERROR: Please run az login"):
        Tunnel(BASTION)


def test_a_port_that_another_tunnel_has_taken_is_not_this_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`az` takes seconds to listen: by then another tunnel, to another machine, may have the port."""
    stand_in(tmp_path, monkeypatch, "sleep 0.5; echo 'ERROR: the port is in use' >&2; exit 1")
    with socket.create_server(("127.0.0.1", 0)) as others:
        monkeypatch.setattr(private_access, "_free_port", lambda: others.getsockname()[1])
        with pytest.raises(TunnelBroken, match="Bastion b has ended: ERROR: the port is in use"):
            Tunnel(BASTION)


def test_a_tunnel_is_open_when_the_azure_cli_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[-1]))); time.sleep(60)"
    )
    stand_in(tmp_path, monkeypatch, f'{sys.executable} -c "{program}" "$@"')
    opened = Tunnel(BASTION)
    opened.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", opened.port))


def test_the_guard_ends_a_tunnel_when_its_owner_is_killed(tmp_path: Path) -> None:
    """The owner is killed outright; what it had opened, with its children, is ended all the same."""
    pids = tmp_path / "pids"
    script = f"trap '' TERM; sleep 616 & echo $$ $! >{pids}; wait"
    owner = subprocess.Popen(
        [
            sys.executable, "-c",
            "import subprocess, sys, time\n"
            "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, start_new_session=True)\n"
            "time.sleep(600)",
            sys.executable, "-I", tunnel_guard.__file__, "sh", "-c", script,
        ]
    )  # fmt: skip
    assert soon(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    started = [int(text) for text in pids.read_text().split()]
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert soon(lambda: not any(_runs(pid) for pid in started))


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_jump_hosts_address_is_no_machines(tmp_path: Path) -> None:
    made = JumpHost(tmp_path, "corp")
    assert made.address.address == f"{machine.network_of(tmp_path)}.254"
