"""Run a scenario's checks: attachments that Azure must refuse, data that must be intact, reservations."""

from __future__ import annotations

import time
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.design import layout
from diskbook.design.model import Check
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import MIB
from diskbook.measure.bench import reservations
from diskbook.measure.bench.rig import Rig, read_job, run_with_retry
from diskbook.tools import fio
from diskbook.tools.record import UnusableError


def run_checks(rig: Rig) -> None:
    """Do the scenario's checks that this replicate has not done yet, and record each as a finding.

    Raises
    ------
    DiskbookError
        When a check comes out other than expected; the finding is recorded first.
    """
    kinds = {
        "attach-refused": _attach_refused,
        "data-intact": _data_intact,
        "reservation": reservations.run_check,
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
