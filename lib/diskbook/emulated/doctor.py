"""What a run on the emulator needs of this machine, as `make run` does: programs, ports, cores, space."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path

from diskbook.cloud.kinds import Check, look
from diskbook.design import layout
from diskbook.design.model import Scenario
from diskbook.facts.errors import DiskbookError
from diskbook.measure.doctor import SPARE_BYTES, existing, room, runs_folder
from diskbook.measure.runs.begin import PACKAGES
from diskbook.measure.runs.stages import at_once
from diskbook_emulator import disk, folders, machine, processes

PROGRAMS = (
    ("fio", "fio"),
    ("nbdkit", "nbdkit"),
    ("gcc", "gcc"),
    ("sshd", "openssh-server"),
    ("setpriv", "util-linux"),
)
"""Programs and their Debian packages, as `lib/setup.sh` installs them."""
LEAST_CORES = 2
_INSTALL = "'make setup' installs what is missing"


def checks(scenario: Scenario) -> list[Check]:
    looked: list[tuple[str, Callable[[], str]]] = [
        *((program, partial(processes.require, program, package)) for program, package in PROGRAMS),
        ("fio's NBD engine", _engine),
        ("plugin of emulated disks", _plugin),
        ("users of emulated machines", lambda: str(machine.library())),
        ("loopback ports", _ports),
        ("Python packages", _packages),
        ("cores", _cores),
        ("space of emulated disks", partial(_space_of_disks, scenario)),
        ("folder of runs", runs_folder),
    ]
    return [look(name, ask) for name, ask in looked]


def _engine() -> str:
    """Ask fio for its engine by which it talks to emulated disks."""
    fio = processes.require("fio", "fio")
    done = subprocess.run([fio, "--enghelp=nbd"], capture_output=True, text=True, check=False)
    if done.returncode or "uri" not in done.stdout:
        raise DiskbookError(f"{fio} has no engine 'nbd': install Debian's package fio, which has it")
    return "nbd"


def _plugin() -> str:
    with tempfile.TemporaryDirectory(prefix="diskbook-doctor-") as folder:
        disk.build_plugin(Path(folder))
    return "compiles"


def _ports() -> str:
    """Bind an address and a port as an emulator does."""
    address = f"{machine.network_of(folders.home() / 'doctor')}.1"
    try:
        port = machine.free_port(address)
    except OSError as error:
        raise DiskbookError(
            f"{error}: emulators need addresses of 127.0.0.0/8 on the loopback interface; bring it up "
            "('ip link set lo up'), or end what takes these ports"
        ) from error
    return f"{address}:{port} is free"


def _packages() -> str:
    missing = [name for name in PACKAGES if not _has(name)]
    if missing:
        raise DiskbookError(f"{', '.join(missing)} is missing: {_INSTALL}")
    return f"all {len(PACKAGES)} that a run records"


def _has(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _cores() -> str:
    count = os.cpu_count() or 1
    if count < LEAST_CORES:
        raise DiskbookError(
            f"{count} core: the tool and the disk it measures would take it from each other; give this "
            f"machine {LEAST_CORES}"
        )
    return f"{count}; replicates measured at a time: {at_once('emulator', count)}"


def _space_of_disks(scenario: Scenario) -> str:
    """Room for what is filled of the disks; they are sparse files."""
    measured = {arm.disk for arm in scenario.arm if arm.disk}
    filled = sum(layout.filled_bytes(scenario, name) for name in measured)
    needed = filled * scenario.design.replicates + SPARE_BYTES
    return room(existing(folders.home()), needed, "name another place with TMPDIR")
