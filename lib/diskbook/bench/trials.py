"""Run the planned trials: place the disk, prefill it once, run the tool, keep its output.

A block is the unit of completion. A trial that fails is recorded with the tool's own message and tried
once more; the run goes on either way.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from diskbook.base.errors import DiskbookError
from diskbook.bench import attachment, fleets, node_counters, orphans, spacing, volumes
from diskbook.bench.rig import Rig
from diskbook.machines.cluster.steps import StepFailed
from diskbook.machines.device import Device
from diskbook.machines.jobs import JobLost
from diskbook.scenario import attachments, schedule
from diskbook.scenario.model import Arm, Scenario, Workload
from diskbook.store.run import Run, now_utc
from diskbook.tables import counters
from diskbook.tools import registry
from diskbook.tools.job import FILL_BLOCK_BYTES, Job
from diskbook.tools.protocol import Tool
from diskbook.tools.record import Measurement, UnusableError

__all__ = ["Rig", "measure", "prefill", "read", "run_job", "run_with_retry"]

ATTEMPTS = 2
PAUSE_S = 1.0  # before the next attempt: what broke one may be back in a moment
FILLS = 4  # attempts to fill a disk, with a tool that writes for a time
_COUNTERS = (counters.KIND, (counters.KIND, ".counters.json"))
START_S = 60.0  # a tool that has not ended this long after its time is taken for hung


def measure(rig: Rig, blocks: Iterable[schedule.Block]) -> None:
    """Measure blocks in order, each whole and not before it is due (`bench.spacing`).

    Raises
    ------
    DiskbookError
        When the run cannot go on (no room for results, a machine gone); finished trials are kept.
    """
    for block in blocks:
        numbered = block.numbered(rig.number)
        if not spacing.wait(rig, numbered):
            return
        if not _completed_by_orphaned_job(rig, numbered) and not _block(rig, numbered):
            return
        rig.run.append("block", replicate=rig.number, block=block.block, status="complete")


def _block(rig: Rig, block: schedule.Block) -> bool:
    """Measure a block; tell whether it was measured whole.

    Raises
    ------
    DiskbookError
        When not one of its trials succeeded: what is broken would break the others too.
    """
    _prepare(rig, block)
    used, succeeded = rig.run.trial_names(), False
    cycles = attachments.cycles(rig.scenario, block)
    rig.run.append("block", replicate=rig.number, block=block.block, status="begun")
    for trial in block.trials:
        arm = rig.scenario.arm_named(trial.arm)
        if rig.stop.is_set() or not attachment.begin(rig, arm, cycles.get(trial.position, 0)):
            return False
        # A block cut short is repeated whole; what it left keeps its names.
        first = next(number for number in range(1, 1000) if trial.name(number) not in used)
        succeeded |= _try_trial(rig, trial, first)
    if not succeeded:
        events = [event for event in rig.run.ledger() if event.get("replicate") == rig.number]
        raise DiskbookError(f"no trial of block {block.block} succeeded; the last one: {events[-1]['error']}")
    volumes.check_block(rig, block.block)
    return True


def _prepare(rig: Rig, block: schedule.Block) -> None:
    """Have volumes idle before a block, all that fleets read on them written anew, and disks filled.

    Disks are attached and filled before the first block that measures them, so that they begin it alike.
    """
    places = attachments.places_before(rig.scenario, block)
    new = [place for place in places if place[0] not in rig.prefilled]
    for disk, machine in new:
        prefill(rig, disk, machine)
    volumes.idle(rig)
    if fleets.warm_up(rig):
        volumes.idle(rig)


def _try_trial(rig: Rig, trial: schedule.PlannedTrial, first: int) -> bool:
    """Run a trial until it succeeds or has failed often enough."""
    for attempt in range(first, first + ATTEMPTS):
        if attempt > first:
            time.sleep(PAUSE_S)
        if _trial(rig, trial, attempt):
            return True
    return False


def _completed_by_orphaned_job(rig: Rig, block: schedule.Block) -> bool:
    """Record the orphaned job of a block that was cut short; tell whether the block is complete with it."""
    missing = orphans.unfinished_trials(rig.run.ledger(), block, ATTEMPTS)
    if not missing:
        return missing is not None
    planned = missing[0]
    arm, workload = rig.scenario.arm_named(planned.arm), rig.scenario.workload_named(planned.workload)
    if workload.is_fleet:
        return False  # its step answers to the client that asked, and to no other
    planned_s = workload.ramp_s + workload.runtime_s
    files = [file for file in _tool(rig, arm, workload).raw if file not in ("stdout", "stderr")]
    orphan = orphans.fetch_orphaned_job(rig, arm.machine, planned, files, planned_s)
    if orphan is None:
        return False
    times = orphan.started_utc, orphan.ended_utc
    luns = rig.luns(arm.disk, arm.machine) if arm.disk else []
    extra = {"lun": next(iter(luns), None), "adopted": True}
    return _record(rig, planned, orphan.attempt, orphan.output, None, times, extra) and len(missing) == 1


def prefill(rig: Rig, disk: str, machine: str) -> None:
    """Fill the working set of a disk once, so that reads meet written blocks; caps are lifted if emulated."""
    device = rig.device(disk, machine)
    place = {"disk": disk, "disk_id": rig.replicate["disks"][disk]["id"]}
    _prefill(rig, disk, machine, device, place)


def _prefill_volume(rig: Rig, arm: Arm) -> None:
    """Make and fill the file on a volume once, as a disk is filled."""
    place = _place(rig, arm)
    if place["disk_id"] not in rig.prefilled:
        volumes.forget(rig, arm.volume)
    _prefill(rig, place["disk_id"], arm.machine, volumes.device(rig, arm), place)


def _prefill(rig: Rig, key: str, machine: str, device: Device, place: Mapping[str, str]) -> None:
    """Fill what is known in `Rig.prefilled` by a key, unless it is filled."""
    alone = (workload for workload in rig.scenario.workload if not workload.is_fleet)
    needed = max((workload.prefill_bytes for workload in alone), default=0)
    if key in rig.prefilled or not needed:
        return
    started = time.monotonic()
    _fill(rig, machine, place["disk"] or place["volume"], device, needed)
    rig.run.append(
        "prefill",
        replicate=rig.number,
        **place,
        bytes=needed,
        caps_lifted=device.prefill_target != device.target,
        real_s=round(time.monotonic() - started, 3),
    )
    rig.prefilled.add(key)


def _device(rig: Rig, arm: Arm, load: Workload) -> Device:
    """What an arm measures, as its machine sees it, filled; fleets fill their files before each block."""
    if load.is_fleet:
        return fleets.device(rig, arm)
    if arm.volume:
        _prefill_volume(rig, arm)
        return volumes.device(rig, arm)
    prefill(rig, arm.disk, arm.machine)
    return rig.device(arm.disk, arm.machine)


def _place(rig: Rig, arm: Arm) -> dict[str, str]:
    """How the ledger names what an arm measures."""
    if arm.volume:
        return volumes.ledger_place(rig, arm.volume)
    return {"disk": arm.disk, "disk_id": rig.replicate["disks"][arm.disk]["id"]}


def _fill(rig: Rig, machine: str, disk: str, device: Device, needed: int) -> None:
    """Have the machine's usual tool write until it says that all of it is written."""
    tool, what = registry.TOOLS[rig.scenario.machine_named(machine).tools[0]], f"prefill of {disk}"
    job, written = tool.prefill(needed, device.for_prefill), None
    for attempt in range(1, FILLS + 1):
        if job is None:
            return
        name = f"prefill-{disk}-{rig.number}-{attempt}"
        written = read(tool, run_with_retry(rig, machine, name, device, job, job.limit_s or START_S), what)
        job = tool.prefill(needed, device.for_prefill, written)
    if job is not None and written is not None:
        done = written.directions["write"].ios * FILL_BLOCK_BYTES
        raise DiskbookError(f"{what}: {done:.0f} of {needed} bytes were written in {FILLS} attempts")


