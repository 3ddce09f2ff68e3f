"""Whole emulators: started, used through the real SDK and SSH, killed, resumed, and gone without a trace."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import fields
from pathlib import Path
from typing import Any

import psutil
import pytest
from azure.core.exceptions import HttpResponseError

from diskbook.design.model import Disk
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.hosts import disks as machine_disks
from diskbook.hosts.ssh import Connection
from diskbook_emulator import folders, lifecycle, machine
from diskbook_emulator.played import TrialWindow, build_truth
from support.emulated import Azure, fio, leftovers, python, soon

pytestmark = pytest.mark.emulator

WRITE = ("rw=write", "bs=64k", "size=1m", "verify=crc32c", "do_verify=0", "prefill")
VERIFY = ("rw=read", "bs=64k", "size=1m", "verify=crc32c", "prefill")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Emulators of a test live in a folder of their own, with a short path, and are stopped with it."""
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name:
        place = Path(name)
        monkeypatch.setenv("TMPDIR", name)
        assert folders.home().parent == place  # never those of the user
        yield place
        for one in lifecycle.status():
            lifecycle.stop(one.name)
        assert not lifecycle.status()
        assert soon(lambda: not leftovers(place))  # the watchdog of a killed one looks for what is left


def test_data_written_in_one_zone_are_read_in_another_but_for_those_of_a_zonal_disk(place: Path) -> None:
    azure = Azure(lifecycle.start("zones", profile="quiet", time_scale=0.0), place / "run")
    one, two = azure.machine("vm1", "1"), azure.machine("vm2", "2")
    disk = azure.disk()
    azure.attach("vm1", disk, lun=0)
    with Connection(one) as first, Connection(two) as second:
        assert fio(first, 0, *WRITE)["write"]["io_kbytes"] == 1024
        azure.detach("vm1", disk)
        assert machine_disks.by_lun(first) == {}
        azure.attach("vm2", disk, lun=3)
        assert fio(second, 3, *VERIFY)["error"] == 0
        (device,) = machine_disks.by_lun(second).values()
        assert device.size_bytes == 64 * 2**30
        azure.detach("vm2", disk)
        zonal = azure.disk(Disk(name="lrs", sku="Premium_LRS", size_gib=64, zone="1"))
        with pytest.raises(HttpResponseError, match=r"VM zone: '2'. Disk zone: '1'"):
            azure.attach("vm2", zonal)
        assert machine_disks.by_lun(second) == {}


def test_truth_has_what_the_trials_met(place: Path) -> None:
    path = place / "planted.toml"
    path.write_text('extends = "plus2"\n[zones]\nhome = 2\n[noise]\ntrial = 0.1\nmachine = 0.2\n')
    connection = lifecycle.start("truth", profile=str(path), seed=5, time_scale=0.0)
    azure = Azure(connection, place / "run")
    host, disk = azure.machine("vm1", "1"), azure.disk()
    azure.attach("vm1", disk)
    windows, measured = [], []
    with Connection(host) as ssh:
        for number, kind in enumerate(("randread", "randwrite")):
            started = time.time()
            job = fio(ssh, 0, f"rw={kind}", "bs=4k", "size=16m", "time_based", "runtime=500ms")
            vm = f"/subscriptions/{connection.subscription_id}/resourceGroups/tests/providers/"
            vm += "Microsoft.Compute/virtualMachines/vm1"
            windows.append(TrialWindow(f"t{number}", vm, disk, started, time.time()))
            measured.append(job[kind.removeprefix("rand")]["lat_ns"]["mean"] / 1e6)
    azure.detach("vm1", disk)  # what was detached is not forgotten
    truth = build_truth(lifecycle.read_truth(connection), windows)
    read, write = truth["trials"]
    assert (read["matched"], write["matched"]) == (True, True)
    assert (read["population"]["read_mean_ms"], write["population"]["write_mean_ms"]) == (2.0, 3.06)
    assert read["reads"] > 20 and read["writes"] == 0
    # a modelled mean and what fio saw are two sides of the same I/Os; a busy machine adds to fio's, and what
    # the disk takes off for that may be more at times: 1 ms at most
    assert measured[0] > 0.7 * read["realised"]["read_mean_ms"]
    assert measured[1] > 0.7 * write["realised"]["write_mean_ms"]
    assert truth["disks"][0]["home_zone"] == "2"
    assert truth["attachments"][0]["population"]["zone_relation"] == "other-b"
    assert truth["emulator"]["seed"] == 5
    json.dumps(truth, allow_nan=False)


