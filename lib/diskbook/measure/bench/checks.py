"""Run a scenario's checks: attachments that Azure must refuse, data that must be intact, reservations.

The reservations are SCSI-3 persistent reservations of a shared disk, set through `sg_persist` on its
machines.

Options, output and the exit status 24 are those of the manual page sg_persist(8) of sg3_utils; every action
and the type are among those that Microsoft lists for shared disks ("Share an Azure managed disk", supported
SCSI PR commands); that a refused write ends with EBADE is what Linux makes of a reservation conflict.
Unverified on Azure. On the emulator a stand-in edits the state that the emulated disk enforces; there a
refused write ends with EPERM, the nearest error that NBD has.

Numbered blocks are written and verified by `blocks_remote`, which is sent to the machine and run there. They
lie behind the working sets and the region of the checks that verify data, so that no trial and no check meets
them. The disk must be one that `hosts.disks.ours` has proved to be ours.
"""

import contextlib
import json
import re
import secrets
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.design import layout
from diskbook.design.layout import REGION_BYTES, region_offset
from diskbook.design.model import Check, Scenario
from diskbook.design.vocabulary import RESERVATION_KEYS, RESERVATION_TYPE, RESERVATION_TYPE_WORDS
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import MIB
from diskbook.hosts import nbd
from diskbook.hosts.device import Device
from diskbook.hosts.ssh import Connection
from diskbook.measure.bench import blocks_remote
from diskbook.measure.bench.rig import Rig, read_job, run_with_retry
from diskbook.tools import fio
from diskbook.tools.record import UnusableError

MAX_BLOCKS = REGION_BYTES // blocks_remote.BLOCK - 1  # the last one is for the machine that takes over

# Runs what stands in standard input: modules by name, of which the last one is started.
_START = (
    "import json, sys, types\n"
    "for name, text in json.load(sys.stdin):\n"
    "    module = sys.modules[name] = types.ModuleType(name)\n"
    "    exec(compile(text, name, 'exec'), module.__dict__)\n"
    "module.main()\n"
)


@dataclass(frozen=True)
class Blocks:
    """A series of blocks of one writer: where they lie, and a tag that nobody else has."""

    offset: int
    tag: str

    @classmethod
    def fresh(cls, scenario: Scenario, disk: str) -> "Blocks":
        """A new series, which no block of an earlier one can be taken for."""
        return cls(region_offset(scenario, disk), secrets.token_hex(16))

    def run(self, connection: Connection, device: Device, action: str, count: int) -> list[dict[str, Any]]:
        """Do an action of `blocks_remote` and return what it printed; an error of the disk is its last line.

        Raises DiskbookError when the machine cannot run it.
        """
        output = connection.run(self._command(device, action, count), stdin=_modules(device), timeout_s=300)
        rows = [json.loads(line) for line in output.stdout.decode().splitlines()]
        if output.status != 0 and not (rows and "error" in rows[-1]):
            lines = output.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
            raise DiskbookError(f"machine {connection.host.name} cannot {action} blocks: {lines[-1]}")
        return rows

    def follow(
        self, connection: Connection, device: Device, action: str, count: int, interval_s: float = 0.0
    ) -> Iterator[dict[str, Any]]:
        """Do an action and yield what it prints, as it comes; ends when the machine is gone."""
        command = self._command(device, action, count, interval_s)
        for line in connection.follow(command, stdin=_modules(device)):
            yield json.loads(line)

    def _command(self, device: Device, action: str, count: int, interval_s: float = 0.0) -> str:
        given = [action, device.target, str(self.offset), self.tag, str(count), str(interval_s)]
        root = ["sudo", "-n"] if device.needs_root else []
        return shlex.join([*root, "python3", "-I", "-c", _START, *given])


def _modules(device: Device) -> bytes:
    modules = [nbd, blocks_remote] if device.engine == "nbd" else [blocks_remote]
    texts = [(module.__name__, Path(str(module.__file__)).read_text("utf-8")) for module in modules]
    return json.dumps(texts).encode()


