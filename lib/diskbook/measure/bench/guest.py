"""What machines say of themselves, kept in the ledger: facts once a placement, busy cores with each trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diskbook.design.model import Arm, Workload
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import guest
from diskbook.hosts.device import Device
from diskbook.hosts.ssh import Connection
from diskbook.measure.bench.rig import Rig


def record(rig: Rig, arm: Arm, load: Workload, device: Device, disk_id: str) -> None:
    """Record in the ledger what an arm's machine and device are; it holds for the trials after that line.

    The machine is asked where that may have changed: at first use, after the disk was attached anew, and on a
    new connection. One that does not say leaves its sentence in `error`: nothing measured rests on it.
    """
    connection: Connection = rig.windows(arm.machine) if load.is_fleet else rig.connection(arm.machine)
    key = (arm.machine, disk_id)
    asked = rig.guests.get(key)
    # A device is made anew when its disk is placed anew; that of a volume is equal each time.
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


def usage(output: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a trial's entry of how busy its machine was; empty where the job does not tell."""
    known = guest.usage(output)
    return {} if known is None else {"guest": known}