def test_two_emulators_run_side_by_side_and_stop_apart(place: Path) -> None:
    first = Azure(lifecycle.start("first", time_scale=0.0), place / "one")
    second = Azure(lifecycle.start("second", time_scale=0.0), place / "two")
    hosts = [azure.machine("vm", "1") for azure in (first, second)]
    assert hosts[0].address != hosts[1].address
    states = [(one.name, one.state) for one in lifecycle.status()]
    assert states == [("first", "running"), ("second", "running")]
    _names_are_checked(first.emulator)
    _secrets_are_for_the_user_alone(first.emulator)
    lifecycle.stop("first")
    with Connection(hosts[1]) as connection:
        assert connection.check("echo still here") == b"still here\n"
    assert leftovers(first.emulator.folder) == []


def test_stopping_leaves_nothing_of_a_folder_of_ones_own(place: Path) -> None:
    azure = Azure(lifecycle.start("gone", folder=place / "own", time_scale=0.0), place / "run")
    assert lifecycle.connect("gone") == azure.emulator
    host = azure.machine("vm1", "1")
    azure.attach("vm1", azure.disk())
    with Connection(host) as connection:
        connection.start_job("job", ["sleep", "600"])
    folder = azure.emulator.folder
    assert folder == place / "own"
    assert len(leftovers(folder)) >= 4  # server, sshd, nbdkit, the job
    lifecycle.stop("gone")
    assert leftovers(folder) == [] and lifecycle.status() == []
    assert not folder.exists()
    assert sorted(path.name for path in place.iterdir()) == ["run"]
    assert machine.is_free(host.address, host.port)
    assert psutil.pid_exists(azure.emulator.pid) is False


def test_an_emulator_dies_with_its_owner(place: Path) -> None:
    owner = python(
        "import time; from diskbook_emulator import lifecycle\n"
        "c = lifecycle.start('owned', time_scale=0.0, owner=True)\n"
        "print(c.folder, flush=True); time.sleep(600)"
    )
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    azure = Azure(lifecycle.connect("owned"), place / "run")
    host = azure.machine("vm1", "1")
    azure.attach("vm1", azure.disk())
    with Connection(host) as connection:
        connection.start_job("job", ["sleep", "600"])
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert soon(lambda: not folder.exists() and not leftovers(folder))
    assert lifecycle.status() == []


def test_a_killed_emulator_leaves_no_process_and_is_resumed_or_stopped(place: Path) -> None:
    azure = Azure(lifecycle.start("hurt", profile="quiet", seed=9, time_scale=0.0), place / "run")
    host, disk = azure.machine("vm1", "1"), azure.disk()
    azure.attach("vm1", disk)
    with Connection(host) as connection:
        fio(connection, 0, *WRITE)
        connection.check("echo kept >note")
        connection.start_job("job", ["sleep", "600"])
    os.kill(azure.emulator.pid, signal.SIGKILL)
    assert soon(lambda: not leftovers(azure.emulator.folder))
    assert [one.state for one in lifecycle.status()] == ["dead"]
    with pytest.raises(UsageError, match="'hurt' does not run, it was killed"):
        lifecycle.connect("hurt")

    again = lifecycle.start("hurt", time_scale=0.0)
    assert (again.endpoint, again.token, again.profile, again.seed) == (
        azure.emulator.endpoint,
        azure.emulator.token,
        "quiet",
        9,
    )
    vm = azure.clients.compute.virtual_machines.get("tests", "vm1")  # the old client goes on
    assert vm.storage_profile.data_disks[0].managed_disk.id.lower() == disk.lower()
    with Connection(host) as connection:  # same address, port and host key
        assert connection.check("cat note") == b"kept\n"
        assert fio(connection, 0, *VERIFY)["error"] == 0

    os.kill(again.pid, signal.SIGKILL)  # a dead one can be stopped
    assert soon(lambda: not folders.is_running(again.folder))
    lifecycle.stop("hurt")
    assert not again.folder.exists()


