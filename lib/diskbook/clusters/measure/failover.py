"""Run failover tests: a machine fails while it writes, another takes its disk over; RPO and RTO are measured.

RPO is counted, not assumed: every block that was acknowledged to the client is read back and compared byte
by byte. RTO is the time from the last acknowledgement of the failed machine to the first of the other one,
both as the client gets them, and is the sum of its steps.

That the first machine has failed is noticed by its connection, or by a silence of `SILENCE_S`: this stands
for a cluster's heartbeat, whose own time-out adds to any real fail-over. The machine is switched off
through Azure, which takes a while to say so; a disk is detached after that only ("machine off"), since
Azure does one operation a machine at a time. With a real failure that step would not be there. Unverified
on Azure.

The records kept here hold when each block was acknowledged, and how long each step took.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from diskbook.cloud import connect
from diskbook.cloud.azure.attach import Power
from diskbook.cloud.azure.clients import Clients
from diskbook.design.model import Drill, Scenario
from diskbook.design.vocabulary import SILENCE_S
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import utc_text
from diskbook.hosts.device import Device
from diskbook.hosts.ssh import Connection
from diskbook.measure.bench import checks
from diskbook.measure.bench.rig import Rig
from diskbook.measure.bench.steps import Steps
from diskbook.results.run import Run

INTERVAL_S = 0.005  # at most one write in so long: what RTO is exact to; the region lasts for five minutes
START_S = 60.0


class BlockWriter(threading.Thread):
    """Writes blocks from a machine, and keeps when each was acknowledged to us."""

    def __init__(self, connection: Connection, device: Device, series: checks.Blocks) -> None:
        super().__init__(name="drill-writer", daemon=True)
        self._source = connection, device, series
        self.times: list[float] = []  # of block 0, 1, 2 ..., `time.monotonic()`
        self.told_to_end = False
        self.error: str | None = None

    def run(self) -> None:
        connection, device, series = self._source
        try:
            for row in series.follow(connection, device, "write", checks.MAX_BLOCKS, INTERVAL_S):
                if "ack" in row:
                    self.times.append(time.monotonic())
                self.told_to_end |= "told_to_end" in row
                self.error = row.get("text", self.error)
        except Exception as error:
            self.error = str(error)

    @property
    def last(self) -> float:
        """When the last block was acknowledged."""
        return self.times[-1]

    def write_for(self, seconds: float) -> None:
        """Let it write; raises DiskbookError when it does not, or ends."""
        deadline = time.monotonic() + START_S
        while not self.times and self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.join(seconds if self.times else 0)
        if not (self.times and self.is_alive()):
            raise DiskbookError(f"the writing machine wrote {len(self.times)} blocks, then: {self.error}")

    def wait_for_silence(self) -> float:
        """Return when it was noticed that no more acknowledgements come."""
        while self.is_alive() and time.monotonic() - self.last < SILENCE_S:
            self.join(0.01)
        return time.monotonic()

    def lines(self) -> bytes:
        """All acknowledgements, a JSON document a line, with the client's time."""
        ahead = time.time() - time.monotonic()
        rows = [
            {"ack": number, "time_utc": utc_text(at + ahead, "auto")} for number, at in enumerate(self.times)
        ]
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@dataclass
class StepClock:
    """Takes the time of each step: when it ended, with what the emulator's time scale had saved by then."""

    saved_s: Callable[[], float]
    ends: list[tuple[str, float, float]] = field(default_factory=list)
    extra_s: dict[str, float] = field(default_factory=dict)

    def mark(self, step: str, at: float | None = None) -> None:
        self.ends.append((step, time.monotonic() if at is None else at, self.saved_s()))

    def steps(self, start: float, saved_s: float) -> Iterator[dict[str, Any]]:
        """Length of each step since `start`, as run and unscaled; their sum is the time to the last end."""
        for step, end, saved in self.ends:
            real = max(0.0, end - start)
            unscaled = real + saved - saved_s + self.extra_s.get(step, 0.0)
            yield {"step": step, "real_s": round(real, 4), "unscaled_s": round(unscaled, 4)}
            start, saved_s = max(start, end), saved


ATTEMPTS = 2


