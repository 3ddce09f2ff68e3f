"""Find the disk at a LUN of a machine, prove that this run created it, and mark it as ours.

Whether the machine is an Azure one (block devices), a Windows one (physical drives) or an emulated one (NBD
exports) is known here only; what Linux machines on Azure are asked stands in `disks_azure`. Emulated machines
answer by stand-ins.

A disk is written only if this run created it. What Azure says is attached at a LUN is one proof, the size
another; the machine gives the third. At first use a disk has to be empty: no partition, no signature, not
mounted, nothing but zeros in its first and its last MiB. It is then given a mark in its last MiB, with the
disk's own uniqueId, by which it is known from then on, on whatever machine. The serial number that Linux
shows of an Azure disk is recorded only: how it follows from the uniqueId is not documented.

A system disk cannot be written as a whole, so trials use a file of ours, written once in full (prefill) and
read and written around the page cache. On an emulated machine it is an NBD export, as every disk there.
"""

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from diskbook.design.layout import MARK_ROOM
from diskbook.facts.errors import DiskbookError
from diskbook.facts.linux import FIRST_DATA_NAMESPACE, NVME_MODEL, OS_DISK
from diskbook.facts.units import GIB
from diskbook.hosts import disks_azure
from diskbook.hosts.device import MARK_BYTES, Device, Facts, data_at_edges
from diskbook.hosts.ssh import Connection
from diskbook.hosts.ssh_windows import WindowsConnection

_MARK = b"diskbook created this disk\n"


@dataclass(frozen=True)
class OwnDisk:
    """A disk of ours: how to address it, what the machine says of it, and whether it was first seen now."""

    device: Device
    facts: Facts
    first: bool


def by_lun(connection: Connection) -> dict[int, Device]:
    """Disks that the machine sees now, by LUN; DiskbookError when two claim to be at one."""
    if isinstance(connection, WindowsConnection):
        return windows_drives(connection.disks(), connection.host.name)
    rows = _emulated_rows(connection)
    return disks_azure.by_lun(connection) if rows is None else emulated_by_lun(rows)


def at_lun(connection: Connection, lun: int, *, size_bytes: int, patience_s: float = 30.0) -> Device:
    """Return the disk at a LUN, waiting for it; DiskbookError when it does not appear or has another size."""
    deadline = time.monotonic() + patience_s
    while (device := by_lun(connection).get(lun)) is None:
        if time.monotonic() > deadline:
            raise DiskbookError(f"machine {connection.host.name} does not see the disk at LUN {lun}")
        time.sleep(0.2)
    if device.size_bytes != size_bytes:
        raise DiskbookError(
            f"machine {connection.host.name}: the disk at LUN {lun} has {device.size_bytes} bytes, "
            f"not the {size_bytes} of the one created for this run; nothing was written"
        )
    return replace(device, lun=lun)


def ours(connection: Connection, lun: int, *, size_bytes: int, unique_id: str) -> OwnDisk:
    """Return the disk at a LUN once it is certain that this run created it; mark it at first use.

    Raises DiskbookError when it is not that disk by its read-back, or holds something. Nothing has been
    written then.
    """
    device = at_lun(connection, lun, size_bytes=size_bytes)
    facts = _facts(connection, device)
    why = refusal(facts, unique_id)
    if why:
        raise DiskbookError(
            f"machine {connection.host.name}: the disk at LUN {lun} {why}, so it is not certain that this "
            "run created it; nothing was written"
        )
    first = not _is_mark(facts.mark)
    if first:
        _write_mark(connection, device, mark(unique_id))
        again = _facts(connection, device)
        if again.mark != mark(unique_id):
            raise DiskbookError(
                f"machine {connection.host.name}: the disk at LUN {lun} does not keep its mark"
            )
    return OwnDisk(device, facts, first)


def mark(unique_id: str) -> bytes:
    """Return the block that is written into the last MiB of a disk of ours."""
    return (_MARK + f"uniqueId {unique_id.lower()}\n".encode()).ljust(MARK_BYTES, b"\0")


def refusal(facts: Facts, unique_id: str) -> str | None:
    """Say why a disk must not be written; None when it may."""
    if facts.in_use:
        return " and ".join(facts.in_use)
    if facts.unique_id is not None and facts.unique_id.lower() != unique_id.lower():
        return f"has the uniqueId {facts.unique_id}, not {unique_id}"
    if _is_mark(facts.mark):
        return None if facts.mark == mark(unique_id) else "carries the mark of another disk"
    return " and ".join(facts.foreign) or None


def _facts(connection: Connection, device: Device) -> Facts:
    """Ask a machine what is on a disk; an emulated one reads the same places through the disk's export."""
    if isinstance(connection, WindowsConnection) and device.engine != "nbd":
        return windows_facts(connection.disk_facts(_drive(device)))
    if device.engine != "nbd":
        return disks_azure.facts(connection, device)
    answer = json.loads(connection.check(f"diskbook-disk show {device.lun}"))
    foreign = [
        f"holds data in its {edge} MiB" for edge in ("first", "last") if not answer[f"{edge}_mib_empty"]
    ]
    content = base64.b64decode(answer["mark"])
    return Facts(tuple(foreign), (), content, answer["unique_id"], None, answer["unique_id"])


