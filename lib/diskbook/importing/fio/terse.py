"""Reader of fio's terse output (--minimal), versions 2 to 5, as measurements. Reads text, touches no file.

A line is a job: fields between semicolons, latencies in microseconds, no options. Version 2 has no fio
version; version 5 has samples and IOPS after the bandwidth::

    3;fio-3.33;name;0;0;KiB;KiB/s;IOPS;ms;slat x 4;clat x 4;20 percentiles;lat x 4;bw x 5;(write);...
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from diskbook.facts.units import NS_PER_MS, NS_PER_US
from diskbook.tools import record
from diskbook.tools.fio import latency as fio_latency
from diskbook.tools.fio.latency import Latency
from diskbook.tools.record import Direction, Load, Measurement, Parsed, UnusableError, number

_LINE = re.compile(r"^[2345];")
_FIELDS = 41
"""Of a direction: 4 totals, 4 slat, 4 clat, 20 percentiles, 4 lat, 5 bandwidth."""
_MORE_IN_5 = 6
_CPU = 5
_DEPTHS = (1, 2, 4, 8, 16, 32, 64)
_MS = NS_PER_US / NS_PER_MS
_MAX_FIELD = 400
_GROWTH = 1.02
"""Clones run equally long, or do the same; what fio prints as it goes on grows in both."""


class _Layout(NamedTuple):
    """Number of fields before the first direction, and of fields per direction."""

    head: int
    direction: int


@dataclass(frozen=True)
class _Job:
    """A line: what it says of reads and writes, and the share of I/Os by depth (%)."""

    version: str
    name: str
    group: str
    parts: dict[str, tuple[Direction, Latency | None]]
    depth_pct: tuple[float, ...]

    @property
    def runtime_ms(self) -> float:
        """Time of the longer direction."""
        return max((part.runtime_ms for part, _ in self.parts.values()), default=0.0)

    @property
    def kib(self) -> int:
        """What was read and written. fio does not tell I/Os here, and it rounds the rate."""
        return round(sum(part.bw_bytes * part.runtime_ms for part, _ in self.parts.values()) / 1024_000)


def is_terse(text: str) -> bool:
    """Whether the text holds a line of terse output."""
    return any(_LINE.match(line) and line.count(";") > 2 * _FIELDS for line in text.splitlines())


def parse(text: str, source: str) -> Parsed:
    """Read all lines of terse output in a file; clones of a job are added up.

    Raises UnusableError when no line can be used; names the first one.
    """
    jobs: list[_Job] = []
    problems: list[tuple[int, str]] = []
    for line_number, line in enumerate(text.splitlines(), 1):
        if not _LINE.match(line):
            continue
        try:
            jobs.append(job := _job(line))
            if not job.parts:
                problems.append((line_number, f"job '{job.name}' did no I/O"))
        except ValueError as error:
            problems.append((line_number, str(error)))
    if not any(job.parts for job in jobs):
        where, why = problems[0] if problems else (None, "there is no line of fio's terse output in it")
        raise UnusableError(source, why, where)
    version = record.one_version((job.version for job in jobs), source, "lines of different versions of fio")
    clones: dict[tuple[str, str], list[_Job]] = {}
    for job in jobs:
        clones.setdefault((job.name, job.group), []).append(job)
    flags = [f"line {where}: {why}" for where, why in problems]
    measurements = tuple(_measurement(same) for same in clones.values() if any(job.parts for job in same))
    return Parsed("fio", version, "fio terse", measurements, tuple(flags))


def _job(line: str) -> _Job:
    """Read a line; ValueError says why it cannot be used."""
    fields = line.rstrip("\r\n").split(";")
    version = int(fields[0])
    layout = _Layout(4 if version == 2 else 5, _FIELDS + (_MORE_IN_5 if version == 5 else 0))
    if len(fields) < layout.head + 2 * layout.direction or max(map(len, fields[:200])) > _MAX_FIELD:
        raise ValueError(f"it has {len(fields)} fields: it is cut, or no terse output of fio")
    name, group, error = fields[layout.head - 3 : layout.head]
    if error != "0":
        raise ValueError(f"job '{name}' ended with error {error[:20]}")
    parts = {}
    for position, direction in enumerate(("read", "write")):
        start = layout.head + position * layout.direction
        part = _direction(fields[start : start + layout.direction])
        if part[0].ios:
            parts[direction] = part
    version_text = fields[1].removeprefix("fio-")[:40] if version > 2 else ""
    return _Job(version_text or "unknown", name[:200], group[:40], parts, _depths(fields, layout))


def _direction(fields: list[str]) -> tuple[Direction, Latency | None]:
    kib, _, iops, runtime_ms = (number(field, "a total") for field in fields[:4])
    ios = round(iops * runtime_ms / 1000)
    least, most, mean, spread = (number(field, "a latency") for field in fields[32:36])
    total = mean > 0 or most > 0
    if not total:  # disable_lat: completion latency stands in
        least, most, mean, spread = (number(field, "a latency") for field in fields[8:12])
    bw_bytes = kib * 1024 / runtime_ms * 1000 if runtime_ms else 0.0
    direction = Direction(ios=ios, iops=iops, bw_bytes=bw_bytes, runtime_ms=runtime_ms)
    if not ios or (mean == 0 and most == 0):
        return direction, None
    percentiles = _percentiles(fields[12:32])
    latency = Latency(
        samples=ios,
        mean_ns=mean * NS_PER_US,
        stddev_ns=spread * NS_PER_US,
        min_ns=least * NS_PER_US,
        max_ns=most * NS_PER_US,
        bins={},
        percentiles_ms=percentiles,
        of="clat",
        mean_of="lat" if total else "clat",
    )
    return direction, latency


def _percentiles(fields: list[str]) -> dict[float, float]:
    percentiles = {}
    for field in fields:
        name, equals, value = field.partition("%=")
        if not equals:
            raise ValueError(f"'{field[:20]}' is not a percentile")
        if percentile := number(name, "a percentile", 100):
            percentiles[percentile] = number(value, "a percentile") * _MS
    return percentiles if any(percentiles.values()) else {}


def _depths(fields: list[str], layout: _Layout) -> tuple[float, ...]:
    """Share of I/Os by depth, after two or three directions (trim) and the CPU; empty when cut off."""
    for directions in (2, 3):
        start = layout.head + directions * layout.direction + _CPU
        shares = fields[start : start + len(_DEPTHS)]
        cpu = fields[start - _CPU : start - _CPU + 2]
        if len(shares) == len(_DEPTHS) and all(field.endswith("%") for field in [*cpu, *shares]):
            return tuple(number(field[:-1], "a share") for field in shares)
    return ()


def _last_round(jobs: list[_Job]) -> list[_Job]:
    """Lines of one name that count: all, as clones, or the last of those that fio printed as it went on."""
    for clones in range(1, len(jobs) // 2 + 1):
        rounds = len(jobs) // clones
        if _go_on([jobs[first : rounds * clones : clones] for first in range(clones)]):
            return jobs[(rounds - 1) * clones : rounds * clones]
    return jobs


def _go_on(clones: list[list[_Job]]) -> bool:
    """Whether lines of each clone are of one job at several times; some may stand still or have ended."""
    grown = False
    for lines in clones:
        if any(end.runtime_ms < start.runtime_ms or end.kib < start.kib for start, end in pairwise(lines)):
            return False
        done = [(line.runtime_ms, line.kib) for line in lines if line.parts] or [(0.0, 0)]
        times = sorted({ms for ms, _ in done})
        if any(end - start < times[0] / 2 for start, end in pairwise(times[:-1])):
            return False  # only the last step may be shorter than the interval
        if done[0] != done[-1] and times[-1] <= _GROWTH * times[0]:
            return False
        grown |= done[-1][1] > _GROWTH * done[0][1]
    return grown


def _measurement(lines: list[_Job]) -> Measurement:
    """Clones of a job together."""
    flags = ["terse output does not repeat the options: the load is taken from what was done"]
    last = _last_round(lines)
    jobs = [job for job in last if job.parts]
    if len(last) < len(lines):
        flags.append("cumulative lines (status-interval): the last ones that are complete count")
    if len(jobs) > 1:
        flags.append(
            "lines of one name are added up as clones of a job; if they are several runs, split them"
        )
    directions = {}
    for name in ("read", "write"):
        parts = [job.parts[name] for job in jobs if name in job.parts]
        if not parts:
            continue
        latencies = [latency for _, latency in parts if latency]
        if not latencies:
            flags.append("no latencies were recorded")
        directions[name] = Direction(
            ios=sum(part.ios for part, _ in parts),
            iops=sum(part.iops for part, _ in parts),
            bw_bytes=sum(part.bw_bytes for part, _ in parts),
            runtime_ms=max(part.runtime_ms for part, _ in parts),
            **fio_latency.join(latencies, flags),
        )
    load = Load(threads=len(jobs), queue_depth=depth_of_class(jobs[0].depth_pct, flags))
    return Measurement(jobs[0].name, "", load, directions, flags=tuple(dict.fromkeys(flags)))


def depth_of_class(depth_pct: tuple[float, ...], flags: list[str]) -> int | None:
    """Least depth of the class that nearly all I/Os were in; None when there is no such class."""
    for depth, share in zip(_DEPTHS, depth_pct, strict=False):
        if share > 90.0:
            if depth > 1:
                flags.append(f"the depth is between {depth} and {2 * depth - 1}; {depth} is taken")
            return depth
    return None
