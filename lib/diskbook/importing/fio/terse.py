"""Reader of fio's terse output (--minimal), versions 2 to 5, as measurements. Reads text, touches no file.

A line is a job: fields between semicolons, latencies in microseconds, no options. Version 2 has no fio
version; version 5 has samples and IOPS after the bandwidth::

    3;fio-3.33;name;0;0;KiB;KiB/s;IOPS;ms;slat x 4;clat x 4;20 percentiles;lat x 4;bw x 5;(write);...
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
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
_MAX_FIELD = 400
_GROWTH = 1.02
"""Clones run equally long, or do the same; what fio prints as it goes on grows in both."""
_APART = 1.1  # a clone that stood still at its end runs longer than the others, and does less
_STEP_MS = 50  # from one print to the next; clones are printed at once


class _Progress(NamedTuple):
    """Time, what was read and written, and its latencies: extremes and sum."""

    ms: float
    kib: float
    least_ns: float
    most_ns: float
    kib_ns: float


@dataclass(frozen=True)
class _Job:
    """A line: what it says of reads and writes, and the share of I/Os by depth (%)."""

    version: str
    name: str
    group: str
    parts: dict[str, tuple[Direction, Latency | None]]
    depth_pct: tuple[float, ...]

    @cached_property
    def progress(self) -> _Progress:
        """How far it is. fio prints no number of I/Os here, so it is taken by what they moved."""
        done = [(round(part.bw_bytes * part.runtime_ms / 1024_000), lat) for part, lat in self.parts.values()]
        return _Progress(
            ms=max((part.runtime_ms for part, _ in self.parts.values()), default=0.0),
            kib=sum(kib for kib, _ in done),
            least_ns=min((latency.min_ns for _, latency in done if latency), default=0.0),
            most_ns=max((latency.max_ns for _, latency in done if latency), default=0.0),
            kib_ns=sum(kib * latency.mean_ns for kib, latency in done if latency),
        )


def is_terse(text: str) -> bool:
    """Whether the text holds a line of terse output."""
    return any(_LINE.match(line) and line.count(";") > 2 * _FIELDS for line in text.splitlines())


def parse(text: str, source: str) -> Parsed:
    """Read all lines of terse output in a file; clones of a job are added up.

    Raises UnusableError when no line can be used, or when lines of one name do not belong together.
    """
    jobs: list[_Job] = []
    problems: list[tuple[int, str]] = []
    lines = [(at, line) for at, line in enumerate(text.splitlines(), 1) if _LINE.match(line)]
    for line_number, line in lines:
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
    done = (same for same in clones.values() if any(job.parts for job in same))
    loads = tuple(_measurement(same, source) for same in done)
    return Parsed("fio", version, "fio terse", loads, tuple(f"line {at}: {why}" for at, why in problems))


def _job(line: str) -> _Job:
    """Read a line; ValueError says why it cannot be used."""
    fields = line.rstrip("\r\n").split(";")
    version = int(fields[0])
    head, width = (4 if version == 2 else 5), _FIELDS + (_MORE_IN_5 if version == 5 else 0)
    if len(fields) < head + 2 * width or max(map(len, fields[:200])) > _MAX_FIELD:
        raise ValueError(f"it has {len(fields)} fields: it is cut, or no terse output of fio")
    name, group, error = fields[head - 3 : head]
    if error != "0":
        raise ValueError(f"job '{name}' ended with error {error[:20]}")
    parts = {}
    for position, direction in enumerate(("read", "write")):
        start = head + position * width
        part = _direction(fields[start : start + width])
        if part[0].ios:
            parts[direction] = part
    version_text = fields[1].removeprefix("fio-")[:40] if version > 2 else ""
    return _Job(version_text or "unknown", name[:200], group[:40], parts, _depths(fields[head:], width))


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
            percentiles[percentile] = number(value, "a percentile") * NS_PER_US / NS_PER_MS
    return percentiles if any(percentiles.values()) else {}


def _depths(fields: list[str], width: int) -> tuple[float, ...]:
    """Share of I/Os by depth, after two or three directions (trim) and the CPU; empty when cut off."""
    for directions in (2, 3):
        start = directions * width + _CPU
        cpu, shares = fields[start - _CPU : start - _CPU + 2], fields[start : start + len(_DEPTHS)]
        if len(shares) == len(_DEPTHS) and all(field.endswith("%") for field in [*cpu, *shares]):
            return tuple(number(field[:-1], "a share") for field in shares)
    return ()


def _last_round(jobs: list[_Job], source: str) -> list[_Job]:
    """Lines of one name that count: all, as clones, or the last of those that fio printed as it went on."""
    for clones in range(1, len(jobs) // 2 + 1):
        if _go_on([jobs[first::clones] for first in range(clones)]):
            return jobs[: len(jobs) - len(jobs) % clones][-clones:]
    done = [job.progress for job in jobs if job.parts]
    middle = _Progress(*(sorted(values)[len(done) // 2] for values in zip(*done, strict=True)))
    waits = [job.kib_ns for job in done if job.kib_ns]
    behind = any(_APART * job.ms < middle.ms and _APART * job.kib < middle.kib for job in done)
    if behind or len(set(waits)) < len(waits):
        why = f"lines of job '{jobs[0].name}' are neither its clones nor what fio printed as it went on"
        raise UnusableError(source, f"{why}: keep the lines of one run, printed at its end")
    return jobs


def _go_on(clones: list[list[_Job]]) -> bool:
    """Whether lines of each clone are of one job at several times; some may stand still or have ended."""
    one_job = False
    for lines in clones:
        steps = [(start.progress, end.progress) for start, end in pairwise(lines) if start.parts]
        if not all(_follows(start, end) for start, end in steps):
            return False
        if steps:
            first, last = steps[0][0], steps[-1][1]
            more, later_ms = (last.kib - first.kib) / max(first.kib, 1), last.ms - first.ms
            steady = later_ms > _STEP_MS and 0.5 < more * first.ms / later_ms < 2 and last.kib_ns > 0
            longer = steady or last.ms > _GROWTH * first.ms
            before = [start.ms - first.ms for start, _ in steps if start.ms < last.ms and not last.kib_ns]
            hurried = any(ms < line * _STEP_MS for line, ms in enumerate(before))
            if hurried or (more > _GROWTH - 1 and not longer):
                return False
            twins = any(0 < start.kib_ns == end.kib_ns for start, end in steps)
            one_job |= twins or (longer and last.kib > first.kib)
    return one_job


def _follows(start: _Progress, end: _Progress) -> bool:
    """Whether a job can come from start to end: new latencies lie between the extremes, within 1 % of all."""
    kib, slack = end.kib - start.kib, end.kib_ns / 100
    least, most = kib * end.least_ns - slack, kib * (end.most_ns + NS_PER_US) + slack
    nested = end.least_ns <= start.least_ns and start.most_ns <= end.most_ns
    return end.ms >= start.ms and kib >= 0 and nested and least <= end.kib_ns - start.kib_ns <= most


def _measurement(lines: list[_Job], source: str) -> Measurement:
    """Clones of a job together. Lines of its ramp have no latencies where later ones do, and do not count."""
    if any(latency for job in lines for _, latency in job.parts.values()):
        lines = [replace(job, parts={at: part for at, part in job.parts.items() if part[1]}) for job in lines]
    flags = ["terse output does not repeat the options: the load is taken from what was done"]
    last = _last_round(lines, source)
    jobs = [job for job in last if job.parts]
    if len(last) < len(lines):
        flags.append("cumulative lines (status-interval): the last ones that are complete count")
    if len(jobs) > 1:
        flags.append(
            "lines of one name are added up as clones of a job; if they are several runs, split them"
        )
    directions = {}
    for name in ("read", "write"):
        if not (parts := [job.parts[name] for job in jobs if name in job.parts]):
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
