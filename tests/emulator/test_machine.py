"""Emulated machines: a real sshd each, known in advance, nothing of the user's in it, nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import psutil
import pytest
import yaml

from diskbook.cloud.azure import keys
from diskbook.facts.errors import UsageError
from diskbook_emulator import machine, processes
from diskbook_emulator.machine import Machine, host_keys
from diskbook_emulator.types import VmAddress, VmSpec
from support.emulated import soon

pytestmark = pytest.mark.emulator
NOBODYS = 61_234
"""A user id without an entry in any list of users."""


class Lab:
    """One machine, its specification and a client that knows its key."""

    def __init__(self, folder: Path, name: str = "vm1") -> None:
        self.folder = folder
        self.host_key = keys.new_pair("host")
        self.key = keys.run_key(folder)
        self.vm = VmSpec(
            id="/vms/vm1",
            name="vm1",
            size="Standard_D4as_v4",
            zone="1",
            os="linux",
            admin_username="diskbook",
            authorized_keys=(self.key.with_suffix(".pub").read_text().strip(),),
            custom_data=keys.cloud_init(self.host_key),
        )
        address = machine.next_address(machine.network_of(folder / name), ())
        self.machine = Machine(folder / name, "test/vm1", VmAddress(address, machine.free_port(address)))

    def boot(self) -> None:
        self.machine.prepare(self.vm)
        self.machine.start()

    def client(self, public: str = "", user: str = "diskbook") -> paramiko.SSHClient:
        at = self.machine.address
        kind, blob = (public or self.host_key.public).split()[:2]
        known = paramiko.hostkeys.HostKeyEntry.from_line(f"[{at.address}]:{at.port} {kind} {blob}")
        assert known is not None
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        client.get_host_keys().add(f"[{at.address}]:{at.port}", kind, known.key)
        client.connect(
            at.address,
            at.port,
            user,
            key_filename=str(self.key),
            allow_agent=False,
            look_for_keys=False,
        )
        return client

    def run(self, command: str) -> str:
        with self.client() as client:
            return client.exec_command(command)[1].read().decode()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.machine.delete()


def test_the_host_is_known_before_the_first_connection(lab: Lab) -> None:
    lab.boot()
    assert lab.run("echo here") == "here\n"
    with pytest.raises(paramiko.BadHostKeyException):
        lab.client(keys.new_pair("other").public)


def test_another_users_key_is_refused(lab: Lab, tmp_path: Path) -> None:
    lab.vm = replace(lab.vm, authorized_keys=(keys.new_pair("other").public,))
    lab.boot()
    with pytest.raises(paramiko.AuthenticationException):
        lab.client()


def test_only_the_administrator_signs_in(lab: Lab) -> None:
    """Whatever its name; the account that runs the emulator is unknown there."""
    lab.vm = replace(lab.vm, admin_username="amy")
    lab.boot()
    with lab.client(user="amy") as client:
        said = client.exec_command("id -u; echo $USER $LOGNAME; pwd")[1].read().decode().split()
    assert said == [str(os.getuid()), "amy", "amy", str(lab.machine.folder / "home")]
    for other in ("diskbook", "root", pwd.getpwuid(os.getuid()).pw_name):
        with pytest.raises(paramiko.AuthenticationException):
            lab.client(user=other)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_an_emulator_that_is_not_roots_has_machines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the system does not know the user who runs it."""
    program, require = processes.require("sshd", "openssh-server"), processes.require
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        lab, as_other = Lab(folder), folder / "sshd"
        command = f"setpriv --reuid={NOBODYS} --regid={NOBODYS} --clear-groups {program}"
        as_other.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        as_other.chmod(0o755)
        monkeypatch.setattr(os, "getuid", lambda: NOBODYS)
        monkeypatch.setattr(os, "getgid", lambda: NOBODYS)
        instead = {"sshd": str(as_other)}
        monkeypatch.setattr(
            processes, "require", lambda name, package: instead.get(name) or require(name, package)
        )
        lab.machine.prepare(lab.vm)
        for path in (lab.machine.folder, *lab.machine.folder.rglob("*")):
            os.chown(path, NOBODYS, NOBODYS)
        try:
            lab.machine.start()
            assert lab.run("id -u; echo $USER").split() == [str(NOBODYS), "diskbook"]
            with lab.client() as client, client.open_sftp() as sftp:
                sftp.open("note", "w").close()
            assert (lab.machine.folder / "home" / "note").stat().st_uid == NOBODYS
        finally:
            lab.machine.delete()


def test_without_the_library_one_sentence_names_its_package(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"^the emulator needs 'libnss_wrapper.so', .* package libnss-wrapper\.$"
    ):
        machine.library([str(tmp_path)])


