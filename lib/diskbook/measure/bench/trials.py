"""Run the planned trials: attach the disk, wait where planned, run the tool, keep its output.

A block is the unit of completion. A trial that fails is recorded with the tool's own message and tried once
more; the run goes on either way.

Blocks of a replicate can be spread over hours (`design.spread`).

What sets a disk's latency wanders over hours; blocks of one hour share it, and their interval misses the
lasting ratio (`diskbook.design.vocabulary.in_these_hours`).

The ledger keeps facts of each machine once per placement, and its busy cores with each trial.

Disks are attached again before the visits of an arm, as often as planned, and left to settle.

Which visits these are is planned for all disks of a comparison alike (`scenario.attachments`). A disk is
filled before that, so that nothing lies between the attach and the trial of one arm alone. A trial that is
tried again meets its disk as it is, attached since before the first attempt; a block that is repeated whole
has all its cycles again. On Azure an attach belongs to the control plane: it costs time, and no burst
credit.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from diskbook.cloud.azure import expiry
from diskbook.design import attachments, schedule
from diskbook.design.model import Arm, Scenario, Workload
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import span
from diskbook.hosts import guest
from diskbook.hosts.device import Device
from diskbook.hosts.jobs import JobLost, StepFailed
from diskbook.hosts.ssh import Connection
from diskbook.measure.bench import steps
from diskbook.measure.bench.rig import Rig, read_job
from diskbook.measure.bench.steps import NoRoomError, prefill
from diskbook.results.run import now_utc
from diskbook.tools import registry
from diskbook.tools.protocol import Job, Tool
from diskbook.tools.record import Measurement, UnusableError


def place_disks(rig: Rig, places: Sequence[tuple[str, str]]) -> None:
    """Have each disk that moves between placements on the machines of the next block, and on no others.

    A shared disk is first detached where it is not wanted, so that no attach chooses which machine loses it.
    """
    for disk in sorted(attachments.moved_between(rig.scenario)):
        machines = [machine for name, machine in places if name == disk]
        for machine, _ in rig.attachments.where(disk) if machines else ():
            if machine not in machines:
                rig.attachments.detach(disk, machine)
                rig.forget(disk)
        for machine in machines:
            rig.device(disk, machine)


def reattach(rig: Rig, arm: Arm, times: int, *, early: bool = False) -> bool:
    """Attach the arm's disk again so many times, and let it settle; tell whether its trial may begin.

    Of several cycles only the last one ends with the proof that the disk is ours, before anything is written.
    A trial that is `early` does not wait. It may not begin where the run is to stop.
    """
    for _ in range(times):
        rig.renew(arm.disk, arm.machine)
    settle_s = rig.scenario.design.settle_s * rig.time_scale
    if arm.volume or not (times or settle_s):
        return True
    rig.device(arm.disk, arm.machine)
    return early or _settled(rig, arm, settle_s)


def _settled(rig: Rig, arm: Arm, settle_s: float) -> bool:
    """Wait until the last attach is `design.settle_s` ago; on the emulator its time scale shortens that."""
    attached = rig.attached_at(arm.disk, arm.machine)
    left_s = 0.0 if attached is None else attached + settle_s - time.monotonic()
    if left_s <= 0:
        return True
    stopped = rig.stop.wait(left_s)
    rig.run.append(
        "settled",
        replicate=rig.number,
        disk=arm.disk,
        machine=arm.machine,
        settle_s=rig.scenario.design.settle_s,
        real_s=round(left_s, 3),
    )
    return not stopped


LOOK_AGAIN_S = 30.0
"""A wait is by the clock on the wall, so that it is no longer where this computer slept in between."""


def wait_between_blocks(rig: Rig, block: schedule.Block) -> bool:
    """Wait until a block is due; tell whether it may begin, which it may not where the run is to stop.

    It is due so many hours after the replicate's last block of another round began, whichever session that
    was in; on the emulator its time scale shortens them. Without placements each block is a round.

    Raises DiskbookError when the machines will have shut down by then.
    """
    due = _due(rig, block)
    if due is None or _left_s(due) <= 0:
        return True
    expiry.check_stands_at(rig.run, rig.replicate["resource_group"], due)
    rig.run.append("notice", text=_words(rig, block, due))
    while (left_s := _left_s(due)) > 0:
        if rig.stop.wait(min(left_s, LOOK_AGAIN_S)):
            return False
    return True


def _due(rig: Rig, block: schedule.Block) -> datetime | None:
    hours = rig.scenario.gap_h
    begun = [
        event["time_utc"]
        for event in rig.run.ledger()
        if event["event"] == "block"
        and (event["replicate"], event["status"]) == (rig.number, "begun")
        and event.get("round", event["block"]) != block.round
    ]
    if not hours or not begun:
        return None
    return datetime.fromisoformat(max(begun)) + timedelta(hours=hours) * rig.time_scale


def _left_s(due: datetime) -> float:
    return (due - datetime.now(UTC)).total_seconds()


def _words(rig: Rig, block: schedule.Block, due: datetime) -> str:
    hours = rig.scenario.gap_h
    scaled = (
        "" if rig.time_scale == 1 else f", {hours * rig.time_scale * 3600:.0f} s as the emulator plays them"
    )
    return (
        f"replicate {rig.number} waits {span(_left_s(due))}: block {block.block} begins at "
        f"{due:%Y-%m-%d %H:%M:%S} UTC (blocks are {hours:g} h apart{scaled})"
    )


def record_guest(rig: Rig, arm: Arm, load: Workload, device: Device, disk_id: str) -> None:
    """Record in the ledger what an arm's machine and device are; it holds for the trials after that line.

    The machine is asked where that may have changed: at first use, after the disk was reattached, and on a
    new connection. One that does not say leaves its sentence in `error`: nothing measured rests on it.
    """
    connection: Connection = rig.windows(arm.machine) if load.is_fleet else rig.connection(arm.machine)
    key = (arm.machine, disk_id)
    asked = rig.guests.get(key)
    # A device is made again when its disk is placed again; that of a volume is equal each time.
    if asked and asked[0] is connection and (asked[1] is device or (arm.volume and asked[1] == device)):
        return
    answer = _ask(connection, device)
    if not asked or asked[2] != answer:
        rig.run.append("guest", replicate=rig.number, machine=arm.machine, disk_id=disk_id, **answer)
    rig.guests[key] = (connection, device, answer)


def _ask(connection: Connection, device: Device) -> dict[str, Any]:
    try:
        return {"engine": device.engine, "facts": guest.facts(connection, device)}
    except (DiskbookError, ValueError, TypeError) as error:
        return {"engine": device.engine, "facts": {}, "error": str(error)}


def cpu_usage(output: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a trial's entry of how busy its machine was; empty where the job does not tell."""
    known = guest.usage(output)
    return {} if known is None else {"guest": known}


