"""Hosts of one's own for tests: a folder on a disk, an sshd on loopback, a file that names them."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import keys
from diskbook.facts import paths
from diskbook.hosts.ssh import Host
from diskbook.measure.runs import stages
from diskbook.results.run import Run
from diskbook_emulator.machine import Machine
from diskbook_emulator.types import VmAddress, VmSpec
from support import SCENARIOS

OWN = str(SCENARIOS / "own.toml")


def takes_direct_io(folder: Path) -> bool:
    """Whether a file there is on a disk and can be written around the page cache."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False)
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            os.close(os.open(file.name, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return kind.stdout.strip() not in ("tmpfs", "ramfs")


@contextmanager
def disk_folder() -> Iterator[Path]:
    """A folder on a real disk, which the temporary one need not be; skips where there is none."""
    for place in (Path("/tmp"), Path("/var/tmp"), paths.ROOT / ".tools"):
        if place.is_dir() and takes_direct_io(place):
            with tempfile.TemporaryDirectory(prefix="diskbook-own-", dir=place) as name:
                yield Path(name).resolve()
            return
    pytest.skip("no folder is on a disk that takes unbuffered I/O")


@contextmanager
def server(folder: Path) -> Iterator[tuple[Machine, Host]]:
    """An sshd on loopback, with what is needed to sign in."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    host_key, private = keys.new_pair("host"), keys.run_key(folder)
    spec = VmSpec(
        id="/own",
        name="own",
        size="Standard_D4as_v4",
        zone="1",
        os="linux",
        admin_username="diskbook",
        authorized_keys=(private.with_suffix(".pub").read_text().strip(),),
        custom_data=keys.cloud_init(host_key),
    )
    machine = Machine(folder / "own", "test/own", VmAddress("127.0.0.1", port))
    machine.prepare(spec)
    machine.start()
    try:
        line = " ".join(host_key.public.split()[:2])
        yield machine, Host("own", "127.0.0.1", port, "diskbook", line, private)
    finally:
        machine.delete()


def hosts_file(folder: Path, host: Host, **changes: Any) -> str:
    """Write a file that names one host over SSH."""
    told = {
        "name": "here",
        "address": host.address,
        "port": host.port,
        "user": host.user,
        "identity_file": str(host.private_key),
        "host_key": host.host_key,
        **changes,
    }
    return written(folder, told)


def written(folder: Path, *hosts: dict[str, Any]) -> str:
    """Write a file of hosts; values are written as TOML has strings, numbers and lists."""
    path = folder / "hosts.toml"
    rows = [
        "\n".join(["[[host]]", *(f"{key} = {_toml(value)}" for key, value in host.items())]) for host in hosts
    ]
    path.write_text("\n\n".join(rows) + "\n")
    return str(path)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else '"' + value.replace('"', '\\"') + '"'


def begun(name: str, preset: str = "quick", scenario: str = OWN, **inventory: Any) -> Run:
    """Begin a run on hosts of one's own: of a file, or of a folder of this machine."""
    given = {key: str(value) for key, value in inventory.items()}
    return stages.begin(name, scenario, "inventory", preset, inventory=given)


@contextmanager
def held(device: str) -> Iterator[None]:
    """Open a device exclusively, as databases and mkfs do."""
    claim = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        yield
    finally:
        os.close(claim)
