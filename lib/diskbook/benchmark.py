"""Run the planned trials: place the disk, prefill it once, run the tool, keep what it says.

A block is the unit of completion. A trial that fails is recorded with the tool's own message and tried
once more; the run goes on either way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from diskbook import design, devices
from diskbook.azure.attach import Attachments
from diskbook.azure.clients import Clients
from diskbook.azure.keys import run_key
from diskbook.devices import Device
from diskbook.hosts import Connection, Host, JobLost
from diskbook.run import Run, now_utc
from diskbook.scenario import Arm, Scenario, Workload
from diskbook.tools import fio

GIB = 1024**3
ATTEMPTS = 2
START_S = 60.0  # a tool that has not ended this long after its time is taken for hung


@dataclass
class Rig:
    """Connections and attachments of one replicate while it is measured."""

    run: Run
    scenario: Scenario
    replicate: dict[str, Any]
    attachments: Attachments
    stop: threading.Event = field(default_factory=threading.Event)  # set when another replicate has failed
    connections: dict[str, Connection] = field(default_factory=dict)
    prefilled: set[str] = field(default_factory=set)
    _placed: dict[str, tuple[str, Device]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, clients: Clients, run: Run, scenario: Scenario, replicate: dict[str, Any], stop: threading.Event
    ) -> Rig:
        """Set up for a replicate of the manifest; connects when first needed."""
        names = {row["id"]: name for name, row in replicate["disks"].items()}
        events = [event for event in run.ledger() if event["event"] == "prefill"]
        filled = {names[event["disk_id"]] for event in events if event["disk_id"] in names}
        return cls(run, scenario, replicate, Attachments(clients, run, replicate), stop, prefilled=filled)

    @property
    def number(self) -> int:
        """Number of the replicate."""
        return self.replicate["replicate"]

    def connection(self, machine: str) -> Connection:
        """Return the connection to a machine, by scenario name; what a killed run left there is ended."""
        if machine not in self.connections:
            host = Host(**self.replicate["machines"][machine]["host"], private_key=run_key(self.run.folder))
            self.connections[machine] = Connection(host)
            self.connections[machine].end_jobs()
        return self.connections[machine]

    def device(self, disk: str, machine: str) -> Device:
        """Have the disk on the machine and return it as the machine sees it."""
        if self._placed.get(disk, ("", None))[0] != machine:
            spec = self.scenario.disk_named(disk)
            lun = self.attachments.move(spec, machine)
            device = devices.at_lun(self.connection(machine), lun, size_bytes=spec.size_gib * GIB)
            self._placed[disk] = (machine, device)
        return self._placed[disk][1]

    def forget(self, disk: str) -> None:
        """Look again where the disk is before it is used next."""
        self._placed.pop(disk, None)

    def close(self) -> None:
        """Close all connections."""
        for connection in self.connections.values():
            connection.close()


def measure(rig: Rig, blocks: Iterable[design.Block]) -> None:
    """Measure blocks in order, each whole.

    Raises
    ------
    DiskbookError
        When the run cannot go on (no room for results, a machine gone); finished trials are kept.
    """
    used = rig.run.trial_names()
    for block in blocks:
        rig.run.append("block", replicate=rig.number, block=block.block, status="begun")
        for trial in block.numbered(rig.number).trials:
            if rig.stop.is_set():
                return
            # A block cut short is repeated whole; what it left keeps its names.
            first = next(number for number in range(1, 1000) if trial.name(number) not in used)
            any(_trial(rig, trial, attempt) for attempt in range(first, first + ATTEMPTS))
        rig.run.append("block", replicate=rig.number, block=block.block, status="complete")


def prefill(rig: Rig, disk: str, machine: str) -> None:
    """Fill the working set of a disk once, so that reads meet written blocks; caps are lifted if emulated."""
    needed = max(workload.working_set_bytes for workload in rig.scenario.workload)
    if disk in rig.prefilled:
        return
    device = rig.device(disk, machine)
    job = fio.prefill_command(needed, device.for_prefill)
    started = time.monotonic()
    # 50 MB/s is a slow disk; ten minutes more than that takes is a broken one.
    output = run_job(rig, machine, f"prefill-{disk}-{rig.number}", device, job, 0, needed / 50e6 + 600)
    parse(output, f"prefill of {disk}")
    rig.run.append(
        "prefill",
        replicate=rig.number,
        disk=disk,
        disk_id=rig.replicate["disks"][disk]["id"],
        bytes=needed,
        caps_lifted=device.prefill_target != device.target,
        real_s=round(time.monotonic() - started, 3),
    )
    rig.prefilled.add(disk)


def _trial(rig: Rig, planned: design.PlannedTrial, attempt: int) -> bool:
    """Run one trial and record it. Returns whether it succeeded."""
    arm = rig.scenario.arm_named(planned.arm)
    workload = rig.scenario.workload_named(planned.workload)
    prefill(rig, arm.disk, arm.machine)
    name, error, seen, files = planned.name(attempt), None, None, {}
    device = rig.device(arm.disk, arm.machine)
    started_utc = now_utc()
    try:
        output = _run_tool(rig, arm, workload, name, device, seed=_tool_seed(rig.scenario, planned))
        files = _keep(rig.run, name, output)
        seen = _seen(parse(output, f"{name}.json", runtime_s=workload.runtime_s))
    except (JobLost, fio.FioError) as failure:
        error = str(failure)
        rig.forget(arm.disk)
    rig.run.append(
        "trial",
        trial=name,
        replicate=rig.number,
        block=planned.block,
        repeat=planned.repeat,
        position=planned.position,
        arm=arm.name,
        workload=workload.name,
        attempt=attempt,
        status="failed" if error else "ok",
        error=error,
        seen=seen,
        started_utc=started_utc,
        ended_utc=now_utc(),
        machine=arm.machine,
        machine_id=rig.replicate["machines"][arm.machine]["id"],
        disk=arm.disk,
        disk_id=rig.replicate["disks"][arm.disk]["id"],
        files=files,
    )
    return error is None


def _run_tool(
    rig: Rig, arm: Arm, workload: Workload, name: str, device: Device, *, seed: int
) -> dict[str, bytes]:
    job = fio.command(workload, device, seed=seed)
    planned_s = workload.ramp_s + workload.runtime_s
    return run_job(rig, arm.machine, name, device, job, planned_s, planned_s + START_S)


def run_job(
    rig: Rig, machine: str, name: str, device: Device, job: fio.Job, expected_s: float, limit_s: float
) -> dict[str, bytes]:
    """Run a tool as a detached job and return its files: `stdout`, `stderr`, `status` and its logs."""
    connection = rig.connection(machine)
    connection.start_job(name, list(job.argv), root=device.needs_root)
    return connection.finish_job(name, job.logs.values(), expected_s=expected_s, limit_s=limit_s)


def _keep(run: Run, name: str, output: dict[str, bytes]) -> dict[str, dict[str, str]]:
    """Write a trial's raw files."""
    raw_names = {"stdout": ("json", f"{name}.json"), "stderr": ("err", f"{name}.txt")}
    raw_names |= {f"trial_{kind}.log": (f"{kind}_log", f"{name}_{kind}.log") for kind in ("lat", "iops")}
    return {
        kind: run.write_raw(raw_name, output[file])
        for file, (kind, raw_name) in raw_names.items()
        if output.get(file)
    }


def parse(output: dict[str, bytes], source: str, runtime_s: float | None = None) -> fio.FioResult:
    """Read what a job left; raises FioError with the tool's own message."""
    text = {name: content.decode("utf-8", "replace") for name, content in output.items()}
    return fio.parse(text.get("stdout", ""), source, messages=text.get("stderr", ""), runtime_s=runtime_s)


def _seen(result: fio.FioResult) -> str:
    """Say what the tool measured, for progress lines."""
    parts = [
        f"{name} {part.lat_mean_ms:.3g} ms" + ("" if name == "sync" else f", {part.iops:,.0f} IOPS")
        for name, part in result.directions.items()
    ]
    return "; ".join(parts)


def _tool_seed(scenario: Scenario, planned: design.PlannedTrial) -> int:
    """Seed of the tool's own random offsets: the same blocks for all arms of a block and repeat."""
    return (scenario.design.seed * 1_000_003 + planned.block * 101 + planned.repeat) % (2**31)
