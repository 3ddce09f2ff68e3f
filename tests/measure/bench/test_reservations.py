"""Persistent reservations: enforced by the emulated disk with real fio; shown by the scenario's check."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diskbook.facts import paths
from diskbook_emulator.backend import LocalBackend
from diskbook_emulator.disk import build_plugin
from diskbook_emulator.model import Model
from diskbook_emulator.profile import load_profile
from diskbook_emulator.types import DiskSpec, VmSpec

pytestmark = pytest.mark.emulator

SHARED = DiskSpec("/disks/a", "a", "Premium_ZRS", 64, None, 2, 240, 50, False, False, "P6")
TYPE = "--prout-type=5"


@pytest.fixture(scope="module")
def machines() -> Iterator[LocalBackend]:
    """Two machines."""
    plugin = build_plugin(paths.CACHE)
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name:
        backend = LocalBackend(Path(name), "test", Model(load_profile("quiet"), 1), plugin)
        for number in (1, 2):
            backend.start_vm(vm(number))
        yield backend
        backend.close()


@pytest.fixture
def two(machines: LocalBackend) -> LocalBackend:
    """The machines with a new shared disk attached to both."""
    for number in (1, 2):
        machines.detach(f"/vms/vm{number}", 0)
    machines.delete_disk(SHARED.id)
    for number in (1, 2):
        machines.attach(f"/vms/vm{number}", 0, SHARED, "None")
    return machines


def vm(number: int) -> VmSpec:
    name = f"vm{number}"
    return VmSpec(f"/vms/{name}", name, "Standard_D4as_v4", str(number), "linux", "user", (), "")


def on(backend: LocalBackend, number: int) -> tuple[Path, str]:
    """A machine's programs, and the URI of its disk."""
    (folder,) = (backend._folder / "vms").glob(f"vm{number}-*")
    disks: dict[str, Any] = json.loads((folder / "disks.json").read_text())
    return folder / "bin", disks["0"]["uri"]


def sg_persist(backend: LocalBackend, number: int, *options: str) -> tuple[int, str]:
    """Call sg_persist on a machine; its exit status and what it printed."""
    programs, uri = on(backend, number)
    command = [programs / "sg_persist", "--no-inquiry", *options, uri]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def out(backend: LocalBackend, number: int, *options: str) -> int:
    """Change the reservations; the exit status."""
    return sg_persist(backend, number, "--out", *options)[0]


def write(backend: LocalBackend, number: int, pattern: str = "0x11") -> int:
    """Write with fio from a machine; the number of fio's error."""
    return fio(backend, number, "--rw=write", f"--buffer_pattern={pattern}")


def fio(backend: LocalBackend, number: int, *options: str) -> int:
    command = ["fio", "--output-format=json", "--name=t", "--ioengine=nbd", f"--uri={on(backend, number)[1]}"]
    load = ["--bs=4k", "--size=64k", "--iodepth=4", *options]
    done = subprocess.run([*command, *load], capture_output=True, text=True, check=False)
    return int(json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["error"])


def test_only_who_is_registered_writes_under_a_reservation(two: LocalBackend) -> None:
    assert write(two, 2) == 0
    assert out(two, 1, "--register", "--param-sark=0xa1") == 0
    assert write(two, 2) == 0  # a registration alone keeps nobody out
    assert out(two, 1, "--reserve", "--param-rk=0xa1", TYPE) == 0
    assert write(two, 2, "0x99") == 1  # EPERM
    assert fio(two, 2, "--rw=read", "--verify=pattern", "--verify_pattern=0x11", "--verify_fatal=1") == 0
    assert write(two, 1, "0x22") == 0
    assert out(two, 2, "--register", "--param-sark=0xb2") == 0
    assert write(two, 2, "0x33") == 0
    assert out(two, 1, "--release", "--param-rk=0xa1", TYPE) == 0


