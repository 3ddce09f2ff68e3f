"""Steps around the trials of a replicate: prepare its disks, run its checks. Volumes override these steps.

What a scenario has beyond machines and disks is made before its checks, and played after its blocks. Such a
scenario overrides these steps (`facts.neighbours`).

Before the first trial each disk is filled, written over at random, and its cache set.

A disk that was only filled in order is in the state of a new file, which the writes of the first blocks
would change while they are measured. So its working set is written over once before the first trial, unless
`Design.no_overwrite` says why not.

A trial is a detached job, so it goes on without its client; its result need not be measured again.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from diskbook.cloud.azure.clients import Clients
from diskbook.design import layout, schedule
from diskbook.design.model import Arm, Scenario, Workload
from diskbook.facts import neighbours
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB
from diskbook.hosts.device import Device
from diskbook.hosts.jobs import JobLost
from diskbook.measure.bench.rig import START_S, Rig, read_job, run_job, run_with_retry
from diskbook.results.run import Run
from diskbook.tools import fio, registry
from diskbook.tools.protocol import FILL_BLOCK_BYTES, OVERWRITE_BLOCK_BYTES, Job

PASSES = 4  # attempts to write all of a working set, with a tool that writes for a time


class NoRoomError(DiskbookError):
    """A trial is to be the first where nobody wrote, and the disk has no such place left."""


def prefill(rig: Rig, disk: str, machine: str) -> None:
    """Fill the working set of a disk once, and write it over once; caps are lifted if emulated.

    Reads then meet written blocks, and writes blocks that were written over before.
    """
    condition(rig, disk, machine, rig.device(disk, machine), ledger_place(rig, disk))


def is_done(rig: Rig, disk: str) -> bool:
    """Tell whether a disk is filled, and written over where it is to be."""
    over = disk in rig.overwritten or not layout.overwritten_bytes(rig.scenario, disk)
    return disk in rig.prefilled and over


def ledger_place(rig: Rig, disk: str) -> dict[str, str]:
    """How the ledger names a disk."""
    return {"disk": disk, "disk_id": rig.replicate["disks"][disk]["id"]}


def condition(rig: Rig, key: str, machine: str, device: Device, place: Mapping[str, str]) -> None:
    """Fill and write over what is known by a key in `Rig.prefilled` and `Rig.overwritten`, unless it is."""
    name = place["disk"] or place["volume"]
    needed = layout.filled_bytes(rig.scenario, name)
    if key not in rig.prefilled and needed:
        _pass(rig, machine, device, place, "prefill", needed)
        rig.prefilled.add(key)
        rig.overwritten.discard(key)
    needed = layout.overwritten_bytes(rig.scenario, name)
    if key not in rig.overwritten and needed:
        _pass(rig, machine, device, place, "overwrite", needed)
        rig.overwritten.add(key)


def _pass(rig: Rig, machine: str, device: Device, place: Mapping[str, str], what: str, needed: int) -> None:
    """Write a working set once, in order or at random, and record it as an event of that name."""
    started = time.monotonic()
    job = _write(rig, machine, place["disk"] or place["volume"], device, what, needed)
    details: dict[str, Any] = {"block_bytes": OVERWRITE_BLOCK_BYTES} if what == "overwrite" else {}
    rig.run.append(
        what,
        replicate=rig.number,
        **place,
        bytes=needed,
        caps_lifted=device.prefill_target != device.target,
        content=job.content,
        **details,
        **({"notes": list(job.notes)} if job.notes else {}),
        real_s=round(time.monotonic() - started, 3),
    )


def _write(rig: Rig, machine: str, disk: str, device: Device, what: str, needed: int) -> Job:
    """Have the machine's usual tool write until it says that all of it is written; return its last job."""
    tool = registry.TOOLS[rig.scenario.machine_named(machine).tools[0]]
    step, block = tool.overwrite, OVERWRITE_BLOCK_BYTES
    if what == "prefill":
        step, block = tool.prefill, FILL_BLOCK_BYTES
    job, written = step(needed, device.for_prefill, None), None
    assert job is not None
    last = job
    for attempt in range(1, PASSES + 1):
        if job is None:
            return last
        name, last = f"{what}-{disk}-{rig.number}-{attempt}", job
        output = run_with_retry(rig, machine, name, device, job, job.limit_s or START_S)
        written = read_job(tool, output, f"{what} of {disk}")
        job = step(needed, device.for_prefill, written)
    if job is not None and written is not None:
        done = written.directions["write"].ios * block
        raise DiskbookError(
            f"{what} of {disk}: {done:.0f} of {needed} bytes were written in {PASSES} attempts"
        )
    return last


def region(rig: Rig, planned: schedule.PlannedTrial, attempt: int) -> int:
    """Return where a trial's working set begins; one that is to be the first there gets a place of its own.

    The ledger has what was given away, before it is used, so that no trial of a resumed run comes second.

    Raises NoRoomError when attempts have used up all that nobody wrote to.
    """
    arm, load = rig.scenario.arm_named(planned.arm), rig.scenario.workload_named(planned.workload)
    if load.region == "filled":
        return 0
    place = ledger_place(rig, arm.disk)
    given = [event for event in rig.run.ledger() if event["event"] == "unwritten"]
    ends = [event["offset"] + event["bytes"] for event in given if event["disk_id"] == place["disk_id"]]
    offset: int = max(ends, default=layout.unwritten_offset(rig.scenario, arm.disk))
    end = rig.scenario.disk_named(arm.disk).size_gib * GIB - layout.MARK_ROOM
    if offset + load.working_set_bytes > end:
        raise NoRoomError(
            f"{load.name} is to be the first on {load.working_set_gib:g} GiB of {arm.disk}, and no part of "
            "it is left that nobody wrote to: begin a new run, or make the disk larger"
        )
    rig.run.append(
        "unwritten",
        replicate=rig.number,
        trial=planned.name(attempt),
        **place,
        offset=offset,
        bytes=load.working_set_bytes,
    )
    return offset


