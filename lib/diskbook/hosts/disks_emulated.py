"""Disks of an emulated machine: NBD exports by LUN, and what stands on them, by stand-ins on that machine."""

import base64
import json
from typing import Any

from diskbook.facts.linux import FIRST_DATA_NAMESPACE, NVME_MODEL, OS_DISK
from diskbook.hosts.device import Device, Facts
from diskbook.hosts.ssh import Connection


def listing(connection: Connection) -> dict[str, Any] | None:
    """Rows of a machine's disks by LUN, its OS disk among them; None where the machine is not emulated."""
    output = connection.run("command -v diskbook-disks >/dev/null && diskbook-disks")
    if output.status != 0:
        return None
    rows: dict[str, Any] = json.loads(output.stdout)
    return rows


def by_lun(rows: dict[str, Any]) -> dict[int, Device]:
    """Turn a listing into devices by LUN, without the OS disk."""
    return {_lun(name, row): device(row) for name, row in rows.items() if name != OS_DISK}


def _lun(name: str, row: dict[str, Any]) -> int:
    """LUN of a disk; behind an NVMe controller it follows from the namespace, as on Azure."""
    seen = row.get("nvme")
    if seen is None or seen["model"] != NVME_MODEL:
        return int(name)
    return int(seen["namespace"]) - FIRST_DATA_NAMESPACE


def device(row: dict[str, Any]) -> Device:
    """Turn an entry of what an emulated machine says of its disks into a device."""
    return Device(row["engine"], row["uri"], row["prefill_uri"], int(row["size_bytes"]))


def facts(connection: Connection, device: Device) -> Facts:
    """Ask a machine what is on a disk."""
    return parse_facts(connection.check(f"diskbook-disk show {device.lun}").decode())


def parse_facts(text: str) -> Facts:
    """Read what an emulated machine says of a disk; it has read the same places through the disk's export."""
    answer = json.loads(text)
    foreign = [
        f"holds data in its {edge} MiB" for edge in ("first", "last") if not answer[f"{edge}_mib_empty"]
    ]
    content = base64.b64decode(answer["mark"])
    return Facts(tuple(foreign), (), content, answer["unique_id"], None, answer["unique_id"])


def write_mark(connection: Connection, device: Device, content: bytes) -> None:
    """Write a block to the beginning of the last MiB of a disk."""
    connection.check(f"diskbook-disk mark {device.lun}", stdin=content)