def remaining(run: Run, scenario: Scenario, origin: int) -> list[Drill]:
    """Failover tests of a planned replicate that are not done on any machines it was measured on."""
    numbers = {row["replicate"] for row in run.manifest["replicates"] if row["origin"] == origin}
    done = {
        event["name"]
        for event in run.ledger()
        if event["event"] == "drill" and event["status"] == "ok" and event["replicate"] in numbers
    }
    return [drill for drill in scenario.drill if drill.name not in done]


def run_drills(rig: Rig, clients: Clients) -> None:
    """Run the failover tests that this replicate has not done yet, and record each.

    One that fails is recorded with the reason and tried once more. Machines run again in the end, or
    DiskbookError is raised.
    """
    for spec in remaining(rig.run, rig.scenario, rig.replicate["origin"]):
        for attempt in range(1, ATTEMPTS + 1):
            if rig.stop.is_set():
                return
            if _try_drill(rig, clients, spec, attempt):
                break


class DrillSteps(Steps):
    """Steps of a scenario with failover tests, which are played after its blocks."""

    def is_left(self, run: Run, scenario: Scenario, origin: int) -> bool:
        return bool(remaining(run, scenario, origin))

    def play(self, rig: Rig, clients: Clients) -> None:
        run_drills(rig, clients)


STEPS = DrillSteps()


def _try_drill(rig: Rig, clients: Clients, spec: Drill, attempt: int) -> bool:
    """Run a failover test once and record it; tell whether it was done to its end."""
    about = {**_about(rig, spec), "attempt": attempt}
    rig.run.append("drill", status="begun", error=None, **about)
    test = _FailoverTest(rig, clients, spec)
    try:
        with test:
            measured = test.run()
    except DiskbookError as error:
        if test.down:
            raise
        rig.run.append("drill", status="failed", error=str(error), **about)
        return False
    rig.run.append("drill", status="ok", error=None, **about, **measured)
    return True


def _about(rig: Rig, spec: Drill) -> dict[str, Any]:
    machines = rig.replicate["machines"]
    return {
        "name": spec.name,
        "replicate": rig.number,
        "kind": spec.kind,
        "failure": spec.failure,
        "disk": spec.disk,
        "disk_id": rig.replicate["disks"][spec.disk]["id"],
        "from_machine": spec.from_machine,
        "from_zone": machines[spec.from_machine]["logical_zone"],
        "machine": spec.machine,
        "zone": machines[spec.machine]["logical_zone"],
        "provenance": rig.run.manifest["provenance"],
    }