def test_preempting_takes_the_reservation_and_fences_the_other(two: LocalBackend) -> None:
    out(two, 1, "--register", "--param-sark=0xa1")
    out(two, 1, "--reserve", "--param-rk=0xa1", TYPE)
    out(two, 2, "--register", "--param-sark=0xb2")
    preempt = ("--preempt", "--param-rk=0xb2", "--param-sark=0xa1", TYPE)
    assert out(two, 2, *preempt) == 0
    assert sg_persist(two, 1, "--in", "--read-keys")[1].split()[-1] == "0xb2"
    assert "Key=0xb2" in sg_persist(two, 1, "--in", "--read-reservation")[1]
    assert write(two, 1) == 1
    assert write(two, 2) == 0
    assert out(two, 2, *preempt) == 24  # there is nobody left to preempt
    assert out(two, 2, "--clear", "--param-rk=0xb2") == 0
    assert "NO registered reservation keys" in sg_persist(two, 1, "--in", "--read-keys")[1]
    assert "NO reservation held" in sg_persist(two, 1, "--in", "--read-reservation")[1]
    assert write(two, 1) == 0


def test_a_machine_without_that_key_changes_nothing(two: LocalBackend) -> None:
    out(two, 1, "--register", "--param-sark=0xa1")
    out(two, 1, "--reserve", "--param-rk=0xa1", TYPE)
    before = sg_persist(two, 1, "--in", "--read-keys"), sg_persist(two, 1, "--in", "--read-reservation")
    for options in (
        ("--register", "--param-rk=0xff", "--param-sark=0xb2"),
        ("--reserve", "--param-rk=0xb2", TYPE),
        ("--preempt", "--param-rk=0xb2", "--param-sark=0xa1", TYPE),
        ("--clear", "--param-rk=0xa1"),
    ):
        assert out(two, 2, *options) == 24
        after = sg_persist(two, 1, "--in", "--read-keys"), sg_persist(two, 1, "--in", "--read-reservation")
        assert after == before


def test_a_second_reservation_is_a_conflict_and_another_type_is_not_emulated(two: LocalBackend) -> None:
    out(two, 1, "--register", "--param-sark=0xa1")
    out(two, 2, "--register", "--param-sark=0xb2")
    assert out(two, 1, "--reserve", "--param-rk=0xa1", TYPE) == 0
    assert out(two, 1, "--reserve", "--param-rk=0xa1", TYPE) == 0
    assert out(two, 2, "--reserve", "--param-rk=0xb2", TYPE) == 24
    assert out(two, 1, "--reserve", "--param-rk=0xa1", "--prout-type=1") == 9


def test_a_reservation_outlasts_a_machine_that_is_off_but_not_its_attachment(two: LocalBackend) -> None:
    out(two, 1, "--register", "--param-sark=0xa1")
    out(two, 1, "--reserve", "--param-rk=0xa1", TYPE)
    two.stop_vm("/vms/vm1")
    assert write(two, 2) == 1
    two.start_vm(vm(1))
    assert write(two, 1) == 0  # registered still
    two.detach("/vms/vm1", 0)
    assert write(two, 2) == 0
    assert "NO registered" in sg_persist(two, 2, "--in", "--read-keys")[1]


def test_a_new_disk_knows_nothing_of_an_old_one(two: LocalBackend) -> None:
    out(two, 1, "--register", "--param-sark=0xa1")
    for number in (1, 2):
        two.detach(f"/vms/vm{number}", 0)
    two.delete_disk(SHARED.id)
    assert not list((two._folder / "reservations").iterdir())
    two.attach("/vms/vm1", 0, replace(SHARED, unique_id="other"), "None")
    assert "NO registered" in sg_persist(two, 1, "--in", "--read-keys")[1]


def test_a_device_that_is_not_there_is_said(two: LocalBackend) -> None:
    programs, _ = on(two, 1)
    done = subprocess.run([programs / "sg_persist", "/dev/sdz"], capture_output=True, text=True, check=False)
    assert done.returncode == 15
    assert "No such file" in done.stderr
