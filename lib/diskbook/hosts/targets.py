"""Places to measure on your own hosts: checked before anything is written, created, recognised, removed.

A place is a file in a folder, or a block device. Each ends with a mark of the run in its last MiB, as disks
that a run creates in a cloud do; nothing is measured, written or removed that does not carry it.

A block device is refused if it is in use, holds data, or lies in memory.
"""

import base64
import posixpath
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from diskbook.design.layout import MARK_ROOM
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB, KIB, MIB
from diskbook.hosts import disks, disks_azure, shell_script
from diskbook.hosts.device import MARK_BYTES, Device
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
    shown = f"({' on '.join(layers)}), which is not a disk"
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
    """Read blocks spread evenly over a range of bytes; return how many, and where the first data are, or "".

    Raises DiskbookError when the host does not say.
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


def _grid(start: int, end: int) -> tuple[int, int, int]:
    """First block of a range, how many blocks it has, and how many of them are looked at."""
    first, last = start // SAMPLE_BYTES, end // SAMPLE_BYTES
    return first, last - first, min(SAMPLES, last - first)


def _each_sample(device: Device, start: int, end: int, step: str) -> str:
    first, blocks, count = _grid(start, end)
    sizes = {"size": SAMPLE_BYTES, "first": first, "blocks": blocks, "count": count, "step": step}
    return _EACH_SAMPLE.format(root=device.sudo, device=shlex.quote(device.target), **sizes)


OVER_A_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs")
SPARE_BYTES, SPARE_SHARE = GIB, 0.05
"""Left free beside a file: the lesser of the two, of the file system's size."""

# One line a fact, its name first.
_LOOK = LAYERS.replace("{", "{{").replace("}", "}}") + shell_script("look")
_WRITE_MARK = (
    "dd of={file} bs=4096 seek={block} count=1 iflag=fullblock oflag=direct conv=notrunc,fsync status=none"
)
_READ_MARK = "dd if={file} bs=4096 skip={block} count=1 status=none 2>/dev/null | base64 -w0"
_MAKE = "set -C; : >{file} && truncate -s {size} {file}"
_NO_ROOM = ("No space left", "Disk quota exceeded")


@dataclass(frozen=True)
class Place:
    """Where one disk of the scenario is measured on a host.

    `path` is what the hosts file names, `target` what is measured: a file, in `folder` where that is ours,
    or a device. `unique_id` is what its mark holds.
    """

    disk: str
    path: str
    target: str
    folder: str | None
    unique_id: str
    needed_bytes: int
    is_device: bool = False
    allow_destroy: bool = False

    @property
    def size_bytes(self) -> int:
        """Size of the file: what is measured, and the mark behind it."""
        return self.needed_bytes + MARK_ROOM

    @property
    def mark(self) -> bytes:
        """The block that the last MiB begins with."""
        return disks.mark(self.unique_id)


def of(entry: dict[str, Any], disk: str, token: str, is_folder: bool, needed_bytes: int) -> Place:
    """Make the place of a disk from its entry of the manifest; a folder gets one of ours in it."""
    unique_id = f"own-{token}-{disk}"
    if "device" in entry:
        path = entry["device"]
        return Place(disk, path, path, None, unique_id, needed_bytes, True, entry["allow_destroy"])
    path = entry["path"]
    if not is_folder:
        return Place(disk, path, path, None, unique_id, needed_bytes)
    folder = own_folder(path, token)
    return Place(disk, path, posixpath.join(folder, f"{disk}.dat"), folder, unique_id, needed_bytes)


def own_folder(path: str, token: str) -> str:
    """Name the folder of ours in a folder of the user's."""
    return posixpath.join(path, f"diskbook-{token}")


def look(connection: Connection, path: str) -> dict[str, str]:
    """Ask a host what is at a path; nothing is written."""
    text = connection.check(_LOOK.format(path=shlex.quote(path))).decode(errors="replace")
    return {name: value.strip() for name, _, value in (line.partition(" ") for line in text.splitlines())}


def check_folder(host: str, path: str, facts: dict[str, str]) -> None:
    """Refuse a folder that is none, is reached by a link, or may not be written."""
    kind = facts["kind"]
    if kind == "nowhere" or (kind == "new" and facts.get("real") is None):
        raise _refused(host, path, "is not there, nor is the folder that it would lie in; make that first")
    if facts["real"] != path:
        raise _refused(host, path, f"is a way by a link to {facts['real']}; name that itself, if it is meant")
    if kind == "device":
        raise _refused(host, path, "is a device; name it in devices, not in paths")
    if kind == "file":
        raise _refused(host, path, "is there already, and is not written over; name a folder, or a new file")
    if "writable" not in facts:
        raise _refused(host, path, "cannot be written by who signs in; choose another, or change its owner")