class _FailoverTest:
    """One failover test; at its end both machines run again, and nobody is registered."""

    def __init__(self, rig: Rig, clients: Clients, spec: Drill) -> None:
        self.rig, self.spec = rig, spec
        self.down: set[str] = set()
        self._power = Power(clients, rig.run, rig.replicate)
        # Clients of its own: the waiting for the failure counts apart from that of the take-over.
        own = connect.clients_of(rig.run)
        self._failing = Power(own, rig.run, rig.replicate)
        self._clock = StepClock(lambda: clients.saved_s)
        self._series = checks.Blocks.fresh(rig.scenario, spec.disk)
        self._off: Future[None] | None = None
        self._saved_at_start = 0.0
        self._count = 0  # blocks that were acknowledged
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="drill")
        self._registered: tuple[checks.Registrant, checks.Registrant] | None = None

    def __enter__(self) -> "_FailoverTest":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(DiskbookError):
            if self._off is not None:
                self._off.result()
        self._pool.shutdown()
        for machine in sorted(self.down):
            self._power.on(machine)
            self.rig.forget_connections(machine)
            self.rig.connection(machine)
            self.down.discard(machine)
        self.rig.forget(self.spec.disk)
        if self._registered is not None:
            checks.clear_all(self._registered[1])

    def run(self) -> dict[str, Any]:
        """Fail the one machine, have the other take over, and return what was measured."""
        first = self._prepare()
        connection = self.rig.new_connection(self.spec.from_machine)
        writer = BlockWriter(connection, first, self._series)
        writer.start()
        try:
            writer.write_for(self.spec.write_s)
            self._fail(writer)
            seen = self._take_over(writer)
        finally:
            connection.close()
            writer.join(START_S)
        return self._result(writer.times[: self._count], writer, seen)

    def _prepare(self) -> Device:
        """Have everything as it is before the failure; return the disk as the first machine sees it."""
        rig, spec = self.rig, self.spec
        if spec.kind == "shared":
            first, second = self._registered = checks.registrants(
                rig, spec.disk, spec.from_machine, spec.machine
            )
            checks.clear_all(first)
            first.register()
            second.register()
            first.reserve()
            return first.device
        for machine, _ in rig.attachments.where(spec.disk):
            if machine != spec.from_machine:
                rig.attachments.detach(spec.disk, machine)
        rig.forget(spec.disk)
        device = rig.device(spec.disk, spec.from_machine)
        if spec.kind == "cold":
            self.down.add(spec.machine)
            self._power.off("deallocate", spec.machine)
        else:
            rig.connection(spec.machine)
        return device

    def _fail(self, writer: BlockWriter) -> None:
        """Have the first machine fail; go on when that is noticed, and with most kinds when it is off."""
        spec = self.spec
        self.down.add(spec.from_machine)
        self._off = self._pool.submit(self._failing.off, spec.failure, spec.from_machine)
        self._saved_at_start = self._clock.saved_s()
        self._clock.mark("noticed", writer.wait_for_silence())
        if spec.kind == "shared":
            return
        self._off.result()
        self._clock.mark("off")
        self._clock.extra_s["off"] = self._failing.clients.saved_s  # nothing else was done with them

    def _take_over(self, writer: BlockWriter) -> dict[str, Any]:
        """Have the other machine take over; return what it verified.

        Blocks are counted once nobody else can write: what looked like a failure may have been a pause.
        """
        spec, clock = self.spec, self._clock
        if self._registered is not None:
            first, second = self._registered
            second.preempt(first.key)
            clock.mark("preempted")
            self._count = len(writer.times)
            return self._verify(second.connection, second.device)
        self._count = len(writer.times)
        self._detach()
        clock.mark("detached")
        if spec.kind == "cold":
            self._power.on(spec.machine)
            self.rig.forget_connections(spec.machine)
            self.down.discard(spec.machine)
            clock.mark("started")
        self.rig.attachments.attach(self.rig.scenario.disk_named(spec.disk), spec.machine)
        clock.mark("attached")
        self.rig.forget(spec.disk)
        device = self.rig.device(spec.disk, spec.machine)
        clock.mark("seen")
        return self._verify(self.rig.connection(spec.machine), device)

    def _detach(self) -> None:
        """Take the disk from the machine that failed, by force where it does not let go."""
        spec, attachments = self.spec, self.rig.attachments
        try:
            attachments.detach(spec.disk, spec.from_machine)
        except DiskbookError:
            attachments.detach(spec.disk, spec.from_machine, force=True)

    def _verify(self, connection: Connection, device: Device) -> dict[str, Any]:
        """Verify every acknowledged block from the other machine, then write a first one."""
        seen: dict[str, Any] = {}
        for row in self._series.follow(connection, device, "take-over", self._count):
            self._clock.mark("verified" if "verified" in row else "written")
            seen |= row
        if "ack" not in seen:
            reason = seen.get("text", "the connection was lost")
            raise DiskbookError(f"machine {connection.host.name} did not take over: {reason}")
        return seen

    def _result(self, acked: list[float], writer: BlockWriter, seen: dict[str, Any]) -> dict[str, Any]:
        steps = list(self._clock.steps(acked[-1], self._saved_at_start))
        name = f"drill-{self.spec.name}-r{self.rig.number}-{self._series.tag[:8]}"
        return {
            "acknowledged": len(acked),
            # Told to us after they were counted, so not read back: the first machine was not dead yet.
            "late": len(writer.times) - len(acked),
            "lost": seen["lost"],
            "lost_blocks": seen["lost_blocks"],
            "told_to_end": writer.told_to_end,
            "rto_s": round(self._clock.ends[-1][1] - acked[-1], 4),
            "rto_unscaled_s": round(sum(step["unscaled_s"] for step in steps), 4),
            "steps": steps,
            "acks": self.rig.run.write_raw(f"{name}.jsonl", writer.lines()),
        }