def test_a_machine_has_its_own_folder_and_environment(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "1")
    lab.boot()
    home = str(lab.machine.folder / "home")
    assert lab.run("pwd").strip() == home
    environment = dict(line.split("=", 1) for line in lab.run("env").splitlines())
    assert environment["HOME"] == home
    assert environment["DISKBOOK_MACHINE"] == "test/vm1"
    assert environment["PATH"].split(":")[0] == str(lab.machine.folder / "bin")
    assert "SECRET_OF_THE_USER" not in environment


def test_a_machine_says_what_disks_it_sees(lab: Lab) -> None:
    lab.boot()
    assert json.loads(lab.run("diskbook-disks")) == {}
    lab.machine.write_disks({"0": {"engine": "nbd"}})
    assert json.loads(lab.run("diskbook-disks")) == {"0": {"engine": "nbd"}}


def test_files_can_be_copied(lab: Lab) -> None:
    lab.boot()
    with lab.client() as client, client.open_sftp() as sftp:
        with sftp.open("note", "w") as file:
            file.write("text")
    assert (lab.machine.folder / "home" / "note").read_text() == "text"


def test_stopping_ends_sessions_and_detached_jobs(lab: Lab) -> None:
    lab.boot()
    quiet = ">/dev/null 2>&1 </dev/null"
    lab.run(f"setsid nohup sleep 600 {quiet} & setsid env -i sleep 600 {quiet} &")
    client = lab.client()
    client.exec_command("exec sleep 600")

    def sleeping() -> list[psutil.Process]:
        return [process for process in processes.marked(lab.machine.folder) if process.name() == "sleep"]

    assert soon(lambda: len(sleeping()) == 3)  # the shell that began one may have stayed with it
    found = processes.marked(lab.machine.folder)
    lab.machine.stop()
    assert not lab.machine.running
    assert not [process for process in found if processes.is_alive(process)]
    assert machine.is_free(lab.machine.address.address, lab.machine.address.port)
    with contextlib.suppress(OSError, EOFError):
        client.close()


def test_stopping_leaves_other_machines_alone(lab: Lab, tmp_path: Path) -> None:
    lab.boot()
    other = Lab(tmp_path, "vm1-2")  # a folder whose name begins alike
    other.boot()
    try:
        lab.machine.stop()
        assert other.run("echo still here") == "still here\n"
    finally:
        other.machine.delete()


def test_a_restarted_machine_keeps_address_key_and_files(lab: Lab) -> None:
    lab.boot()
    lab.run("echo kept >file")
    lab.machine.stop()
    lab.vm = replace(lab.vm, custom_data="")  # keys are taken at the first start only
    lab.boot()
    assert lab.run("cat file") == "kept\n"


def test_deleting_removes_the_folder(lab: Lab) -> None:
    lab.boot()
    lab.machine.delete()
    assert not lab.machine.folder.exists()


def test_a_port_in_use_is_told(lab: Lab) -> None:
    lab.boot()
    second = Machine(lab.folder / "vm2", "test/vm2", lab.machine.address)
    second.prepare(lab.vm)
    with pytest.raises(RuntimeError, match=r"test/vm2 cannot listen on 127\..*in use"):
        second.start()


def test_a_missing_program_names_its_package() -> None:
    with pytest.raises(UsageError, match=r"'no-such-sshd', which is not installed: .* openssh-server"):
        processes.require("no-such-sshd", "openssh-server")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#cloud-config\nssh_keys: {ed25519_private: abc}\n", "no ed25519_public"),
        ("#cloud-config\nssh_keys: [1]\n", "ssh_keys must map"),
        ("#cloud-config\nssh_keys: {\n", "not valid cloud-init YAML"),
    ],
)
def test_broken_user_data_is_told(text: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        host_keys(text)


def test_user_data_without_keys_give_a_machine_its_own(lab: Lab) -> None:
    lab.vm = replace(lab.vm, custom_data="#!/bin/sh\necho not cloud-config\n")
    lab.boot()
    public = (lab.machine.folder / "host_ed25519.pub").read_text()
    with lab.client(public) as client:
        assert client.exec_command("echo here")[1].read() == b"here\n"


def test_files_of_the_user_data_are_written_below_the_machines_own_root(lab: Lab) -> None:
    text = yaml.safe_dump(
        {"write_files": [{"path": path, "content": "x"} for path in ("/etc/a", "../../out", "/")]}
    )
    lab.machine.prepare(replace(lab.vm, custom_data=f"#cloud-config\n{text}"))
    root = lab.machine.folder / "root"
    assert [path.relative_to(root) for path in root.rglob("*") if path.is_file()] == [Path("etc/a")]
    assert not list(lab.folder.rglob("out"))


def test_nothing_updates_a_machine_while_it_is_measured(lab: Lab) -> None:
    lab.machine.prepare(replace(lab.vm, custom_data=keys.cloud_init(keys.new_pair("vm"))))
    assert 'APT::Periodic::Enable "0";' in (lab.machine.folder / "root" / keys.QUIET[1:]).read_text()