CONFLICT = 24
REFUSED = ("EBADE", "EPERM")
COUNT = 16  # blocks that are written at each step

_KEY = re.compile(r"^\s+0x([0-9a-f]+)\s*$", re.MULTILINE)
_HOLDER = re.compile(r"Key\s*=\s*0x([0-9a-f]+)")


@dataclass(frozen=True)
class Registrant:
    """A machine with its key, and a shared disk as it sees it."""

    connection: Connection
    device: Device
    key: int

    def register(self) -> None:
        """Register the key, whatever was registered before."""
        self._out("--register-ignore", f"--param-sark={self.key:#x}")

    def reserve(self) -> None:
        """Reserve the disk: from now on only registered machines may write."""
        self._out("--reserve", f"--param-rk={self.key:#x}", f"--prout-type={RESERVATION_TYPE}")

    def preempt(self, other: int) -> None:
        """Take the reservation over and remove another one's key."""
        keys = (f"--param-rk={self.key:#x}", f"--param-sark={other:#x}")
        self._out("--preempt", *keys, f"--prout-type={RESERVATION_TYPE}")

    def release(self) -> None:
        """Give the reservation up; keys stay registered."""
        self._out("--release", f"--param-rk={self.key:#x}", f"--prout-type={RESERVATION_TYPE}")

    def clear(self) -> None:
        """Remove the reservation and all keys."""
        self._out("--clear", f"--param-rk={self.key:#x}")

    def keys(self) -> list[int]:
        """List the keys that are registered with the disk, sorted."""
        return sorted(int(key, 16) for key in _KEY.findall(self._call("--in", "--read-keys")))

    def holder(self) -> int | None:
        """Key of the holder of a reservation; None without one. DiskbookError when it is of another type."""
        answer = self._call("--in", "--read-reservation")
        match = _HOLDER.search(answer)
        if match is not None and RESERVATION_TYPE_WORDS.lower() not in answer.lower():
            raise DiskbookError(f"machine {self.connection.host.name}: another kind of reservation: {answer}")
        return int(match[1], 16) if match else None

    def _out(self, action: str, *options: str) -> None:
        self._call("--out", action, *options)

    def _call(self, *options: str) -> str:
        root = ["sudo", "-n"] if self.device.needs_root else []
        command = [*root, "sg_persist", "--no-inquiry", *options, self.device.target]
        output = self.connection.run(shlex.join(command))
        if output.status == 0:
            return output.stdout.decode()
        why = "reservation conflict" if output.status == CONFLICT else f"status {output.status}"
        lines = output.stderr.decode(errors="replace").strip().splitlines()
        words = f": {lines[-1]}" if lines else ""
        raise DiskbookError(f"machine {self.connection.host.name}: {options[1]} failed with {why}{words}")


def registrants(rig: Rig, disk: str, first: str, second: str) -> tuple[Registrant, Registrant]:
    """Attach a shared disk to two machines and to no other one; both see that it is ours."""
    for machine, _ in rig.attachments.where(disk):
        if machine not in (first, second):
            rig.attachments.detach(disk, machine)
    rig.forget(disk)
    seen = [
        Registrant(rig.connection(machine), rig.device(disk, machine), key)
        for machine, key in zip((first, second), RESERVATION_KEYS, strict=True)
    ]
    return seen[0], seen[1]


def clear_all(registrant: Registrant) -> None:
    """Leave no key and no reservation on a disk, whatever was there."""
    registrant.register()
    registrant.clear()


@dataclass
class _StepLog:
    """What was expected and seen, step by step."""

    steps: list[dict[str, Any]] = field(default_factory=list)

    def record(self, step: str, expected: str, observed: str) -> None:
        self.steps.append(
            {"step": step, "expected": expected, "observed": observed, "ok": expected == observed}
        )