def _write_mark(connection: Connection, device: Device, content: bytes) -> None:
    """Write a block to the beginning of the last MiB of a disk."""
    if isinstance(connection, WindowsConnection):
        connection.write_mark(_drive(device), device.size_bytes - MARK_ROOM, content)
    elif device.engine == "nbd":
        connection.check(f"diskbook-disk mark {device.lun}", stdin=content)
    else:
        disks_azure.write_mark(connection, device, content)


def _emulated_rows(connection: Connection) -> dict[str, Any] | None:
    """Rows of a machine's disks by LUN, its OS disk among them; None where the machine is not emulated."""
    output = connection.run("command -v diskbook-disks >/dev/null && diskbook-disks")
    if output.status != 0:
        return None
    rows: dict[str, Any] = json.loads(output.stdout)
    return rows


def emulated_by_lun(rows: dict[str, Any]) -> dict[int, Device]:
    """Turn what an emulated machine lists into devices by LUN, without the OS disk.

    Behind an NVMe controller the LUN follows from the namespace, as on Azure.
    """
    at_lun = {}
    for name, row in rows.items():
        if name == OS_DISK:
            continue
        seen = row.get("nvme")
        if seen is not None and seen["model"] == NVME_MODEL:
            at_lun[int(seen["namespace"]) - FIRST_DATA_NAMESPACE] = _emulated(row)
        else:
            at_lun[int(name)] = _emulated(row)
    return at_lun


def _emulated(row: dict[str, Any]) -> Device:
    return Device(row["engine"], row["uri"], row["prefill_uri"], int(row["size_bytes"]))


def windows_drives(rows: list[dict[str, Any]], machine: str) -> dict[int, Device]:
    """Turn what `WindowsConnection.disks` says into devices by LUN; raises as `by_lun` does."""
    at_lun: dict[int, Device] = {}
    for row in rows:
        target = f"#{row['number']}"
        if row["lun"] in at_lun:
            raise DiskbookError(
                f"machine {machine}: {at_lun[row['lun']].target} and {target} both claim LUN {row['lun']}; "
                "nothing was written"
            )
        fill = row.get("prefill_target", target)
        at_lun[row["lun"]] = Device("windows", target, fill, int(row["size_bytes"]))
    return at_lun


def windows_facts(answer: Mapping[str, Any]) -> Facts:
    """Read what `WindowsConnection.disk_facts` says."""
    foreign = [f"has a partition table ({answer['style']})"] if answer["style"] != "RAW" else []
    foreign += data_at_edges({"first": answer["head"], "last": answer["tail"]})
    in_use = ["is the machine's own disk"] if answer["own"] else []
    if answer["partitions"]:
        in_use.append("has partitions")
    mark = base64.b64decode(answer["mark"])
    return Facts(tuple(foreign), tuple(in_use), mark, answer["serial"], None, answer.get("unique_id"))


def _drive(device: Device) -> int:
    """Number of a physical drive."""
    return int(device.target.removeprefix("#"))


def _is_mark(content: bytes) -> bool:
    return content.startswith(_MARK)


FOLDER = "/var/lib/diskbook"
FILE = "measured"
SPARE_BYTES = GIB
"""Left to the system beside the file."""

# One line a fact, its name first. `room` counts what a file of an earlier trial holds.
FACTS = """set -e; sudo -n mkdir -p {folder}
echo "folder $(findmnt -n -o SOURCE -T {folder})"
echo "root $(findmnt -n -o SOURCE -T {system})"
held=$(sudo -n stat -c %s {folder}/{file} 2>/dev/null || echo 0)
echo "held $held"
echo "room $(($(df --output=avail -B1 {folder} | tail -n 1) + held))"
"""


@dataclass(frozen=True)
class OsDisk:
    """An OS disk: how to address its file, and its bytes that are written; None on emulated machines."""

    device: Device
    held_bytes: int | None


def find(connection: Connection, needed_bytes: int, folder: str = FOLDER, system: str = "/") -> OsDisk:
    """Return the ephemeral OS disk of a machine; the file lies in `folder`, `system` is on that disk.

    Raises DiskbookError when the machine does not tell, or has no room. Nothing has been written then.
    """
    rows = _emulated_rows(connection)
    if rows is not None:
        if OS_DISK not in rows:
            raise DiskbookError(f"machine {connection.host.name} was made without an ephemeral OS disk")
        return OsDisk(_emulated(rows[OS_DISK]), None)
    answer = connection.check(FACTS.format(folder=folder, file=FILE, system=system)).decode()
    facts = dict(line.partition(" ")[::2] for line in answer.splitlines())
    name = connection.host.name
    try:
        held, room = int(facts["held"]), int(facts["room"])
        elsewhere = facts["folder"] != facts["root"]
    except (KeyError, ValueError) as error:
        raise DiskbookError(f"machine {name} does not say how much room {folder} has ({error})") from error
    if elsewhere:
        raise DiskbookError(f"machine {name}: {folder} lies on {facts['folder']}, not on the OS disk")
    if room < needed_bytes + SPARE_BYTES:
        raise DiskbookError(
            f"machine {name}: {folder} has room for {room / GIB:.1f} GiB and the trials need "
            f"{needed_bytes / GIB:.1f} GiB besides the system; make the OS disk larger"
        )
    path = f"{folder}/{FILE}"
    return OsDisk(Device("libaio", path, path, needed_bytes), held)
