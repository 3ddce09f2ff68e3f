"""The machines' side of the emulator without a control plane: exports, shared disks, limits, restarts."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from diskbook.facts import paths
from diskbook_emulator.backend import LocalBackend
from diskbook_emulator.disk import build_plugin
from diskbook_emulator.model import Model
from diskbook_emulator.profile import load_profile
from diskbook_emulator.records import Book, without_nan
from diskbook_emulator.types import DiskSpec, VmSpec
from support.disturbance import load_sensitive

pytestmark = pytest.mark.emulator

DISK = DiskSpec("/disks/a", "a", "Premium_ZRS", 64, None, 1, 240, 50, False, False, "P6")


def vm(number: int) -> VmSpec:
    name = f"vm{number}"
    return VmSpec(f"/vms/{name}", name, "Standard_D4as_v4", str(number), "linux", "user", (), "")


@pytest.fixture(scope="module")
def plugin() -> Path:
    return build_plugin(paths.CACHE)


@pytest.fixture
def backends(plugin: Path) -> Iterator[Callable[[], LocalBackend]]:
    """Make backends on one state folder, one after the other as restarts do."""
    made: list[LocalBackend] = []
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name:

        def make() -> LocalBackend:
            made.append(LocalBackend(Path(name), "test", Model(load_profile("quiet"), 1), plugin))
            return made[-1]

        yield make
        for backend in made:
            backend.close()


def seen(backend: LocalBackend, number: int) -> dict[str, Any]:
    """Read what `diskbook-disks` prints on a machine."""
    (folder,) = (backend._folder / "vms").glob(f"vm{number}-*")
    text = subprocess.run([folder / "bin" / "diskbook-disks"], capture_output=True, check=True).stdout
    disks: dict[str, Any] = json.loads(text)
    return disks


def fio(uri: str, *options: str) -> dict[str, Any]:
    if shutil.which("fio") is None:
        pytest.fail("fio is missing: install the Debian package fio")
    command = ["fio", "--name=t", "--ioengine=nbd", f"--uri={uri}", "--output-format=json"]
    with tempfile.TemporaryDirectory() as cwd:
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True, cwd=cwd)
    job: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    return job


def test_a_block_moves_the_noise_of_its_machines_and_is_kept(
    backends: Callable[[], LocalBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backends()
    backend._model = replace(backend._model, profile=load_profile("azure-noise-2024"))
    monkeypatch.setattr(backend._exports, "_model", backend._model)
    for number in (1, 2):
        backend.start_vm(vm(number))
        backend.attach(f"/vms/vm{number}", 0, replace(DISK, id=f"/disks/{number}"), "None")
    before = [export._model._model.log_factor for export in backend._exports.running.values()]
    backend.begin_block(["/VMs/VM1", "/vms/gone"], 3)
    after = [export._model._model.log_factor for export in backend._exports.running.values()]
    assert after[0] != before[0] and after[1] == before[1]
    backend.stop_vm("/vms/vm1")
    backend.start_vm(vm(1))
    first, second = backend.truth()["machines"]
    assert (len(first["moves"]), len(second["moves"])) == (3, 1)
    assert [len(disk["moves"]) for disk in backend.truth()["disks"]] == [3, 3]
    backend.close()
    assert backends()._book.vms["/vms/vm1"].block == 3


def test_disks_come_and_go_by_lun(backends: Callable[[], LocalBackend]) -> None:
    backend = backends()
    backend.start_vm(vm(1))
    assert seen(backend, 1) == {}
    backend.attach("/vms/vm1", 5, DISK, "None")
    backend.attach("/vms/vm1", 5, DISK, "None")  # nothing happens twice
    assert {lun: (row["disk_id"], row["size_bytes"]) for lun, row in seen(backend, 1).items()} == {
        "5": ("/disks/a", 64 * 2**30)
    }
    with pytest.raises(RuntimeError, match="LUN 5 of /vms/vm1 holds another disk"):
        backend.attach("/vms/vm1", 5, replace(DISK, id="/disks/b"), "None")
    with pytest.raises(RuntimeError, match="/disks/a is attached"):
        backend.delete_disk("/disks/a")
    backend.detach("/vms/vm1", 5)
    assert seen(backend, 1) == {}
    backend.delete_disk("/disks/a")
    assert not list((backend._folder / "disks").glob("*"))


@pytest.mark.parametrize(("tags", "threads"), [({"diskbook-depth": "5"}, "5"), ({}, "256")])
def test_a_connection_gets_as_many_threads_as_its_run_needs(
    backends: Callable[[], LocalBackend], tags: dict[str, str], threads: str
) -> None:
    backend = backends()
    backend.start_vm(vm(1))
    backend.attach("/vms/vm1", 0, replace(DISK, tags=tags), "None")
    (export,) = backend._exports.running.values()
    command = psutil.Process(export.pid).cmdline()
    assert command[command.index("--threads") + 1] == threads


def test_a_shared_disk_has_one_content_and_one_budget(backends: Callable[[], LocalBackend]) -> None:
    backend = backends()
    shared = replace(DISK, max_shares=2)
    for number in (1, 2):
        backend.start_vm(vm(number))
        backend.attach(f"/vms/vm{number}", 0, shared, "None")
    write, read = (seen(backend, number)["0"]["prefill_uri"] for number in (1, 2))
    check = ("--bs=64k", "--size=1m", "--verify=crc32c")
    fio(write, "--rw=write", "--do_verify=0", *check)
    assert fio(read, "--rw=read", *check)["error"] == 0
    limits = {export._limits["disk_limits"] for export in backend._exports.running.values()}
    assert len(backend._exports.running) == 2
    assert len(limits) == 1


@pytest.mark.alone
def test_new_settings_are_in_force_at_once(backends: Callable[[], LocalBackend]) -> None:
    backend = backends()
    backend.start_vm(vm(1))
    small = replace(DISK, sku="PremiumV2_LRS", zone="1", tier=None, iops=3000, mb_s=125)
    backend.attach("/vms/vm1", 0, small, "None")
    uri = seen(backend, 1)["0"]["uri"]
    load = ("--rw=randread", "--bs=4k", "--size=64m", "--iodepth=64", "--time_based", "--runtime=1")
    before = fio(uri, *load)["read"]["iops"]
    backend.update_disk(replace(small, iops=300))
    after = fio(uri, *load)["read"]["iops"]
    assert after < 300 * 1.06 and before < 3000 * 1.06  # the profile's caps lie 2 % above
    with load_sensitive():
        assert after > 300 * 0.9 and before > 3000 * 0.9


def test_a_stopped_machine_keeps_its_disks_and_they_come_back(backends: Callable[[], LocalBackend]) -> None:
    backend = backends()
    first = backend.start_vm(vm(1))
    backend.attach("/vms/vm1", 0, DISK, "None")
    backend.stop_vm("/vms/vm1")
    assert not backend._exports.running
    assert backend.start_vm(vm(1)) == first
    assert fio(seen(backend, 1)["0"]["uri"], "--rw=read", "--bs=64k", "--size=256k")["error"] == 0


def test_a_disk_attached_to_a_stopped_machine_waits(backends: Callable[[], LocalBackend]) -> None:
    backend = backends()
    backend.start_vm(vm(1))
    backend.stop_vm("/vms/vm1")
    backend.attach("/vms/vm1", 0, DISK, "None")
    assert seen(backend, 1) == {}
    backend.start_vm(vm(1))
    assert list(seen(backend, 1)) == ["0"]


def test_after_a_restart_machines_and_sessions_are_known(backends: Callable[[], LocalBackend]) -> None:
    backend = backends()
    address = backend.start_vm(vm(1))
    backend.attach("/vms/vm1", 0, DISK, "None")
    fio(seen(backend, 1)["0"]["uri"], "--rw=read", "--bs=4k", "--size=40k")
    for export in backend._exports.running.values():  # as a kill does: nothing is written down
        assert export._process is not None
        export._process.kill()
        export._process.wait()
    for machine in backend._machines.values():
        machine.stop()

    again = backends()
    assert again.start_vm(vm(1)) == address
    assert seen(again, 1) == {}  # until the control plane attaches it again
    again.attach("/vms/vm1", 0, DISK, "None")
    first, second = again.truth()["attachments"]
    assert (first["sessions"][0]["reads"], second["sessions"]) == (10, [])
    assert first["detached"] is not None


def test_the_seed_gives_the_first_run_the_same_draws_and_the_next_run_others() -> None:
    def id_of(subscription: str, group: str) -> str:
        return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/disks/a"

    model, other_model = (Model(load_profile("default"), 4, Book(began=0.0).entity) for _ in range(2))
    first, second = model.disk_log(id_of("s1", "run-monday")), model.disk_log(id_of("s1", "run-tuesday"))
    assert first != second
    assert other_model.disk_log(id_of("s2", "run-friday")) == first
    assert model.disk_log(id_of("s1", "RUN-Monday")) == first


def test_deleting_a_machine_keeps_its_truth(backends: Callable[[], LocalBackend]) -> None:
    backend = backends()
    backend.start_vm(vm(2))
    backend.attach("/vms/vm2", 0, DISK, "None")
    fio(seen(backend, 2)["0"]["uri"], "--rw=write", "--bs=4k", "--size=40k")
    backend.delete_vm("/vms/vm2")
    backend.delete_disk("/disks/a")
    truth = without_nan(backend.truth())
    assert [row["machine_id"] for row in truth["machines"]] == ["/vms/vm2"]
    (attachment,) = truth["attachments"]
    assert attachment["sessions"][0]["writes"] == 10
    assert attachment["sessions"][0]["read_mean_ms"] is None
    assert not list((backend._folder / "vms").iterdir())


def test_a_kind_of_disk_the_profile_does_not_know_fails_to_attach(plugin: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name:
        backend = LocalBackend(Path(name), "test", Model(load_profile("null"), 1), plugin)
        try:
            backend.start_vm(vm(1))
            with pytest.raises(RuntimeError, match="no read latency for Standard_LRS"):
                backend.attach("/vms/vm1", 0, replace(DISK, sku="Standard_LRS"), "None")
            assert backend.truth()["attachments"] == []
        finally:
            backend.close()