def check_reservations(rig: Rig, check: Check) -> dict[str, Any]:
    """Show that a reservation keeps an unregistered machine out and can be taken over; return a finding."""
    assert check.from_machine is not None
    first, second = registrants(rig, check.disk, check.from_machine, check.machine)
    log = _StepLog()
    clear_all(first)
    try:
        _fence(rig, check.disk, log, first, second)
        _take_over(rig, check.disk, log, first, second)
        second.clear()
        log.record("cleared", _state((), None), _seen(first))
    finally:
        with contextlib.suppress(DiskbookError):
            clear_all(second)
    return _finding(check, log.steps)


def _fence(rig: Rig, disk: str, log: _StepLog, first: Registrant, second: Registrant) -> None:
    """The first registers and reserves; the second is refused until it has registered."""
    first_blocks, second_blocks = Blocks.fresh(rig.scenario, disk), Blocks.fresh(rig.scenario, disk)
    first.register()
    log.record("the first registers", _state(RESERVATION_KEYS[:1], None), _seen(first))
    first.reserve()
    log.record("the first reserves", _state(RESERVATION_KEYS[:1], RESERVATION_KEYS[0]), _seen(second))
    log.record("the first writes", "written", _write(first, first_blocks))
    log.record("the second writes, unregistered", "refused", _write(second, second_blocks))
    log.record("data of the first", "unchanged", _unchanged(second, first_blocks))
    second.register()
    log.record("the second registers", _state(RESERVATION_KEYS, RESERVATION_KEYS[0]), _seen(first))
    log.record("the second writes, registered", "written", _write(second, second_blocks))


def _take_over(rig: Rig, disk: str, log: _StepLog, first: Registrant, second: Registrant) -> None:
    """The second takes the reservation over and the first is fenced."""
    first_blocks, second_blocks = Blocks.fresh(rig.scenario, disk), Blocks.fresh(rig.scenario, disk)
    second.preempt(first.key)
    log.record("the second preempts", _state(RESERVATION_KEYS[1:], RESERVATION_KEYS[1]), _seen(first))
    log.record("the second writes", "written", _write(second, second_blocks))
    log.record("the first writes, fenced", "refused", _write(first, first_blocks))
    log.record("data of the second", "unchanged", _unchanged(first, second_blocks))


def _state(keys: tuple[int, ...], holder: int | None) -> str:
    held = "no reservation" if holder is None else f"type {RESERVATION_TYPE} held by {holder:#x}"
    return f"keys {', '.join(f'{key:#x}' for key in keys) or 'none'}; {held}"


def _seen(registrant: Registrant) -> str:
    return _state(tuple(registrant.keys()), registrant.holder())


def _write(registrant: Registrant, blocks: Blocks) -> str:
    last = blocks.run(registrant.connection, registrant.device, "write", COUNT)[-1]
    if "error" not in last:
        return "written"
    return "refused" if last["error"] in REFUSED else f"failed with {last['error']}"


def _unchanged(registrant: Registrant, blocks: Blocks) -> str:
    last = blocks.run(registrant.connection, registrant.device, "verify", COUNT)[-1]
    return "unchanged" if last.get("verified") == COUNT else f"changed: {last}"


def _finding(check: Check, steps: list[dict[str, Any]]) -> dict[str, Any]:
    wrong = [row for row in steps if not row["ok"]]
    text = (
        f"{check.from_machine} and {check.machine} registered, reserved (type {RESERVATION_TYPE}) and "
        "preempted; writes of a machine that was not registered were refused twice, with the data unchanged"
    )
    if wrong:
        row = wrong[0]
        text = f"{row['step']}: expected '{row['expected']}', seen '{row['observed']}'"
    done = f"{len(steps) - len(wrong)} of {len(steps)} steps"
    return {
        "ok": not wrong,
        "expected": f"{len(steps)} steps",
        "observed": done,
        "text": text,
        "steps": steps,
    }