def test_state_is_kept_when_asked_and_told_when_it_is_broken(place: Path) -> None:
    azure = Azure(lifecycle.start("kept", seed=3, time_scale=0.0), place / "run")
    azure.disk()
    lifecycle.stop("kept", keep_state=True)
    assert [one.state for one in lifecycle.status()] == ["kept"]
    with pytest.raises(UsageError, match="made with seed 3"):
        lifecycle.start("kept", seed=4)
    lifecycle.start("kept", time_scale=0.0)
    assert azure.clients.compute.disks.get("tests", "disk").disk_size_gb == 64
    lifecycle.stop("kept", keep_state=True)
    (azure.emulator.folder / "backend.json").write_text("{")
    with pytest.raises(DiskbookError, match=r"backend.json: the emulator's state cannot be read"):
        lifecycle.start("kept")
    assert azure.emulator.folder.exists()  # what is left is not thrown away


def test_of_two_starts_at_once_one_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second start begins when the first has seen that no emulator of the name runs."""
    write = lifecycle._write_config
    with ThreadPoolExecutor(1) as pool:
        others: list[Future[lifecycle.Connection]] = []

        def first(*given: Any) -> None:
            monkeypatch.setattr(lifecycle, "_write_config", write)
            others.append(pool.submit(lifecycle.start, "both", time_scale=0.0))
            wait(others, 1.0)
            write(*given)

        monkeypatch.setattr(lifecycle, "_write_config", first)
        connection = lifecycle.start("both", time_scale=0.0)
        with pytest.raises(UsageError, match="'both' is running already"):
            others[0].result()
    assert lifecycle.connect("both") == connection
    assert folders.read(connection.folder / folders.CONFIG)["token"] == connection.token


def test_a_port_in_use_is_told(place: Path) -> None:
    folder = folders.home() / "port"
    with socket.socket() as taken:
        taken.bind((f"{machine.network_of(folder)}.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match=r"cannot listen on 127\..*: end what uses that port"):
            lifecycle.start("port", port=taken.getsockname()[1])
    assert lifecycle.status() == []


def test_a_missing_program_names_its_package(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(UsageError, match="nbdkit is missing; install the Debian package 'nbdkit'"):
        lifecycle.start("poor")
    assert lifecycle.status() == []


def test_a_folder_with_other_files_is_not_touched(place: Path) -> None:
    folder = place / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="is not empty and holds no emulator's state"):
        lifecycle.start("mine", folder=folder)
    assert (folder / "thesis.txt").read_text() == "precious"


def test_a_long_path_is_refused(place: Path) -> None:
    with pytest.raises(UsageError, match="longer than 90 bytes"):
        lifecycle.start("long", folder=place / ("x" * 90))


def _names_are_checked(first: lifecycle.Connection) -> None:
    with pytest.raises(UsageError, match="'first' is running already"):
        lifecycle.start("first")
    assert lifecycle.connect("first") == first  # it is not hurt
    with pytest.raises(UsageError, match="no emulator 'firs'; did you mean 'first'"):
        lifecycle.connect("firs")
    with pytest.raises(UsageError, match="no emulator profile 'defualt'; did you mean 'default'"):
        lifecycle.start("other", profile="defualt")
    with pytest.raises(UsageError, match="cannot be an emulator's name"):
        lifecycle.start("../evil")
    assert [one.name for one in lifecycle.status()] == ["first", "second"]


def _secrets_are_for_the_user_alone(connection: lifecycle.Connection) -> None:
    assert (connection.folder.stat().st_mode & 0o077, folders.home().stat().st_mode & 0o077) == (0, 0)
    for path in ("connection.json", "config.json", "tls/key.pem"):
        assert (connection.folder / path).stat().st_mode & 0o077 == 0
    assert connection.token not in repr(connection)
    home = folders.home()
    home.chmod(0o777)
    try:
        with pytest.raises(UsageError, match="is not yours alone"):
            lifecycle.connect("first")
    finally:
        home.chmod(0o700)


def test_an_emulator_of_an_earlier_version_is_known(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing about the hours between blocks; nothing of it is started here."""
    names = [field.name for field in fields(lifecycle.Connection)]
    earlier = {name: "/x" for name in names if name not in ("folder", "hours_between_blocks")}
    monkeypatch.setattr(folders, "find", lambda name: place / name)
    monkeypatch.setattr(folders, "is_running", lambda state: True)
    monkeypatch.setattr(folders, "read", lambda path: earlier)
    assert lifecycle.connect("old").hours_between_blocks == 0
