"""`diskspd` on an emulated Windows machine: fio runs the same load, and its result is told as DiskSpd would.

    diskspd -b8K -t8 -o5 -r -w100 -Sh -W1 -d5 -L -Rxml "#1"

Targets are the machine's disks: "#1" is the one at LUN 0, "#1:fill" the same without caps and latencies; or a
file on one of its volumes, "C:\\ClusterStorage\\v\\diskbook.dat", which -c makes. The version in the XML
says that it is emulated. Since it is fio, no difference between the two tools can be seen.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath
from typing import Any

from diskbook.design.diskspd_arguments import Arguments, parse_words, render
from diskbook.design.model import Workload
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.files import locked, write_atomic
from diskbook.facts.linux import cpu_ticks
from diskbook.facts.units import MS_PER_S
from diskbook.tools import fio
from diskbook.tools.record import Load, Measurement, UnusableError
from diskbook_emulator import FOLDER_VARIABLE, windows_xml
from diskbook_emulator.layout_file import DEPTH
from diskbook_emulator.volumes import REGION_BYTES

FILL = ":fill"
NO_FILE, NO_PATH, NO_ROOM = 2, 3, 112
"""Windows' numbers of why a file cannot be opened or made."""
_DIRECTIONS = ("read", "write")
_OFFSET = "--offset="
_TARGET = re.compile(r"#(?P<number>[0-9]+)(?P<fill>:fill)?")


@dataclass(frozen=True)
class Disk:
    """An emulated disk, or a file on an emulated volume, as fio addresses it: `offset` is where it begins."""

    target: str
    size_bytes: int
    engine: str = "nbd"
    offset: int = 0