ATTEMPTS = 2
PAUSE_S = 1.0  # before the next attempt: what broke one may be back in a moment


def measure(rig: Rig, blocks: Iterable[schedule.Block]) -> None:
    """Measure blocks in order, each whole and not before it is due (`bench.spacing`); evidence is so at once.

    Raises DiskbookError when the run cannot go on (no room for results, a machine gone); finished trials are
    kept.
    """
    for block in blocks:
        numbered = block.numbered(rig.number)
        if not block.evidence and not wait_between_blocks(rig, numbered):
            return
        if not _completed_by_orphaned_job(rig, numbered) and not _block(rig, numbered):
            return
        rig.run.append("block", replicate=rig.number, block=block.block, status="complete")


def _block(rig: Rig, block: schedule.Block) -> bool:
    """Measure a block; tell whether it was measured whole.

    Raises DiskbookError when not one of its trials succeeded: what is broken would break the others too.
    Evidence is done without then: nothing that is compared needs it.
    """
    _prepare(rig, block)
    used, succeeded = rig.run.trial_names(), False
    cycles = {} if block.evidence else attachments.cycles(rig.scenario, block)
    rig.run.append("block", replicate=rig.number, block=block.block, round=block.round, status="begun")
    for trial in block.trials:
        arm = rig.scenario.arm_named(trial.arm)
        times = cycles.get(trial.position, 0)
        if rig.stop.is_set() or not reattach(rig, arm, times, early=trial.early):
            return False
        # A block cut short is repeated whole; what it left keeps its names.
        first = next(number for number in range(1, 1000) if trial.name(number) not in used)
        succeeded |= _try_trial(rig, trial, first)
    if block.evidence:
        return True
    if not succeeded:
        events = [event for event in rig.run.ledger() if event.get("replicate") == rig.number]
        raise DiskbookError(f"no trial of block {block.block} succeeded; the last one: {events[-1]['error']}")
    steps.of(rig.scenario).check(rig, block)
    return True


