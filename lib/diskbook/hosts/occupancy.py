"""Whether a block device of a host is in use, holds data, or lies in memory."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import KIB, MIB
from diskbook.hosts.device import Device
from diskbook.hosts.ssh import Connection, Output

IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs", "memfd")
MEMORY_DEVICES = ("/dev/zram", "/dev/ram", "/dev/nullb")
UNSEEN = "unseen"
"""A loop device's file is on a file system that the host does not show."""
SAMPLES, SAMPLE_BYTES = 512, 64 * KIB

# What a device lies on, one layer a line: devices, and the file system of a loop device's file.
LAYERS = f"""layers() {{ for k in $(lsblk -s -n -r -o KNAME "${{1%%[*}}" 2>/dev/null); do echo "/dev/$k"
b=$(cat "/sys/class/block/$k/loop/backing_file" 2>/dev/null) || continue
case $b in /memfd:*) echo memfd; continue;; esac
set -- $(findmnt -n -o FSTYPE,SOURCE -T "$(dirname "$b")" | tail -n 1); echo "${{1:-{UNSEEN}}}"
case $2 in /dev/*) layers "$2";; esac
done; }}
"""
# It opens the device for reading and writing, and exclusively; -n keeps it from writing.
_CLAIM = "{root}wipefs -a -n {device} >/dev/null"
_EACH_SAMPLE = """{root}sh -c 'i=0; while [ $i -lt {count} ]; do at=$(({first} + i * {blocks} / {count}))
dd bs={size} count=1 status=none {step}
i=$((i + 1)); done' {device}"""
_READ = 'if="$0" skip=$at iflag=fullblock || echo unreadable'
_EMPTY = 'if=/dev/zero of="$0" seek=$at conv=notrunc || exit 1'


def memory_text(layers: Sequence[str]) -> str:
    """Say that one of the layers below a place is memory, or may be; "" where none is."""
    shown = f"({' on '.join(layers)}), which is no disk"
    if any(layer in IN_MEMORY or layer.startswith(MEMORY_DEVICES) for layer in layers):
        return f"lies in memory {shown}"
    return f"may lie in memory {shown}" if UNSEEN in layers else ""


def claiming(device: Device) -> str:
    """Command that fails where another program holds a device by O_EXCL, as file systems and mkfs do."""
    return _CLAIM.format(root=device.sudo, device=shlex.quote(device.target))


def in_use_text(output: Output) -> str:
    """Say why a script that began with `claiming` failed; "" where it did not."""
    message = output.stderr.decode(errors="replace").strip()
    if output.status and "busy" in message:
        return "is in use: another program has opened it exclusively"
    return f"cannot be opened exclusively ({message})" if output.status else ""


def sample(connection: Connection, host: str, device: Device, start: int, end: int) -> tuple[int, str]:
    """Read blocks spread evenly over a range of bytes of a device.

    Returns
    -------
    tuple
        How many blocks were looked at, and where the first data were; "" where all of them hold zeros.

    Raises
    ------
    DiskbookError
        When the host does not say.
    """
    first, blocks, count = _grid(start, end)
    script = f"{_each_sample(device, start, end, _READ)} | cmp -n {count * SAMPLE_BYTES} - /dev/zero"
    output = connection.run(script, timeout_s=300)
    if output.status == 0:
        return count, ""
    differs = re.search(rb"differ: \w+ (\d+)", output.stdout)
    if differs is None:
        message = output.stderr.decode(errors="replace").strip()
        raise DiskbookError(
            f"host {host} does not say what is on {device.target} ({message}); nothing was written"
        )
    block = first + (int(differs[1]) - 1) // SAMPLE_BYTES * blocks // count
    return count, f"holds data {block * SAMPLE_BYTES / MIB:,.1f} MiB from its start"


def emptying(device: Device, start: int, end: int) -> str:
    """Command that empties the blocks that `sample` reads, so that the next run finds a blank device."""
    return _each_sample(device, start, end, _EMPTY)


def _grid(start: int, end: int) -> tuple[int, int, int]:
    """First block of a range, how many blocks it has, and how many of them are looked at."""
    first, last = start // SAMPLE_BYTES, end // SAMPLE_BYTES
    return first, last - first, min(SAMPLES, last - first)


def _each_sample(device: Device, start: int, end: int, step: str) -> str:
    first, blocks, count = _grid(start, end)
    sizes = {"size": SAMPLE_BYTES, "first": first, "blocks": blocks, "count": count, "step": step}
    return _EACH_SAMPLE.format(root=device.sudo, device=shlex.quote(device.target), **sizes)
