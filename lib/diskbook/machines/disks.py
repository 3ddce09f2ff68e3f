"""Disks as a machine sees them, by LUN, and whether they are ours to write.

This is the only place that knows whether a machine is an Azure one (block devices) or an emulated one
(NBD exports).

A disk is written only if this run created it. What Azure says is attached at a LUN is one proof, the size
another; the machine gives the third. At first use a disk has to be empty: no partition, no signature, not
mounted, nothing but zeros in its first and its last MiB. It is then given a mark in its last MiB, with the
disk's own uniqueId, by which it is known from then on, on whatever machine. The serial number that Linux
shows of an Azure disk is recorded only: how it follows from the uniqueId is not documented.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from diskbook.base.errors import DiskbookError
from diskbook.base.units import MIB
from diskbook.machines.disk_list import OS_DISK
from diskbook.machines.ssh import Connection
from diskbook.machines.ssh_windows import WindowsConnection
from diskbook.scenario.layout import MARK_ROOM

MARK_BYTES = 4096  # one sector of any Azure disk
_MARK = b"diskbook created this disk\n"
_EMPTY_MIB = hashlib.sha256(bytes(MIB)).hexdigest()

# Azure's udev rules; machines with NVMe have data/by-lun, newer images have both. Read in Azure's
# documentation, unverified here.
_AZURE_DISKS = """for d in /dev/disk/azure/scsi1/lun* /dev/disk/azure/data/by-lun/*; do
[ -b "$d" ] && case "$d" in *-part*) ;; *) echo "${d##*/} $d $(readlink -f "$d") $(sudo -n blockdev \
--getsize64 "$d")";; esac
done; true"""

# What a machine knows of a block device: one line a fact, its name first.
_AZURE_FACTS = """set -e; d=$(readlink -f {path}); n={size}
for s in os root resource; do
if [ "$(readlink -f /dev/disk/azure/$s)" = "$d" ]; then echo "special $s"; fi; done
echo "lsblk $(sudo -n lsblk -J -b -o NAME,SIZE,TYPE,PTTYPE,FSTYPE,MOUNTPOINTS,SERIAL,WWN "$d" | tr -d '\\n')"
echo "wipefs $(sudo -n wipefs -J -n "$d" | tr -d '\\n')"
at() {{ sudo -n dd if="$d" bs=$1 skip=$2 count=1 status=none; }}
echo "head $(at 1048576 0 | sha256sum | cut -c-64)"
echo "tail $(at 1048576 $((n / 1048576 - 1)) | sha256sum | cut -c-64)"
echo "mark $(at 4096 $(((n - 1048576) / 4096)) | base64 -w0)"
"""
_AZURE_MARK = (
    'sudo -n dd of="$(readlink -f {path})" bs=4096 seek={block} count=1 iflag=fullblock oflag=direct '
    "conv=notrunc,fsync status=none"
)


@dataclass(frozen=True)
class Device:
    """A disk as a tool addresses it: fio's engine and target.

    `prefill_target` is the same disk for filling it: on the emulator an export with caps and latencies
    lifted, on Azure the device itself. `lun` is where it was found. On Windows the engine is "windows" and
    the target a physical drive ("#1").
    """

    engine: str
    target: str
    prefill_target: str
    size_bytes: int
    lun: int | None = None

    @property
    def for_prefill(self) -> Device:
        """The same disk as it is filled."""
        return replace(self, target=self.prefill_target)

    @property
    def needs_root(self) -> bool:
        """Whether the target is a block device, which only root may write."""
        return self.engine != "nbd"


@dataclass(frozen=True)
class Facts:
    """What a machine says of a disk.

    `foreign` lists what a disk of ours does not have at first, `in_use` what it never has. `mark` is what
    stands where our mark would be. `unique_id` is only told by emulated machines.
    """

    foreign: tuple[str, ...]
    in_use: tuple[str, ...]
    mark: bytes
    serial: str | None = None
    wwn: str | None = None
    unique_id: str | None = None


@dataclass(frozen=True)
class Seen:
    """A disk of ours: how to address it, what the machine says of it, and whether it was first seen now."""

    device: Device
    facts: Facts
    first: bool


def by_lun(connection: Connection) -> dict[int, Device]:
    """Disks that the machine sees now, by LUN.

    Raises
    ------
    DiskbookError
        When two different disks claim to be at one LUN.
    """
    if isinstance(connection, WindowsConnection):
        return windows_devices(connection.disks(), connection.host.name)
    listing = connection.run("command -v diskbook-disks >/dev/null && diskbook-disks")
    if listing.status == 0:
        return {
            int(lun): emulated_device(row)
            for lun, row in json.loads(listing.stdout).items()
            if lun != OS_DISK
        }
    rows = [line.split() for line in connection.check(_AZURE_DISKS).decode().splitlines()]
    return azure_devices(rows, connection.host.name)


def azure_devices(rows: list[list[str]], machine: str) -> dict[int, Device]:
    """Turn rows of LUN ("lun3" or "3"), link, device and bytes into devices; raises as `by_lun` does."""
    found: dict[int, Device] = {}
    behind: dict[int, str] = {}
    for name, path, real, size in rows:
        lun = int(name.removeprefix("lun"))
        if behind.setdefault(lun, real) != real:
            raise DiskbookError(
                f"machine {machine}: {behind[lun]} and {real} both claim to be LUN {lun}; nothing was written"
            )
        found.setdefault(lun, Device("libaio", path, path, int(size)))
    return found


def windows_devices(rows: list[dict[str, Any]], machine: str) -> dict[int, Device]:
    """Turn what `WindowsConnection.disks` says into devices by LUN; raises as `by_lun` does."""
    found: dict[int, Device] = {}
    for row in rows:
        target = f"#{row['number']}"
        if row["lun"] in found:
            raise DiskbookError(
                f"machine {machine}: {found[row['lun']].target} and {target} both claim LUN {row['lun']}; "
                "nothing was written"
            )
        fill = row.get("prefill_target", target)
        found[row["lun"]] = Device("windows", target, fill, int(row["size_bytes"]))
    return found


def at_lun(connection: Connection, lun: int, *, size_bytes: int, patience_s: float = 30.0) -> Device:
    """Return the disk at a LUN, waiting until the machine has noticed it.

    Raises
    ------
    DiskbookError
        When it does not appear, or is not of the size that was created.
    """
    deadline = time.monotonic() + patience_s
    while (found := by_lun(connection).get(lun)) is None:
        if time.monotonic() > deadline:
            raise DiskbookError(f"machine {connection.host.name} does not see the disk at LUN {lun}")
        time.sleep(0.2)
    if found.size_bytes != size_bytes:
        raise DiskbookError(
            f"machine {connection.host.name}: the disk at LUN {lun} has {found.size_bytes} bytes, "
            f"not the {size_bytes} of the one created for this run; nothing was written"
        )
    return replace(found, lun=lun)


def ours(connection: Connection, lun: int, *, size_bytes: int, unique_id: str) -> Seen:
    """Return the disk at a LUN once it is certain that this run created it; mark it at first use.

    Parameters
    ----------
    connection
        To the machine.
    lun
        Where Azure says that the disk is.
    size_bytes, unique_id
        Of the disk that was created, as Azure read them back.

    Raises
    ------
    DiskbookError
        When it is not that disk, or holds something. Nothing has been written then.
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
    return Seen(device, facts, first)


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


