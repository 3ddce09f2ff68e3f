"""An emulated machine: an unprivileged OpenSSH server with its own address, host key and folder.

It lets in the administrator that its VM was created with, and nobody else (`user_list`). It is no sandbox:
commands run with the user id of whoever started the emulator, in the machine's folder and with the machine's
environment, and see this computer.
"""

import contextlib
import json
import os
import pwd
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from diskbook.facts.errors import UsageError
from diskbook.facts.files import write_atomic
from diskbook.hosts import nbd
from diskbook_emulator import FOLDER_VARIABLE, network, processes, stand_in_call, template
from diskbook_emulator.cloudinit import host_key_pair, host_keys, new_host_key, written_files
from diskbook_emulator.types import VmAddress, VmSpec

SFTP_SERVERS = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
)
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
VOLUMES, CONTROL = "volumes.json", "control.json"  # in a machine's folder
START_S = 10.0  # far more than sshd needs; only a broken one takes longer

# What an emulated Windows machine has on its PATH, and the module that plays it.
STAND_INS = {
    "powershell": "diskbook_emulator.windows_powershell",
    "diskspd": "diskbook_emulator.windows_diskspd",
}


def check_programs() -> None:
    """Raise UsageError when a program or library that machines need is missing."""
    processes.require("sshd", "openssh-server")
    processes.require("fio", "fio")
    processes.require("setpriv", "util-linux")
    library()


class Machine:
    """One emulated machine.

    - `folder`: the machine's folder; made by :meth:`prepare`.
    - `label`: ``<emulator>/<vm>``, the value of DISKBOOK_MACHINE on the machine.
    - `address`: where its sshd listens.
    - `stand_ins`: folder in which stand-ins are kept warm (`emulator.stand_ins`); a machine by itself has
      cold ones.
    """

    def __init__(
        self, folder: Path, label: str, address: VmAddress, stand_ins: Path = Path(os.devnull)
    ) -> None:
        self.folder = folder
        self.label = label
        self.address = address
        self.stand_ins = stand_ins
        self._sshd: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the machine's sshd runs."""
        return self._sshd is not None and self._sshd.poll() is None

    def prepare(self, vm: VmSpec) -> None:
        """Write the machine's files. Host keys are written once: a restarted machine keeps them."""
        for name in ("", "home", "tmp", "bin"):
            (self.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._host_key_files():
            self._write_host_keys(host_keys(vm.custom_data) or new_host_key())
            self._write_files(vm.custom_data)
        user = vm.admin_username
        write(self.folder, user)
        quoted = shlex.quote(str(self.folder))
        _write(self.folder / "authorized_keys", "\n".join(vm.authorized_keys) + "\n", 0o600)
        _write(self.folder / "sshd_config", self._config(user), 0o600)
        _write(self.folder / "shell", self._shell(user, quoted), 0o700)
        _write(
            self.folder / "bin" / "diskbook-disks", template("diskbook-disks").format(folder=quoted), 0o700
        )
        tool = shlex.quote(nbd.__file__)
        look = template("diskbook-disk").format(python=shlex.quote(sys.executable), tool=tool, folder=quoted)
        _write(self.folder / "bin" / "diskbook-disk", look, 0o700)
        if vm.os == "linux":
            call = template("sg_persist").format(python=shlex.quote(sys.executable), folder=quoted)
            _write(self.folder / "bin" / "sg_persist", call, 0o700)
        for program, module in STAND_INS.items() if vm.os == "windows" else ():
            words = {"python": sys.executable, "call": stand_in_call.__file__, "folder": str(self.stand_ins)}
            quoted_words = {name: shlex.quote(word) for name, word in words.items()}
            called = template("stand_in").format(**quoted_words, module=module)
            _write(self.folder / "bin" / program, called, 0o700)
        if not (self.folder / "disks.json").exists():
            self.write_disks({})

    def _write_files(self, custom_data: str) -> None:
        """Write the files of the user data below `root`, where they can be looked at."""
        root = (self.folder / "root").resolve()
        for name, content in written_files(custom_data):
            path = (root / name.lstrip("/")).resolve()
            if path.is_relative_to(root) and path != root:
                path.parent.mkdir(parents=True, exist_ok=True)
                _write(path, content, 0o600)

    def set_up(self, vm: VmSpec, host_key: str) -> None:
        """Replace the host key and the keys that may sign in, as a script on the machine would.

        Raises RuntimeError when the host key cannot be used, or sshd does not come back with it.
        """
        pairs = host_key_pair(host_key)
        self.stop()
        for path in self.folder.glob("host_*"):
            path.unlink()
        self._write_host_keys(pairs)
        self.prepare(vm)
        self.start()

    def environment(self) -> dict[str, str]:
        """What its sshd runs with besides the PATH."""
        return environment(self.folder)

    def write_disks(self, disks: dict[str, dict[str, Any]]) -> None:
        """Replace what `diskbook-disks` prints on the machine: the disks by LUN."""
        write_atomic(self.folder / "disks.json", json.dumps(disks, indent=1) + "\n", 0o600)

    def write_volumes(self, volumes: list[dict[str, Any]]) -> None:
        """Replace what the machine knows of its volumes: a row for each path that leads to one."""
        write_atomic(self.folder / VOLUMES, json.dumps(volumes, indent=1) + "\n", 0o600)

    def write_control(self, vm_id: str, endpoint: str, ca: str) -> None:
        """Write where scripts on the machine reach the control plane, and with what secret."""
        control = {"machine": vm_id, "endpoint": endpoint, "ca": ca, "secret": self.secret()}
        write_atomic(self.folder / CONTROL, json.dumps(control) + "\n", 0o600)

    def secret(self) -> str:
        """Return what the machine shows to the control plane; made once."""
        path = self.folder / "secret"
        if not path.exists():
            write_atomic(path, secrets.token_urlsafe(24), 0o600)
        return path.read_text("utf-8")

    def start(self) -> None:
        """Start the machine's sshd and wait until it answers; nothing happens when it runs.

        Raises UsageError when sshd is not installed, and RuntimeError when the port is in use, or sshd ended
        or does not answer; the message has its last log line.
        """
        if self.running:
            return
        sshd = processes.require("sshd", "openssh-server")
        where = f"{self.address.address}:{self.address.port}"
        if not network.becomes_free(self.address.address, self.address.port):
            raise RuntimeError(f"the emulated machine {self.label} cannot listen on {where}: it is in use")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        log = self.folder / "sshd.log"
        self._sshd = processes.spawn(
            [sshd, "-D", "-e", "-f", str(self.folder / "sshd_config")],
            cwd=self.folder,
            env={"PATH": SYSTEM_PATH, **self.environment()},
            output=log,
        )
        self._wait_until_it_answers(log)

    def stop(self, notice: bool = False) -> None:
        """End the machine as a power cut does: its sshd, all sessions and all jobs left behind by them.

        With `notice` it is a shutdown: what runs on it is told first, and has a moment to end.
        """
        if notice:
            processes.end(processes.marked(self.folder, but="sshd"))
        running = (
            processes.tree(self._sshd.pid) if self._sshd is not None and self._sshd.poll() is None else []
        )
        processes.kill(running[:1])  # first the listener: no new session
        for _ in range(5):  # a job may fork while it is being ended
            processes.kill(running)
            running = processes.marked(self.folder)
            if not running:
                break
        if self._sshd is not None:
            self._sshd.wait()
            self._sshd = None

    def delete(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write_host_keys(self, pairs: dict[str, tuple[str, str]]) -> None:
        for kind, (private, public) in pairs.items():
            _write(self.folder / f"host_{kind}", private, 0o600)
            _write(self.folder / f"host_{kind}.pub", public, 0o644)

    def _host_key_files(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("host_*") if path.suffix != ".pub")

    def _config(self, user: str) -> str:
        sftp = next((path for path in SFTP_SERVERS if Path(path).exists()), None)
        # The SFTP server ends where whoever runs it is in no user list.
        listed = shlex.join(f"{name}={value}" for name, value in environment(self.folder).items())
        return template("sshd_config").format(
            address=self.address.address,
            port=self.address.port,
            host_keys="\n".join(f"HostKey {path}" for path in self._host_key_files()),
            folder=self.folder,
            user=user,
            folder_variable=FOLDER_VARIABLE,
            subsystem=f"Subsystem sftp env {listed} {sftp}" if sftp else "",
        )

    def _shell(self, user: str, folder: str) -> str:
        fio = shutil.which("fio")  # may lie in the environment the emulator was started from
        beside = f":{Path(fio).parent}" if fio and str(Path(fio).parent) not in SYSTEM_PATH.split(":") else ""
        return template("shell").format(
            folder=folder,
            path=shlex.quote(f"{self.folder}/bin:{SYSTEM_PATH}{beside}"),
            user=shlex.quote(user),
            label=shlex.quote(self.label),
            folder_variable=FOLDER_VARIABLE,
        )

    def _wait_until_it_answers(self, log: Path) -> None:
        assert self._sshd is not None
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._sshd.poll() is not None:
                break
            if _has_banner(self.address):
                return
            time.sleep(0.01)
        self.stop()
        lines = log.read_text(errors="replace").split("\n") if log.exists() else []
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no message")
        where = f"{self.address.address}:{self.address.port}"
        raise RuntimeError(f"sshd of the emulated machine {self.label} does not answer on {where}: {last}")


def _write(path: Path, text: str, mode: int) -> None:
    path.touch(mode=mode)
    path.write_text(text, encoding="utf-8")


def _has_banner(address: VmAddress) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address.address, address.port), 1.0) as link:
        return link.recv(4) == b"SSH-"
    return False