def _trial(rig: Rig, planned: schedule.PlannedTrial, attempt: int) -> bool:
    """Run one trial and record it. Returns whether it succeeded."""
    arm = rig.scenario.arm_named(planned.arm)
    workload = rig.scenario.workload_named(planned.workload)
    output, lost = {}, None
    device = _device(rig, arm, workload)
    job = _tool(rig, arm, workload).command(workload, device, seed=_tool_seed(rig.scenario, planned))
    times_utc = now_utc(), now_utc()
    try:
        totals = _before(rig, arm)
        started_utc = now_utc()
        output = _run_tool(rig, arm, workload, planned.name(attempt), device, job)
        times_utc = started_utc, now_utc()
        output |= _after(rig, arm, totals)
    except (JobLost, StepFailed) as failure:
        lost = str(failure)
        times_utc = times_utc[0], now_utc()
    volumes.settle(rig, arm, workload.write_pct)
    extra = {"lun": device.lun, **({"notes": list(job.notes)} if job.notes else {})}
    succeeded = _record(rig, planned, attempt, output, lost, times_utc, extra)
    if not succeeded:
        _forget(rig, arm)
    return succeeded


def _before(rig: Rig, arm: Arm) -> dict[str, Any] | None:
    """Have volumes at rest, owned by the nodes that the arm wants; return what nodes have counted so far."""
    volumes.await_settled(rig)
    if arm.volume:
        volumes.place(rig, arm)
    return node_counters.before(rig, arm)


