"""An emulated machine: an unprivileged OpenSSH server with its own address, host key and folder.

It lets in the administrator that its VM was created with, and nobody else (`user_list`). It is no sandbox:
commands run with the user id of whoever started the emulator, in the machine's folder and with the machine's
environment, and see this computer.
"""

import contextlib
import hashlib
import json
import os
import pwd
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from diskbook.facts.errors import UsageError
from diskbook.facts.files import write_atomic
from diskbook.hosts import nbd
from diskbook_emulator import FOLDER_VARIABLE, processes, stand_in_call, template
from diskbook_emulator.types import VmAddress, VmSpec

KEY_TYPES = ("ed25519", "ecdsa", "rsa")
# Of systemd's calendar times only the plain one: no emulated machine needs another.
_ON_CALENDAR = re.compile(r"^OnCalendar=(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC$", re.MULTILINE)


def host_keys(custom_data: str) -> dict[str, tuple[str, str]]:
    """Return the SSH host keys of a ``#cloud-config`` text.

    - `custom_data`: the decoded user data. Only `ssh_keys` is read here: an emulated machine installs
      nothing.

    Returns ``{type: (private key in OpenSSH's format, public key line)}``, empty without `ssh_keys`.

    Raises RuntimeError: the text is not YAML, or a private key comes without its public one.
    """
    if not custom_data.lstrip().startswith("#cloud-config"):
        return {}
    try:
        config = yaml.safe_load(custom_data)
    except yaml.YAMLError as error:
        raise RuntimeError(f"customData is not valid cloud-init YAML: {error}") from error
    keys = config.get("ssh_keys") if isinstance(config, dict) else None
    return {} if keys is None else _pairs(keys)


def shutdown_at(custom_data: str) -> datetime | None:
    """Return when a timer of systemd in a ``#cloud-config`` text shuts the machine down; None without one."""
    timers = [content for path, content in written_files(custom_data) if path.endswith(".timer")]
    times = [match[1] for text in timers for match in _ON_CALENDAR.finditer(text)]
    return min((datetime.fromisoformat(f"{time}+00:00") for time in times), default=None)


def written_files(custom_data: str) -> list[tuple[str, str]]:
    """Return path and content of each file that a ``#cloud-config`` text writes."""
    if not custom_data.lstrip().startswith("#cloud-config"):
        return []
    try:
        config = yaml.safe_load(custom_data)
    except yaml.YAMLError:
        return []  # the machine's creation has told that
    files = (config.get("write_files") if isinstance(config, dict) else None) or []
    return [(str(file.get("path", "")), str(file.get("content", ""))) for file in files]


def _pairs(keys: object) -> dict[str, tuple[str, str]]:
    if not isinstance(keys, dict):
        raise RuntimeError("customData: ssh_keys must map names such as ed25519_private to keys")
    pairs = {}
    for kind in KEY_TYPES:
        private, public = keys.get(f"{kind}_private"), keys.get(f"{kind}_public")
        if private is None:
            continue
        if public is None:
            raise RuntimeError(f"customData: ssh_keys has {kind}_private but no {kind}_public")
        pairs[kind] = (str(private).strip() + "\n", str(public).strip() + "\n")
    return pairs


def host_key_pair(private_key: str) -> dict[str, tuple[str, str]]:
    """Return a host key as `host_keys` does, given its private part.

    Raises RuntimeError when it is not a private key in OpenSSH's format, or of a kind that machines do not
    take.
    """
    try:
        key = serialization.load_ssh_private_key(private_key.encode(), None)
    except ValueError as error:
        raise RuntimeError(f"the host key is no private key in OpenSSH's format: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise RuntimeError("the host key is not an ed25519 key")
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return {"ed25519": (private_key.strip() + "\n", public.decode() + "\n")}


def new_host_key() -> dict[str, tuple[str, str]]:
    """Make an ed25519 host key, as a machine does whose user data bring none."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return {"ed25519": (private.decode(), public.decode() + "\n")}


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
        if not becomes_free(self.address.address, self.address.port):
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


PORT_FIRST = 20_000  # below the kernel's ephemeral range, so that no outgoing connection takes a port
PORT_COUNT = 12_000


def network_of(folder: Path) -> str:
    """Return the first three bytes of an emulator's addresses, e.g. ``127.83.201``.

    They follow from the state folder and the user, so a restarted emulator keeps them and two emulators
    rarely share them; where they do, the free port tells them apart.
    """
    digest = hashlib.sha256(f"{os.getuid()}:{folder}".encode()).digest()
    return f"127.{1 + digest[0] % 254}.{digest[1]}"


def is_free(address: str, port: int) -> bool:
    """Tell whether a listener could bind this address and port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
        return True


def becomes_free(address: str, port: int) -> bool:
    """Tell whether a port is free, waiting a little for a listener that is ending."""
    deadline = time.monotonic() + 1.0
    while not is_free(address, port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def free_port(address: str, salt: str = "") -> int:
    """Return a port that is free on the address, the same one each time where possible.

    Raises OSError when no port of the range can be bound.
    """
    start = int.from_bytes(hashlib.sha256(f"{address}:{salt}".encode()).digest()[:4], "big")
    for step in range(PORT_COUNT):
        port = PORT_FIRST + (start + step) % PORT_COUNT
        if is_free(address, port):
            return port
    raise OSError(f"no free port between {PORT_FIRST} and {PORT_FIRST + PORT_COUNT - 1} on {address}")


def next_address(network: str, taken: Collection[str]) -> str:
    """Return an address of the network that no machine has yet.

    Raises RuntimeError when all 253 addresses are taken.
    """
    for last in range(2, 255):
        address = f"{network}.{last}"
        if address not in taken:
            return address
    raise RuntimeError(f"the emulator's network {network}.0/24 is full: delete machines first")