# ---- the users that an sshd knows: its machine's administrator, and no account of this computer


PACKAGE = "libnss-wrapper"
PLACES = ("/usr/lib", "/usr/lib64", *map(str, Path("/usr/lib").glob("*-linux-gnu*")))
_SEPARATED = "sshd"  # root's sshd becomes this user until the client has signed in


def library(places: Iterable[str] = PLACES) -> Path:
    """Return the library.

    Raises UsageError when it is not installed; the message names its Debian package.
    """
    for place in places:
        if (path := Path(place, "libnss_wrapper.so")).exists():
            return path
    raise UsageError(
        "the emulator needs 'libnss_wrapper.so', the user list of its machines, which is not installed: "
        f"install the package {PACKAGE}."
    )


def write(folder: Path, user: str) -> None:
    """Write the user list of the machine in `folder`, whose administrator is `user`."""
    lines = [f"{user}:*:{os.getuid()}:{os.getgid()}::{folder}/home:/bin/sh"]
    with contextlib.suppress(KeyError):
        entry = pwd.getpwnam(_SEPARATED)
        lines.append(f"{_SEPARATED}:*:{entry.pw_uid}:{entry.pw_gid}::{entry.pw_dir}:{entry.pw_shell}")
    for name, text in (("passwd", "\n".join(lines)), ("group", f"{user}:*:{os.getgid()}:")):
        (folder / name).write_text(f"{text}\n", encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    """Return the variables by which a program looks users up in the list in `folder`."""
    return {
        "LD_PRELOAD": str(library()),
        "NSS_WRAPPER_PASSWD": f"{folder}/passwd",
        "NSS_WRAPPER_GROUP": f"{folder}/group",
    }