def cache(rig: Rig, arm: Arm, load: Workload, name: str) -> None:
    """Empty the host cache of an arm's disk, or read the working set once, before a trial that asks for it.

    Cold is a detach and an attach: the cache is the host's, by attachment, and Microsoft documents no other
    way to drop it (changing the setting detaches and attaches the disk as well). That it is empty then is
    what those words lead to expect; it is written nowhere.
    """
    if load.cache_state == "cold":
        rig.attachments.detach(arm.disk, arm.machine)
        rig.forget(arm.disk)
        rig.device(arm.disk, arm.machine)
    elif load.cache_state == "warm":
        device = rig.device(arm.disk, arm.machine)
        job = fio.read_command(load.working_set_bytes, device)
        output = run_with_retry(rig, arm.machine, f"warm-{name}", device, job, job.limit_s or START_S)
        read_job(fio.TOOL, output, f"warming of {arm.disk}")


class Steps:
    """Steps of a scenario on disks; `raw` are files beyond those of a tool: name to kind and ending."""

    raw: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def make(self, rig: Rig, clients: Clients) -> None:
        """Make what a replicate has beyond machines and disks."""

    def is_left(self, run: Run, scenario: Scenario, origin: int) -> bool:
        """Tell whether a planned replicate has something left to play."""
        return False

    def play(self, rig: Rig, clients: Clients) -> None:
        """Play what comes after the blocks."""

    def prepare(self, rig: Rig, block: schedule.Block) -> None:
        """Wait for what a block needs, once its disks are attached and filled."""

    def check(self, rig: Rig, block: schedule.Block) -> None:
        """Make sure that a block was measured on what is still whole; raises DiskbookError otherwise."""

    def device(self, rig: Rig, arm: Arm, load: Workload) -> Device:
        """Return what an arm measures, as its machine sees it, filled."""
        prefill(rig, arm.disk, arm.machine)
        return rig.device(arm.disk, arm.machine)

    def place(self, rig: Rig, arm: Arm) -> dict[str, str]:
        """How the ledger names what an arm measures."""
        return ledger_place(rig, arm.disk)

    # The trial is recorded as failed where one of these three raises JobLost or StepFailed.

    def before(self, rig: Rig, arm: Arm) -> Any:
        """Have what an arm measures at rest; return what `after` needs."""

    def run(
        self, rig: Rig, arm: Arm, load: Workload, name: str, device: Device, job: Job
    ) -> dict[str, bytes]:
        """Run the tool of a trial; return its files."""
        return run_job(rig, arm.machine, name, device, job, load.ramp_s + load.runtime_s + START_S)

    def after(self, rig: Rig, arm: Arm, begun: Any) -> dict[str, bytes]:
        """Return the files of a trial beyond those of its tool (`raw`)."""
        return {}

    def settle(self, rig: Rig, arm: Arm, load: Workload) -> None:
        """Note what a trial may have left behind, also one that failed."""

    def forget(self, rig: Rig, arm: Arm) -> None:
        """Look again where what an arm measures is, before it is used next."""
        rig.forget(arm.disk)


DISKS = Steps()


def of(scenario: Scenario) -> Steps:
    """Return the steps of a scenario."""
    apart: Any = neighbours.drill_steps if scenario.drill else DISKS
    steps: Any = neighbours.volume_steps if scenario.volume else apart
    return steps


OVERTIME_S = 5.0  # what a job may take longer than its time before nobody waits for it


@dataclass(frozen=True)
class OrphanedJob:
    """Output of a trial that ended without its client; times are by the machine's clock."""

    attempt: int
    output: dict[str, bytes]
    started_utc: str
    ended_utc: str


def unfinished_trials(
    events: Iterable[dict[str, Any]], block: schedule.Block, attempts: int
) -> list[schedule.PlannedTrial] | None:
    """Return the trials without a result of a block that was cut short; None when it was not begun.

    So many failed `attempts` of a trial are a result. The block is numbered for its replicate.
    """
    tries: dict[int, list[str]] | None = None
    for event in events:
        if (event.get("replicate"), event.get("block")) != (block.trials[0].replicate, block.block):
            continue
        if event["event"] == "block":
            tries = {}  # any earlier trials belong to a block that was cut as well
        elif event["event"] == "trial" and tries is not None:
            tries.setdefault(event["position"], []).append(event["status"])
    if tries is None:
        return None
    if tries and not any("ok" in row for row in tries.values()):
        return list(block.trials)  # given up because nothing worked
    done = {place for place, states in tries.items() if "ok" in states or len(states) >= attempts}
    return [trial for trial in block.trials if trial.position not in done]


def fetch_orphaned_job(
    rig: Rig, machine: str, trial: schedule.PlannedTrial, files: Sequence[str], expected_s: float
) -> OrphanedJob | None:
    """Fetch what a trial's job has left on a machine, waiting for it; None if there is none, or lost."""
    recorded = {event["trial"] for event in rig.run.ledger() if event["event"] == "trial"}
    with rig.new_connection(machine) as connection:
        unrecorded = set(connection.job_names()) - recorded
        names = {trial.name(attempt): attempt for attempt in range(1, 1000)}
        for name in sorted(unrecorded & names.keys()):
            try:
                output = connection.finish_job(name, files, limit_s=expected_s + OVERTIME_S)
                return OrphanedJob(names[name], output, *connection.job_times(name))
            except JobLost:
                continue
    return None