def _after(rig: Rig, arm: Arm, totals: dict[str, Any] | None) -> dict[str, bytes]:
    """Return the raw file of what the nodes counted before and after a trial, where they did."""
    document = node_counters.after(rig, arm, totals)
    return {} if document is None else {counters.KIND: document}


def _forget(rig: Rig, arm: Arm) -> None:
    """Look again where a disk is, or who owns a volume, before it is used next."""
    if arm.volume:
        volumes.forget(rig, arm.volume)
    else:
        rig.forget(arm.disk)


def _record(
    rig: Rig,
    planned: schedule.PlannedTrial,
    attempt: int,
    output: dict[str, bytes],
    lost: str | None,
    times_utc: tuple[str, str],
    extra: Mapping[str, Any] | None = None,
) -> bool:
    """Keep the raw files of a trial and write its line of the ledger. Returns whether it succeeded."""
    arm = rig.scenario.arm_named(planned.arm)
    workload = rig.scenario.workload_named(planned.workload)
    name, tool = planned.name(attempt), _tool(rig, arm, workload)
    files = _keep(rig.run, name, output, tool)
    seen, error = (None, lost) if lost else _measured(tool, output, name, workload)
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
        started_utc=times_utc[0],
        ended_utc=times_utc[1],
        machine=arm.machine,
        machine_id=rig.replicate["machines"][arm.machine]["id"],
        **_place(rig, arm),
        **({"owner": volumes.owner_for(rig, arm)} if arm.volume else {}),
        tool=tool.name,
        files=files,
        **{"lun": None, **(extra or {})},
    )
    return error is None


def _measured(
    tool: Tool, output: Mapping[str, bytes], name: str, workload: Workload
) -> tuple[str | None, str | None]:
    """What the tool measured as text, or its own message where the output is not usable."""
    limits = {
        "runtime_s": workload.runtime_s,
        "series_s": workload.series_s,
        "instances": workload.instances,
    }
    try:
        return _seen(read(tool, output, f"{name}.{tool.main}", **limits)), None
    except UnusableError as failure:
        return None, str(failure)


def _run_tool(
    rig: Rig, arm: Arm, workload: Workload, name: str, device: Device, job: Job
) -> dict[str, bytes]:
    planned_s = workload.ramp_s + workload.runtime_s
    if workload.is_fleet:
        return fleets.run(rig, arm, workload, name, job, limit_s=planned_s + START_S)
    return run_job(rig, arm.machine, name, device, job, planned_s, planned_s + START_S)


def run_job(
    rig: Rig, machine: str, name: str, device: Device, job: Job, expected_s: float, limit_s: float
) -> dict[str, bytes]:
    """Run a tool as a detached job and return its files: `stdout`, `stderr`, `status` and its logs."""
    connection = rig.connection(machine)
    connection.start_job(name, list(job.argv), root=device.needs_root)
    return connection.finish_job(name, job.logs.values(), expected_s=expected_s, limit_s=limit_s)


def run_with_retry(
    rig: Rig, machine: str, name: str, device: Device, job: Job, limit_s: float
) -> dict[str, bytes]:
    """Run a tool as `run_job` does, once more where the machine was restarted under it."""
    try:
        return run_job(rig, machine, name, device, job, 0, limit_s)
    except JobLost:
        return run_job(rig, machine, f"{name}-again", device, job, 0, limit_s)


def _keep(run: Run, name: str, output: dict[str, bytes], tool: Tool) -> dict[str, dict[str, str]]:
    """Write a trial's raw files."""
    return {
        kind: run.write_raw(f"{name}{ending}", output[file])
        for file, (kind, ending) in (*tool.raw.items(), _COUNTERS)
        if output.get(file)
    }


def _tool(rig: Rig, arm: Arm, workload: Workload) -> Tool:
    """Tool that an arm is measured with."""
    return registry.TOOLS[rig.scenario.tool_of(arm, workload)]


def read(tool: Tool, output: Mapping[str, bytes], source: str, **limits: Any) -> Measurement:
    """Read what a job left, as `Tool.read` does; raises UnusableError with the tool's own message."""
    files = {kind: output.get(file, b"") for file, (kind, _) in tool.raw.items()}
    return tool.read(files, source, **limits)


def _seen(result: Measurement) -> str:
    """Say what the tool measured, for progress lines."""
    parts = []
    for name, part in result.directions.items():
        latency = [] if math.isnan(part.lat_mean_ms) else [f"{part.lat_mean_ms:.3g} ms"]
        rate = [] if name == "sync" else [f"{part.iops:,.0f} IOPS"]
        parts.append(f"{name} {', '.join(latency + rate)}")
    return "; ".join(parts)


def _tool_seed(scenario: Scenario, planned: schedule.PlannedTrial) -> int:
    """Seed of the tool's own random offsets: the same blocks for all arms of a block and repeat."""
    return (scenario.design.seed * 1_000_003 + planned.block * 101 + planned.repeat) % (2**31)