def check_file(host: str, place: Place, facts: dict[str, str]) -> dict[str, Any]:
    """Refuse a place that would not measure a disk, or has no room; return what is recorded of it."""
    file_system, _, source = facts.get("system", "").partition(" ")
    source = source.strip()
    memory = memory_text([file_system, source, *facts.get("layers", "").split()[1:]])
    if memory:
        raise _refused(host, place.path, f"{memory}; name another folder")
    try:
        total, room = int(facts["total"]), int(facts["room"])
    except (KeyError, ValueError):
        raise DiskbookError(f"host {host} does not say how much room {place.path} has") from None
    spare = min(SPARE_BYTES, int(SPARE_SHARE * total))
    if room < place.size_bytes + spare:
        raise _refused(
            host,
            place.path,
            f"has {room / GIB:.1f} GiB free, and {place.size_bytes / GIB:.1f} GiB are measured with "
            f"{spare / GIB:.1f} GiB left over; make room, or measure less (all_workloads.working_set_gib)",
        )
    where = f"file on {file_system or '?'} ({source or '?'})"
    where += ", over a network" if file_system.startswith(OVER_A_NETWORK) else ""
    return {
        "kind": "file",
        "path": place.path,
        "file_system": file_system,
        "source": source,
        "where": where,
    }


def check_device(connection: Connection, host: str, place: Place, facts: dict[str, str]) -> dict[str, Any]:
    """Refuse a device that is none, in use, too small, or not empty without leave; return its record."""
    device = _device(host, place, facts)
    seen = disks_azure.facts(connection, device, kinds=())
    if seen.in_use:
        raise _refused(host, place.path, f"{' and '.join(seen.in_use)}; nothing was written: free it first")
    _check_free(connection.run(claiming(device)), host, place)
    looked_at, data = _sampled(connection, host, device, place.needed_bytes)
    holds = " and ".join(seen.foreign) or data
    if holds and seen.mark != place.mark and not place.allow_destroy:
        why = f"{holds} (looked at: {looked_at}); nothing was written: name an empty one, or write "
        raise _refused(host, place.path, f"{why}allow_destroy = true for this one")
    return {
        "kind": "device",
        "path": place.path,
        "real": facts["real"],
        "size_bytes": device.size_bytes,
        "by_user": device.by_user,
        "where": f"device {place.path}",
        "serial": seen.serial,
        "wwn": seen.wwn,
        "held_before": holds,
        "looked_at": looked_at,
    }


def _check_free(output: Output, host: str, place: Place) -> None:
    """Refuse a device that another program holds, by what a script said that began with `claiming`."""
    if why := in_use_text(output):
        raise _refused(host, place.path, f"{why}; nothing was written: free it first")


def _sampled(connection: Connection, host: str, device: Device, n_bytes: int) -> tuple[str, str]:
    """Look for data on a device whose first `n_bytes` are to be written; say what was looked at."""
    written, data = sample(connection, host, device, 0, n_bytes)
    rest, more = sample(connection, host, device, n_bytes, device.size_bytes - MARK_ROOM)
    blocks = (
        f"{written} blocks of 64 KiB over the {n_bytes / MIB:,.0f} MiB to be written, {rest} over the rest"
    )
    return f"signatures, first and last MiB, {blocks}", data or more


def _device(host: str, place: Place, facts: dict[str, str]) -> Device:
    """Return a device that may be written and is large enough, whatever stands on it."""
    why, size = "", int(facts.get("size") or 0)
    if facts["kind"] in ("nowhere", "new"):
        why = "is not there; name one of those that lsblk lists there"
    elif facts["kind"] != "device" or not facts["real"].startswith("/dev/"):
        why = "is not a block device in /dev; name one of those that lsblk lists there"
    elif "by-user" not in facts and "by-root" not in facts:
        why = "may not be written by who signs in, nor by sudo without a password; give leave to one of them"
    elif size < place.size_bytes:
        why = f"has {size / GIB:.2f} GiB, and {place.size_bytes / GIB:.2f} GiB are measured; measure less "
        why += "(all_workloads.working_set_gib)"
    elif memory := memory_text(facts.get("layers", "").split()):
        why = f"{memory}; name another"
    if why:
        raise _refused(host, place.path, why)
    return Device("libaio", place.path, place.path, size, by_user="by-user" in facts)


def make(connection: Connection, host: str, place: Place, read_back: dict[str, Any]) -> Device:
    """Make a file, or mark a device; one that is ours already is taken as it is.

    Raises DiskbookError when the file is not ours, or takes no unbuffered I/O, and is removed again then.
    """
    device = device_of(place, read_back)
    if _mark_of(connection, device) == place.mark:
        return device
    if place.is_device:
        write = device.sudo + _WRITE_MARK.format(file=shlex.quote(device.target), block=_mark_block(device))
        output = connection.run(f"{claiming(device)} && {write}", stdin=place.mark)
        _check_free(output, host, place)
    else:
        _make_file(connection, host, place)
    if _mark_of(connection, device) != place.mark:
        raise DiskbookError(f"host {host}: {place.target} does not keep its mark; nothing was measured")
    return device