def azure_facts(text: str) -> Facts:
    """Read what `lsblk`, `wipefs` and `dd` said on an Azure machine.

    Raises
    ------
    ValueError
        When something is missing or cannot be read.
    """
    rows = [line.partition(" ")[::2] for line in text.splitlines()]
    said = dict(rows)
    try:
        (disk,) = json.loads(said["lsblk"])["blockdevices"]
        signatures = json.loads(said["wipefs"] or "{}").get("signatures") or []
        found = base64.b64decode(said["mark"], validate=True)
        edges = {"first": said["head"], "last": said["tail"]}
    except (KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"the machine's answer lacks {error}") from error
    foreign = [*_labels(disk), *(f"has a signature of {row['type']}" for row in signatures)]
    foreign += [f"holds data in its {edge} MiB" for edge, digest in edges.items() if digest != _EMPTY_MIB]
    in_use = [f"is the machine's own {name} disk" for word, name in rows if word == "special"]
    if disk["type"] != "disk":
        in_use.append(f"is a {disk['type']}, not a disk")
    if disk.get("children"):
        in_use.append("has partitions")
    places = [place for row in _with_children(disk) for place in row.get("mountpoints") or [] if place]
    in_use += [f"is mounted at {place}" for place in places]
    return Facts(tuple(foreign), tuple(in_use), found, disk.get("serial"), disk.get("wwn"))