def _prepare(rig: Rig, block: schedule.Block) -> None:
    """Have disks attached and filled before a block, and all at rest that the scenario has beside them.

    Disks are attached and filled before the first block that measures them, so that they begin it alike; one
    that moves between placements is attached before each block (`place_disks`)."""
    places = attachments.places_before(rig.scenario, block)
    lacking = [place for place in places if not steps.is_done(rig, place[0])]
    if not block.evidence:
        place_disks(rig, places)
    for disk, machine in lacking:
        prefill(rig, disk, machine)
    steps.of(rig.scenario).prepare(rig, block)


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
    missing = steps.unfinished_trials(rig.run.ledger(), block, ATTEMPTS)
    if not missing:
        return missing is not None
    planned = missing[0]
    arm, workload = rig.scenario.arm_named(planned.arm), schedule.offered(rig.scenario, planned)
    tool, planned_s = _tool(rig, arm, workload), workload.ramp_s + workload.runtime_s
    if tool.fleet:
        return False  # its step answers to the client that asked, and to no other
    files = [file for file in tool.raw if file not in ("stdout", "stderr")]
    orphan = steps.fetch_orphaned_job(rig, arm.machine, planned, files, planned_s)
    if orphan is None:
        return False
    times = orphan.started_utc, orphan.ended_utc
    luns = rig.luns(arm.disk, arm.machine) if arm.disk else []
    extra = {"lun": next(iter(luns), None), "adopted": True, **cpu_usage(orphan.output)}
    return _record(rig, planned, orphan.attempt, orphan.output, None, times, extra) and len(missing) == 1


def _trial(rig: Rig, planned: schedule.PlannedTrial, attempt: int) -> bool:
    """Run one trial and record it. Returns whether it succeeded."""
    arm = rig.scenario.arm_named(planned.arm)
    workload = schedule.offered(rig.scenario, planned)
    output: dict[str, bytes] = {}
    lost, around = None, steps.of(rig.scenario)
    device = around.device(rig, arm, workload)
    job, times_utc = Job(()), (now_utc(), now_utc())
    try:
        steps.cache(rig, arm, workload, planned.name(attempt))
        device = around.device(rig, arm, workload)  # a cold one has been attached again
        record_guest(rig, arm, workload, device, around.place(rig, arm)["disk_id"])
        seed, offset = _tool_seed(rig.scenario, planned), steps.region(rig, planned, attempt)
        job = _tool(rig, arm, workload).command(workload, device, seed=seed, offset=offset)
        begun, started_utc = around.before(rig, arm), now_utc()
        output = around.run(rig, arm, workload, planned.name(attempt), device, job)
        times_utc = started_utc, now_utc()
        output |= around.after(rig, arm, begun)
    except (JobLost, NoRoomError, StepFailed) as failure:
        lost = str(failure)
        times_utc = times_utc[0], now_utc()
    around.settle(rig, arm, workload)
    extra = {"lun": device.lun, **_of_job(job), **cpu_usage(output)}
    succeeded = _record(rig, planned, attempt, output, lost, times_utc, extra)
    if not succeeded:
        around.forget(rig, arm)
    return succeeded


def _of_job(job: Job) -> dict[str, Any]:
    """What the ledger keeps of a tool's call: where it does other than asked, and what it writes."""
    notes: dict[str, Any] = {"notes": list(job.notes)} if job.notes else {}
    return notes | ({"content": job.content} if job.content else {})


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
    workload = schedule.offered(rig.scenario, planned)
    name, tool = planned.name(attempt), _tool(rig, arm, workload)
    files = _keep(rig, name, output, tool)
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
        **steps.of(rig.scenario).place(rig, arm),
        tool=tool.name,
        files=files,
        **_of_plan(planned, workload),
        **{"lun": None, **(extra or {})},
    )
    return error is None


def _of_plan(planned: schedule.PlannedTrial, workload: Workload) -> dict[str, Any]:
    """What the ledger keeps of a trial that no comparison has, and of one in a block of a placement."""
    if planned.evidence:
        return {"evidence_s": workload.runtime_s}
    early: dict[str, Any] = {"early": True} if planned.early else {}
    return early | ({"round": planned.round} if planned.round else {})


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
        return _seen(read_job(tool, output, f"{name}.{tool.main}", **limits)), None
    except UnusableError as failure:
        return None, str(failure)


def _keep(rig: Rig, name: str, output: dict[str, bytes], tool: Tool) -> dict[str, dict[str, str]]:
    """Write a trial's raw files."""
    return {
        kind: rig.run.write_raw(f"{name}{ending}", output[file])
        for file, (kind, ending) in {**tool.raw, **steps.of(rig.scenario).raw}.items()
        if output.get(file)
    }


def _tool(rig: Rig, arm: Arm, workload: Workload) -> Tool:
    """Tool that an arm is measured with."""
    return registry.TOOLS[rig.scenario.tool_of(arm, workload)]


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