def known(connection: Connection, host: str, place: Place, read_back: dict[str, Any]) -> Device:
    """Return what is measured if this run made it; DiskbookError when it is gone, in use or not ours."""
    device = device_of(place, read_back)
    if _mark_of(connection, device) != place.mark:
        raise DiskbookError(
            f"host {host}: {place.target} is gone, or does not carry the mark of this run, so nothing was "
            "written there"
        )
    if place.is_device:
        _check_free(connection.run(claiming(device)), host, place)
        if signatures := _new_signatures(connection, device, read_back):
            raise _refused(host, place.path, f"{signatures} since the run marked it; nothing was written")
    return device


def _new_signatures(connection: Connection, device: Device, read_back: dict[str, Any]) -> str:
    """Name the file systems and partition tables that somebody made on a device of ours since."""
    seen = disks_azure.facts(connection, device, kinds=())
    return " and ".join(
        text for text in seen.foreign if text.startswith("has ") and text not in read_back["held_before"]
    )


def device_of(place: Place, read_back: dict[str, Any]) -> Device:
    """Return a place as tools address it."""
    if place.is_device:
        size, by_user = read_back["size_bytes"], read_back["by_user"]
        return Device("libaio", place.target, place.target, size, by_user=by_user)
    return Device("libaio", place.target, place.target, place.size_bytes, by_user=True)


def remove(connection: Connection, place: Place, read_back: dict[str, Any], filled: bool) -> str:
    """Remove a file of ours, or empty the parts of a device that a next run looks at; say why not, or "".

    What is gone already is as good as removed. `filled` says that the run has filled the device.
    """
    if connection.run(f"[ -e {shlex.quote(place.target)} ]").status:
        return ""
    device = device_of(place, read_back)
    if _mark_of(connection, device) != place.mark:
        return f"{place.target} does not carry the mark of this run, so it was left as it is"
    script = f"rm -f -- {shlex.quote(place.target)}"
    if place.is_device:
        why = in_use_text(connection.run(claiming(device)))
        why = why or _new_signatures(connection, device, read_back)
        if why:
            return f"{place.target} {why}, so it was left as it is"
        zeros = f"{device.sudo}dd if=/dev/zero of={shlex.quote(place.target)} conv=notrunc,fsync status=none"
        steps = []
        if filled:
            steps = [_each_sample(device, 0, place.needed_bytes, _EMPTY), f"{zeros} count=1 bs={MIB}"]
        # Last: until then it is known as ours.
        steps.append(f"{zeros} count=1 bs={MARK_BYTES} seek={_mark_block(device)}")
        script = " && ".join(steps)
    output = connection.run(script, timeout_s=120)
    return f"{place.target}: {output.stderr.decode(errors='replace').strip()}" if output.status else ""


def make_folder(connection: Connection, host: str, folder: str) -> None:
    """Make a folder of ours, which the manifest has named before; that of an earlier session is taken."""
    quoted = shlex.quote(folder)
    is_ours = f"[ -d {quoted} ] && [ ! -L {quoted} ] && [ -O {quoted} ]"
    output = connection.run(f"mkdir {quoted} 2>&1 || {{ {is_ours}; }}")
    if output.status:
        message = output.stdout.decode(errors="replace").strip()
        raise DiskbookError(f"host {host}: {folder} cannot be made ({message}); see what is there")


def remove_folder(connection: Connection, folder: str) -> str:
    """Remove a folder of ours with the jobs in it; say why not, or nothing. It is left if it holds more."""
    quoted = shlex.quote(folder)
    script = f"[ -d {quoted} ] || exit 0; rm -rf -- {quoted}/jobs; rmdir -- {quoted}"
    output = connection.run(script)
    return f"{folder} holds something that the run did not make, so it was left" if output.status else ""


def _make_file(connection: Connection, host: str, place: Place) -> None:
    quoted = shlex.quote(place.target)
    output = connection.run(_MAKE.format(file=quoted, size=place.size_bytes))
    if output.status:
        message = output.stderr.decode(errors="replace").strip()
        raise DiskbookError(f"host {host}: {place.target} cannot be made ({message}); see what is there")
    block = _mark_block(device_of(place, {}))
    output = connection.run(_WRITE_MARK.format(file=quoted, block=block), stdin=place.mark)
    if output.status:
        connection.run(f"rm -f -- {quoted}")
        message = output.stderr.decode(errors="replace").strip()
        why = "the file system takes no unbuffered I/O (O_DIRECT), so a cache would be measured; name another"
        if any(words in message for words in _NO_ROOM):
            why = "make room there"
        raise DiskbookError(f"host {host}: {place.path} cannot be measured ({message}): {why}")


def _mark_of(connection: Connection, device: Device) -> bytes:
    script = device.sudo + _READ_MARK.format(file=shlex.quote(device.target), block=_mark_block(device))
    return base64.b64decode(connection.run(script).stdout)


def _mark_block(device: Device) -> int:
    return (device.size_bytes - MARK_ROOM) // MARK_BYTES


def _refused(host: str, path: str, why: str) -> DiskbookError:
    return DiskbookError(f"host {host}: {path} {why}")