def windows_facts(said: Mapping[str, Any]) -> Facts:
    """Read what `WindowsConnection.disk_facts` says of a disk."""
    foreign = [f"has a partition table ({said['style']})"] if said["style"] != "RAW" else []
    edges = {"first": said["head"], "last": said["tail"]}
    foreign += [f"holds data in its {edge} MiB" for edge, digest in edges.items() if digest != _EMPTY_MIB]
    in_use = ["is the machine's own disk"] if said["own"] else []
    if said["partitions"]:
        in_use.append("has partitions")
    found = base64.b64decode(said["mark"])
    return Facts(tuple(foreign), tuple(in_use), found, said["serial"], None, said.get("unique_id"))


def _labels(disk: Mapping[str, Any]) -> Iterator[str]:
    if disk.get("pttype"):
        yield f"has a partition table ({disk['pttype']})"
    if disk.get("fstype"):
        yield f"has a file system ({disk['fstype']})"


def _with_children(disk: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield disk
    for child in disk.get("children") or []:
        yield from _with_children(child)


def emulated_facts(text: str) -> Facts:
    """Read what an emulated machine says of a disk; it has read the same places through the disk's export."""
    said = json.loads(text)
    foreign = [f"holds data in its {edge} MiB" for edge in ("first", "last") if not said[f"{edge}_mib_empty"]]
    content = base64.b64decode(said["mark"])
    return Facts(tuple(foreign), (), content, said["unique_id"], None, said["unique_id"])


def _facts(connection: Connection, device: Device) -> Facts:
    if device.engine == "nbd":
        return emulated_facts(connection.check(f"diskbook-disk show {device.lun}").decode())
    if isinstance(connection, WindowsConnection):
        return windows_facts(connection.disk_facts(_drive(device)))
    script = _AZURE_FACTS.format(path=device.target, size=device.size_bytes)
    try:
        return azure_facts(connection.check(script, timeout_s=120).decode())
    except ValueError as error:
        raise DiskbookError(
            f"machine {connection.host.name} does not say what is on the disk at LUN {device.lun} ({error}); "
            "nothing was written"
        ) from error


def _write_mark(connection: Connection, device: Device, content: bytes) -> None:
    if isinstance(connection, WindowsConnection):
        connection.write_mark(_drive(device), device.size_bytes - MARK_ROOM, content)
        return
    block = (device.size_bytes - MARK_ROOM) // MARK_BYTES
    emulated = f"diskbook-disk mark {device.lun}"
    azure = _AZURE_MARK.format(path=device.target, block=block)
    connection.check(emulated if device.engine == "nbd" else azure, stdin=content)


def _drive(device: Device) -> int:
    """Number of a physical drive."""
    return int(device.target.removeprefix("#"))


def _is_mark(content: bytes) -> bool:
    return content.startswith(_MARK)


def emulated_device(row: dict[str, Any]) -> Device:
    """Turn an entry of what an emulated machine says of its disks into a device."""
    return Device(row["engine"], row["uri"], row["prefill_uri"], int(row["size_bytes"]))