def main(words: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if words is None else words)
    try:
        sys.stdout.write(run(given, disks_of_machine()))
    except UnusableError as error:
        print(f"ERROR: {error.reason}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return 1
    except DiskbookError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    return 0


def disks_of_machine() -> dict[str, dict[str, Any]]:
    """Disks of this machine by LUN, as the emulator wrote them."""
    text = (Path(os.environ[FOLDER_VARIABLE]) / "disks.json").read_text("utf-8")
    disks: dict[str, dict[str, Any]] = json.loads(text)
    return disks


def volumes_of_machine() -> list[dict[str, Any]]:
    """Paths that lead to volumes on this machine, as the emulator wrote them."""
    file = Path(os.environ[FOLDER_VARIABLE]) / "volumes.json"
    volumes: list[dict[str, Any]] = json.loads(file.read_text("utf-8")) if file.exists() else []
    return volumes


def run(
    words: list[str], disks: dict[str, dict[str, Any]], volumes: list[dict[str, Any]] | None = None
) -> str:
    """Run the load of DiskSpd's arguments on an emulated disk or volume; returns DiskSpd's XML.

    Raises UsageError for arguments that DiskSpd, or its stand-in, does not take, and UnusableError when fio
    did not measure.
    """
    asked = parse_words(words)
    disk = _disk(asked, disks, volumes)
    if asked.output != "xml":
        raise UsageError("the emulated DiskSpd writes XML only; add -Rxml")
    with tempfile.TemporaryDirectory() as folder:
        measured = _measure(asked, disk, Path(folder))
    return windows_xml.document(asked, disk.size_bytes, measured, datetime.now(UTC))


def _disk(asked: Arguments, disks: dict[str, dict[str, Any]], volumes: list[dict[str, Any]] | None) -> Disk:
    if len(set(asked.targets)) != 1:
        raise UsageError("the emulated DiskSpd drives one target; name one, for example #1")
    if not asked.targets[0].startswith("#"):
        return _file(asked, volumes_of_machine() if volumes is None else volumes)
    match = _TARGET.fullmatch(asked.targets[0])
    row = disks.get(str(int(match["number"]) - 1)) if match else None
    if match is None or row is None:
        there = ", ".join(f"#{int(lun) + 1}" for lun in sorted(disks, key=int)) or "none"
        raise UsageError(
            f"Error opening file: {asked.targets[0]} [2]; disks of this emulated machine: {there}"
        )
    return Disk(row["prefill_uri" if match["fill"] else "uri"], int(row["size_bytes"]))


def _file(asked: Arguments, volumes: list[dict[str, Any]]) -> Disk:
    """Find a file on a volume, or make it (-c)."""
    target = PureWindowsPath(asked.targets[0])
    row = next((row for row in volumes if PureWindowsPath(row["path"]) == target.parent), None)
    if row is None:
        raise not_opened(target, NO_PATH)
    check_depth(asked)
    folder, name = Path(row["files"]), target.name.lower()
    if asked.create_bytes is not None:
        try:
            make_files(folder, {name: asked.create_bytes}, row["size_bytes"])
        except NoRoomError:
            raise not_opened(target, NO_ROOM) from None
    extent = read_extents(folder).get(name)
    if extent is None:
        raise not_opened(target, NO_FILE)
    return Disk(row["uri"], extent.size, offset=extent.offset)


def not_opened(target: PureWindowsPath, code: int) -> UsageError:
    """Say that a file cannot be opened, with Windows' number of the reason."""
    return UsageError(f"Error opening file: {target} [{code}]")


def check_depth(asked: Arguments) -> None:
    """Refuse more I/Os of a thread at a time than a connection to an emulated volume has."""
    if asked.depth > DEPTH:
        raise UsageError(f"emulated volumes take {DEPTH} I/Os of a thread at a time, not {asked.depth}")


def workload_of(asked: Arguments, disk: Disk) -> Workload:
    """Say the load in the workbook's terms. There is no file cache on an emulated disk, so none is played."""
    end = min(asked.max_offset or disk.size_bytes, disk.size_bytes)  # what is beyond it is another's
    bounded = replace(asked, max_offset=end)
    plain = replace(bounded, cache="off", memory_mapped=False)
    series_s = (asked.iops_interval_ms or 1000) / 1000
    line = {"name": "emulated", "verbatim": subprocess.list2cmdline(render(plain))}
    return Workload.model_validate({**line, "series_s": series_s})


def command(asked: Arguments, disk: Disk, seed: int) -> fio.Job:
    """Build fio's command for a line of DiskSpd. DiskSpd tells its threads apart, so fio must."""
    job = fio.command(workload_of(asked, disk), disk, seed=seed)
    words = [word for word in job.argv if word != "--group_reporting"]
    words = [word for word in words if not word.startswith(_OFFSET)]
    return replace(job, argv=(*words, f"{_OFFSET}{disk.offset + asked.base_offset}"))


def _measure(asked: Arguments, disk: Disk, folder: Path) -> windows_xml.Measured:
    load, job = workload_of(asked, disk), command(asked, disk, asked.seed or 1)
    for note in job.notes:
        print(f"emulated: {note}", file=sys.stderr)
    with watched() as cores:
        done = subprocess.run(job.argv, check=False, cwd=folder, capture_output=True, text=True)
    fio.parse_output(done.stdout, "fio", messages=done.stderr, runtime_s=load.runtime_s)
    whole = json.loads(done.stdout[done.stdout.index("{\n") :])
    whole["jobs"] = [ended_in_time(job, asked) for job in whole["jobs"]]
    total = over_duration(fio.parse_output(json.dumps(whole), "fio"), asked)
    logs = [(folder / job.logs[kind]) for kind in ("lat_log", "iops_log")]
    texts = [log.read_text("utf-8") if log.exists() else "" for log in logs]
    series = fio.parse_logs(texts[0], texts[1], load.series_s, "fio")
    return windows_xml.Measured(total, threads_of(whole), series, cores)


def ended_in_time(job: Mapping[str, Any], asked: Arguments) -> dict[str, Any]:
    """Count the I/Os of a thread that ended in its time, as DiskSpd does.

    fio's `total_ios` are those that it began. It goes on until the last of them has ended, which behind a cap
    may be seconds later, and its bytes are those of all that ended since the warm-up. A thread that is held
    up by nothing but its queue has that full at the end of its time: so many of them were late. One with a
    rate begins an I/O at the very moment at which its time does.
    """
    begun = {name: int(job[name]["total_ios"]) for name in _DIRECTIONS}
    ended = sum(int(job[name]["io_bytes"]) // asked.block_size for name in _DIRECTIONS) - asked.depth
    total = sum(begun.values())
    share = max(0, ended if asked.rate is None else total - 1) / max(1, total)
    return {**job, **{name: {**job[name], "total_ios": round(share * begun[name])} for name in begun}}


def over_duration(total: Measurement, asked: Arguments) -> Measurement:
    """Say rates over the time for which DiskSpd was to measure (see `ended_in_time`)."""
    seconds = min(float(asked.duration_s), total.runtime_ms / MS_PER_S)
    directions = {
        name: replace(
            part,
            iops=part.ios / seconds,
            bw_bytes=part.ios * asked.block_size / seconds,
            runtime_ms=seconds * MS_PER_S,
        )
        for name, part in total.directions.items()
    }
    return replace(total, directions=directions)


def threads_of(whole: Mapping[str, Any]) -> tuple[Measurement, ...]:
    return tuple(_alone(whole, job) for job in whole["jobs"])


def _alone(whole: Mapping[str, Any], job: dict[str, Any]) -> Measurement:
    """One job; at a low rate, or in a short time, it may have done nothing."""
    if not any(job[name]["total_ios"] for name in ("read", "write")):
        return Measurement(job["jobname"], "", Load(), {})
    return fio.parse_output(json.dumps({**whole, "jobs": [job]}), "fio")


# ---- how busy the cores of the computer that emulates were, which all emulated machines share


_STAT = Path("/proc/stat")
Cores = list[tuple[float, float]]
"""Percent of user and of kernel time, by core."""


@contextmanager
def watched() -> Iterator[Cores]:
    """Give a list that holds, at the end of the context, how busy each core was in it."""
    cores: Cores = []
    before = _STAT.read_bytes()
    yield cores
    cores += shares(before, _STAT.read_bytes())


def shares(before: bytes, after: bytes) -> Cores:
    """Compute user and kernel time of each core between two readings of /proc/stat; idle cores are kept."""
    first, last = cpu_ticks(before), cpu_ticks(after)
    spent = [
        [max(0, end - start) for start, end in zip(first[name], last[name], strict=True)]
        for name in last
        if name != "cpu" and name in first
    ]
    return [
        (100 * (user + nice) / total, 100 * (system + irq + softirq) / total)
        for user, nice, system, idle, iowait, irq, softirq, steal in spent
        if (total := user + nice + system + idle + iowait + irq + softirq + steal)
    ]


_INDEX, _LOCK = "extents.json", "lock"
_BUSY = DiskbookError("the files of an emulated volume are being made by somebody else")

Extents = dict[str, "Extent"]


class NoRoomError(DiskbookError):
    """A volume has no stretch left that is long enough for a file."""


@dataclass(frozen=True)
class Extent:
    """Where a file lies on its volume, in bytes."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.offset + self.size


def read_extents(folder: Path) -> Extents:
    """Read all files of a volume, by name in small letters."""
    index = folder / _INDEX
    rows = json.loads(index.read_text("utf-8")) if index.exists() else {}
    return {name: Extent(**row) for name, row in rows.items()}


def make_files(folder: Path, sizes: Mapping[str, int], room: int) -> Extents:
    """Make files of these sizes, as a tool that creates them; one that is there already stays where it is.

    - `folder`: where the volume's files are recorded.
    - `sizes`: bytes of each file by name.
    - `room`: size of the volume.

    Returns the extents of these files.

    Raises NoRoomError: the volume is too full, and all is as before.
    """
    with locked(folder / _LOCK, _BUSY, math.inf):
        extents = read_extents(folder)
        for name, size in ((name.lower(), size) for name, size in sizes.items()):
            others = [extent for other, extent in extents.items() if other != name]
            extents[name] = _placed(extents.get(name), size, others, room)
        write_atomic(folder / _INDEX, json.dumps({name: asdict(extent) for name, extent in extents.items()}))
    return {name: extents[name.lower()] for name in sizes}


def _placed(before: Extent | None, size: int, others: list[Extent], room: int) -> Extent:
    """Keep the place of a file if it fits there, else take the first gap."""
    starts = [] if before is None else [before.offset]
    for start in (*starts, *_gaps(others)):
        wished = Extent(start, size)
        free = all(wished.end <= other.offset or other.end <= start for other in others)
        if free and wished.end <= room:
            return wished
    raise NoRoomError(f"{size} bytes fit into no gap of an emulated volume of {room} bytes")


def _gaps(others: list[Extent]) -> Iterator[int]:
    """Where a gap may begin; no two files share a region."""
    yield 0
    for other in sorted(others, key=lambda extent: extent.offset):
        yield math.ceil(other.end / REGION_BYTES) * REGION_BYTES


if __name__ == "__main__":
    sys.exit(main())
