"""Machines that stop, restart, move or vanish in the middle of a trial, on a real emulator with real sshd."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from diskbook.cloud.azure import private
from diskbook.cloud.azure.attach import Recovery, group_and_name
from diskbook.cloud.connect import clients_of
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import private_access
from diskbook.measure.runs import stages
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support.measuring import begin, break_fio, cut_sessions, events, held_job, hold, let_go, meanwhile

pytestmark = pytest.mark.emulator


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look after a machine sooner than one would in Azure."""
    monkeypatch.setattr(private_access, "LOOK_S", 0.2)
    monkeypatch.setattr(private_access, "LOOK_EVERY_S", 0.5)
    monkeypatch.setattr(private_access, "RECONNECT_S", 6.0)
    yield


FIRST = "r1-b01-p001-*-a1"
"""The first attempt at the first trial."""


def power(run: Run, action: str, held: str = FIRST) -> Callable[[], None]:
    """Have Azure do something to the run's machine during its first trial, which is held until then."""
    hold(run, held)

    def act() -> None:
        held_job(run, FIRST)
        do(run, action)

    return act


def do(run: Run, action: str) -> None:
    machine = run.manifest["replicates"][-1]["machines"]["vm1"]
    getattr(clients_of(run).compute.virtual_machines, action)(*group_and_name(machine["id"])).result()


def recovered(run: Run) -> list[tuple[str, str]]:
    return [(row["found"], row["done"]) for row in events(run, "recovery")]


def assert_first_trial_was_repeated(run: Run) -> None:
    lost, *others = events(run, "trial")
    assert (lost["position"], lost["attempt"], lost["status"]) == (1, 1, "failed")
    assert "ended without a status" in lost["error"]
    assert [(row["position"], row["attempt"], row["status"]) for row in others] == [
        (1, 2, "ok"),
        (2, 1, "ok"),
    ]
    table = tables.build(run).trials
    assert sorted(table.status) == ["failed", "ok", "ok"]
    assert set(table.disk_id) == {run.manifest["replicates"][-1]["disks"]["lrs"]["id"]}


def test_a_machine_that_was_switched_off_is_started_again(tiny: Run) -> None:
    with meanwhile(power(tiny, "begin_power_off")):
        stages.benchmark(tiny)
    assert recovered(tiny) == [("stopped", "started")]
    assert [row["name"] for row in events(tiny, "operation")][-1] == "start machine"
    assert_first_trial_was_repeated(tiny)


def test_a_restarted_machine_costs_the_trial_alone(tiny: Run) -> None:
    with meanwhile(power(tiny, "begin_restart")):
        stages.benchmark(tiny)
    assert_first_trial_was_repeated(tiny)


def test_an_evicted_machine_is_started_again_and_the_next_eviction_ends_the_run(tiny: Run) -> None:
    evict = power(tiny, "begin_deallocate", held="r1-b01-p001-*-a[12]")

    def again() -> None:
        evict()
        job = held_job(tiny, "r1-b01-p001-*-a2")
        do(tiny, "begin_deallocate")
        let_go(job)  # a resumed run makes this attempt

    told = "machine r1-vm1 was found deallocated again after it was started once; see who stops it"
    with meanwhile(again), pytest.raises(DiskbookError, match=told):
        stages.benchmark(tiny)
    assert recovered(tiny) == [("deallocated", "started")]
    stages.benchmark(tiny)  # a resumed run starts it once more
    assert {row["status"] for row in events(tiny, "trial", position=2)} == {"ok"}


def test_a_machine_is_looked_after_before_its_first_trial(tiny: Run, shared: dict[str, Any]) -> None:
    """A start that Azure refuses, a disk that is another one, and an address that has changed."""
    error = {"status": 409, "code": "AllocationFailed", "message": "Allocation failed."}
    match = {"method": "POST", "path_regex": "/start$"}
    do(tiny, "begin_deallocate")
    emulator = lifecycle.connect(shared["name"])
    lifecycle.plant(emulator, [{"match": match, "times": 0, "action": error}])
    try:
        with pytest.raises(DiskbookError, match=r"start machine r1-vm1: .*Allocation ?[fF]ailed"):
            stages.benchmark(tiny)
    finally:
        lifecycle.plant(emulator, [])

    replicate = tiny.manifest["replicates"][-1]
    host = private.host_of(replicate["machines"]["vm1"], tiny.folder)
    replicate["disks"]["lrs"]["unique_id"] = "another"
    with pytest.raises(DiskbookError, match="came back, but disk lrs is not the one created for this run"):
        Recovery(clients_of(tiny), tiny, replicate).handle_unreachable("vm1", host, last=False)

    rows = tiny.manifest["replicates"]
    right = dict(rows[-1]["machines"]["vm1"]["host"])
    rows[-1]["machines"]["vm1"]["host"]["port"] = 1
    tiny.update_manifest(replicates=rows)
    stages.benchmark(tiny)
    assert recovered(tiny) == [("running at another address", "found there")]
    assert tiny.manifest["replicates"][-1]["machines"]["vm1"]["host"] == right
    assert [row["status"] for row in events(tiny, "trial")] == ["ok", "ok"]


def test_a_machine_that_is_gone_is_told(shared: dict[str, Any]) -> None:
    run = begin("vanished", shared)
    stages.provision(run)
    try:
        with meanwhile(power(run, "begin_delete")), pytest.raises(DiskbookError, match="r1-vm1 is gone"):
            stages.benchmark(run)
        before = run.manifest["replicates"][-1]["disks"]["lrs"]["unique_id"]
        stages.provision(run)
        stages.benchmark(run)
        assert run.manifest["replicates"][-1]["disks"]["lrs"]["unique_id"] != before
    finally:
        stages.teardown(run)


def test_a_hung_sshd_costs_a_restart(tiny: Run) -> None:
    def hang() -> None:
        machine = held_job(tiny, FIRST).parents[2]
        listener = psutil.Process(int((machine / "sshd.pid").read_text()))
        os.kill(listener.pid, signal.SIGSTOP)
        assert cut_sessions(listener)

    hold(tiny, FIRST)
    with meanwhile(hang):
        stages.benchmark(tiny)
    assert recovered(tiny) == [("running", "restarted")]
    assert {row["status"] for row in events(tiny, "trial", position=2)} == {"ok"}


def test_a_killed_process_of_the_emulator_comes_back(tiny: Run) -> None:
    """sshd during the first trial, nbdkit during the second."""

    def kill() -> None:
        for position, program in ((1, "sshd"), (2, "nbdkit")):
            job = held_job(tiny, f"r1-b01-p00{position}-*")
            folder = lifecycle.connect(tiny.manifest["emulator"]["name"]).folder
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    line = process.cmdline()
                    if process.name() == program and any(str(folder) in word for word in line):
                        process.kill()
            (job.parents[1] / f"go-on-{position}").touch()

    held = '1) until [ -e "$HOME/go-on-{}" ]; do sleep 0.1; done ;;'
    break_fio(tiny, read=held.format(1), write=held.format(2))
    with meanwhile(kill):
        stages.benchmark(tiny)
    assert {row["position"] for row in events(tiny, "trial", status="ok")} == {1, 2}
    assert not recovered(tiny)  # fio may have failed of it, no machine has
