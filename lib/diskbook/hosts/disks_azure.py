"""Disks of a Linux machine on Azure: block devices by LUN, and what stands on them, by shell scripts."""

import base64
import binascii
import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from diskbook.design.layout import MARK_ROOM
from diskbook.facts.errors import DiskbookError
from diskbook.facts.linux import FIRST_DATA_NAMESPACE, NVME_MODEL
from diskbook.hosts import shell_script
from diskbook.hosts.device import MARK_BYTES, Device, Facts, data_at_edges
from diskbook.hosts.ssh import Connection

WHOLE = ("disk",)
"""Kinds of block devices that a data disk of Azure's is."""

# Azure's udev rules; machines with NVMe have data/by-lun, newer images have both. Read in Azure's
# documentation, unverified here.
_LIST = """for d in /dev/disk/azure/scsi1/lun* /dev/disk/azure/data/by-lun/*; do
[ -b "$d" ] && case "$d" in *-part*) ;; *) echo "${d##*/} $d $(readlink -f "$d") $(sudo -n blockdev \
--getsize64 "$d")";; esac
done; true
"""
# Where no rules make those links, as on Ubuntu 24.04 (Azure's page nvme-linux.md names 25.04 as the first
# that has azure-vm-utils): a data disk is namespace LUN + 2 of Azure's own NVMe controller. Read in
# Azure/azure-vm-utils (doc/disk-identification.md, udev/80-azure-disk.rules), unverified here. Partitions
# have a p in their names, the hidden paths of a multipath namespace a c.
NAMESPACES = f"""for b in /sys/class/block/nvme*n*; do
case "${{b##*/}}" in *[pc]*) continue;; esac
m=$(cat "$b/device/model" 2>/dev/null) || continue
case "$m" in "{NVME_MODEL}"|"{NVME_MODEL} "*) ;; *) continue;; esac
s=$(cat "$b/nsid") && [ "$s" -ge {FIRST_DATA_NAMESPACE} ] || continue
d=/dev/${{b##*/}}; echo "$((s - {FIRST_DATA_NAMESPACE})) $d $d $(($(cat "$b/size") * 512))"
done; true"""

# What a machine knows of a block device: one line a fact, its name first.
_FACTS = shell_script("disk-facts")
_MARK = (
    'sudo -n dd of="$(readlink -f {path})" bs=4096 seek={block} count=1 iflag=fullblock oflag=direct '
    "conv=notrunc,fsync status=none"
)


def by_lun(connection: Connection) -> dict[int, Device]:
    """Disks that the machine sees now, by LUN; raises as `disks.by_lun` does."""
    rows = [line.split() for line in connection.check(_LIST + NAMESPACES).decode().splitlines()]
    return devices(rows, connection.host.name)


def devices(rows: list[list[str]], machine: str) -> dict[int, Device]:
    """Turn rows of LUN ("lun3" or "3"), link, device and bytes into devices; raises as `by_lun` does.

    Rows of one disk, links and the namespace of an NVMe controller, have to agree.
    """
    at_lun: dict[int, Device] = {}
    block_devices: dict[int, str] = {}
    for name, path, real, size in rows:
        lun = int(name.removeprefix("lun"))
        if block_devices.setdefault(lun, real) != real:
            raise DiskbookError(
                f"machine {machine}: {block_devices[lun]} and {real} both claim to be LUN {lun}; "
                "nothing was written"
            )
        at_lun.setdefault(lun, Device("libaio", path, path, int(size)))
    return at_lun


def facts(connection: Connection, device: Device, kinds: Collection[str] = WHOLE) -> Facts:
    """Ask a machine what is on a disk of some kinds (`lsblk`'s words); DiskbookError when it does not say."""
    script = _as(device, _FACTS.format(path=shlex.quote(device.target), size=device.size_bytes))
    try:
        return parse_facts(connection.check(script, timeout_s=120).decode(), kinds)
    except ValueError as error:
        what = f"the disk at LUN {device.lun}" if device.lun is not None else device.target
        raise DiskbookError(
            f"machine {connection.host.name} does not say what is on {what} ({error}); nothing was written"
        ) from error


def _as(device: Device, script: str) -> str:
    """A script as who signs in runs it, where that user may write the device."""
    return script if device.needs_root else script.replace("sudo -n ", "")


def parse_facts(text: str, kinds: Collection[str] = WHOLE) -> Facts:
    """Read what `lsblk`, `wipefs` and `dd` said of a block device; ValueError when that cannot be read."""
    rows = [line.partition(" ")[::2] for line in text.splitlines()]
    answer = dict(rows)
    try:
        (disk,) = json.loads(answer["lsblk"])["blockdevices"]
        signatures = json.loads(answer["wipefs"] or "{}").get("signatures") or []
        mark = base64.b64decode(answer["mark"], validate=True)
        digests = {"first": answer["head"], "last": answer["tail"]}
    except (KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"the machine's answer lacks {error}") from error
    foreign = [*_labels(disk), *(f"has a signature of {row['type']}" for row in signatures)]
    foreign += data_at_edges(digests)
    in_use = [f"is the machine's own {name} disk" for word, name in rows if word == "special"]
    if kinds and disk["type"] not in kinds:
        in_use.append(f"is a {disk['type']}, not a disk")
    if disk.get("children"):
        in_use.append("has partitions")
    places = [place for row in _with_children(disk) for place in row.get("mountpoints") or [] if place]
    in_use += [f"is mounted at {place}" for place in places]
    return Facts(tuple(foreign), tuple(in_use), mark, disk.get("serial"), disk.get("wwn"))


def _labels(disk: Mapping[str, Any]) -> Iterator[str]:
    if disk.get("pttype"):
        yield f"has a partition table ({disk['pttype']})"
    if disk.get("fstype"):
        yield f"has a file system ({disk['fstype']})"


def _with_children(disk: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield disk
    for child in disk.get("children") or []:
        yield from _with_children(child)


def write_mark(connection: Connection, device: Device, content: bytes) -> None:
    """Write a block to the beginning of the last MiB of a disk."""
    block = (device.size_bytes - MARK_ROOM) // MARK_BYTES
    script = _MARK.format(path=shlex.quote(device.target), block=block)
    connection.check(_as(device, script), stdin=content)