def run_checks(rig: Rig) -> None:
    """Do the scenario's checks that this replicate has not done yet, and record each as a finding.

    Raises DiskbookError when a check comes out other than expected; the finding is recorded first.
    """
    kinds = {
        "attach-refused": _attach_refused,
        "data-intact": _data_intact,
        "reservation": check_reservations,
    }
    done = {
        event["name"]
        for event in rig.run.ledger()
        if event["event"] == "finding" and event["replicate"] == rig.number and event["ok"]
    }
    for check in rig.scenario.check:
        if check.name in done:
            continue
        finding = kinds[check.kind](rig, check)
        rig.run.append("finding", name=check.name, kind=check.kind, replicate=rig.number, **finding)
        if not finding["ok"]:
            raise DiskbookError(f"check {check.name}: {finding['text']}")


def _attach_refused(rig: Rig, check: Check) -> dict[str, Any]:
    """Try an attachment that Azure must refuse. That it succeeds would be a finding against the scenario."""
    disk = rig.scenario.disk_named(check.disk)
    for machine, _ in rig.attachments.where(disk.name):
        rig.attachments.detach(disk.name, machine)
        rig.forget(disk.name)
    try:
        rig.attachments.attach(disk, check.machine)
    except DiskbookError as refusal:
        return _refused(check, refusal)
    rig.attachments.detach(disk.name, check.machine)
    text = f"attaching {disk.name} to {check.machine} succeeded, though it had to be refused"
    return {"ok": False, "expected": check.error_code, "observed": "attached", "text": text}


def _refused(check: Check, refusal: DiskbookError) -> dict[str, Any]:
    cause = refusal.__cause__
    code = getattr(getattr(cause, "error", None), "code", None) if isinstance(cause, AzureError) else None
    return {
        "ok": code == check.error_code,
        "expected": check.error_code,
        "observed": code,
        "text": str(refusal),
    }


def _data_intact(rig: Rig, check: Check) -> dict[str, Any]:
    """Write blocks that carry checksums from one machine, and verify every one from another (RPO 0)."""
    assert check.from_machine is not None
    size = check.size_mib * MIB
    # Behind the working sets, so that no trial writes over the blocks in question.
    offset = layout.working_set_end(rig.scenario, check.disk)
    started = time.monotonic()
    _verify(rig, check, check.from_machine, write=True, size=size, offset=offset)
    written = time.monotonic()
    rig.device(check.disk, check.machine)  # detached from the one, attached to the other
    moved = time.monotonic()
    verified = _verify(rig, check, check.machine, write=False, size=size, offset=offset)
    expected = size // (64 * 1024)
    where = f"written from {check.from_machine} and read from {check.machine}"
    return {
        "ok": verified == expected,
        "expected": expected,
        "observed": verified,
        "text": f"{verified} of {expected} blocks of 64 KiB, {where}, carry the right checksum",
        "move_real_s": round(moved - written, 3),
        "real_s": round(time.monotonic() - started, 3),
    }


def _verify(rig: Rig, check: Check, machine: str, *, write: bool, size: int, offset: int) -> int:
    """Write or verify the region; return the number of blocks done, 0 when fio found a wrong one."""
    device = rig.device(check.disk, machine)
    make = fio.verify_write_command if write else fio.verify_read_command
    job = make(device, size_bytes=size, offset=offset)
    name = f"{check.name}-r{rig.number}-{'write' if write else 'read'}-{time.time_ns()}"
    output = run_with_retry(rig, machine, name, device, job, 300 + size / 5e6)
    try:
        result = read_job(fio.TOOL, output, name)
    except UnusableError as error:
        # fio ends with EILSEQ (84) at a block that is not what was written.
        if write or "error 84" not in " ".join([error.reason, *getattr(error, "__notes__", ())]):
            raise
        return 0
    return int(result.directions["write" if write else "read"].ios)
