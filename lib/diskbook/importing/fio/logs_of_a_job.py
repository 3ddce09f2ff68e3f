"""Reader of the logs of one fio job, as series and, where they hold single I/Os or histograms, as totals.

Logs of a job are several files: by kind (lat, clat, iops, bw, clat_hist) and, by default, one a clone.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import numpy as np

from diskbook.facts import files
from diskbook.facts.units import KIB, NS_PER_MS, NS_PER_US
from diskbook.importing.fio import log_histogram
from diskbook.tools.fio import held_rate, latency as fio_latency, log, log as fio_log
from diskbook.tools.fio.log import Rows
from diskbook.tools.record import (
    Direction,
    Load,
    Measurement,
    Series,
    UnusableError,
    merge_bins,
    percentile_ns,
    pooled,
)

NAME = re.compile(
    r"^(?P<prefix>.+?)_(?P<kind>(?:lat|clat|slat)_hist|lat|clat|slat|iops|bw)(?:\.\d+)?\.log$", re.DOTALL
)
USED = ("lat", "clat", "iops", "bw", "clat_hist")
"""Kinds that say something; of those that say the same the first is read."""
_SECTOR = 512
_CLONE = re.compile(r"\.(\d{1,6})\.log(?:\.gz)?$")


@dataclass(frozen=True)
class LogFile:
    """A log: its name, for messages, and how to open it."""

    name: str
    open: Callable[[], BinaryIO]

    def content(self) -> bytes:
        """Return the whole of it.

        Raises UnusableError when it is too large to be held.
        """
        with self.open() as stream:
            content = stream.read(files.WHOLE + 1)
        if len(content) > files.WHOLE:
            raise UnusableError(self.name, "averages or histograms of this size are none of a measurement")
        return content


@dataclass(frozen=True)
class JobLogs:
    """What logs say: series, and totals where single I/Os or histograms were logged."""

    series: dict[str, Series] = field(default_factory=dict)
    directions: dict[str, Direction] = field(default_factory=dict)
    block_size_bytes: int | None = None
    flags: tuple[str, ...] = ()


def prefix_and_kind(name: str) -> tuple[str, str] | None:
    """Split the name of a log file; None when it is not named like one."""
    named = NAME.match(name)
    return (named["prefix"], named["kind"]) if named else None


def whole_kinds(logs: Mapping[str, Sequence[LogFile]], threads: int | None) -> tuple[set[str], list[str]]:
    """Kinds that there is a log of for each thread, and a sentence for each that lacks some.

    The sum over some of the clones would pass for that over all. fio numbers the files by thread
    (NAME_lat.1.log) unless one is for all (per_job_logs=0). Where nothing tells the threads of the job, none
    may lack that others have.
    """
    numbers = {
        kind: {int(number[1]) for file in files if (number := _CLONE.search(file.name))}
        for kind, files in logs.items()
    }
    every = set().union(*numbers.values()) if numbers else set()
    expected = threads or (max(every) - min(every) + 1 if every else 0)
    lacking = {kind: len(known) for kind, known in numbers.items() if known and len(known) < expected}
    sentences = [
        f"logs of {kind} of {count} of {expected} clones: no series or histogram of the whole is made of them"
        for kind, count in sorted(lacking.items())
    ]
    return set(logs) - set(lacking), sentences


def read(
    logs: Mapping[str, Sequence[LogFile]], *, old: bool, interval_s: float | None, block_size: int | None
) -> JobLogs:
    """Read the logs of one job, by kind; those of fio before version 3 (`old`) have microseconds.

    IOPS from a bandwidth log need the block size, in bytes; values may be averages over an interval.
    Raises UnusableError when a file is damaged, or the logs say nothing that can be used.
    """
    latency = logs.get("lat") or logs.get("clat") or ()
    if latency and not _averaged(latency[0], interval_s):
        return _of_each_io(latency, old, "lat" not in logs)
    if logs.get("iops") and _averaged(logs["iops"][0], interval_s):
        logs_read = _averages(latency, logs["iops"], interval_s, old)
        return replace(
            logs_read, block_size_bytes=block_size or _block_size(logs.get("bw", ()), logs["iops"])
        )
    if logs.get("clat_hist"):
        return _histograms(logs["clat_hist"])
    if logs.get("bw") and _averaged(logs["bw"][0], interval_s) and block_size:
        return _bandwidth(logs["bw"], interval_s, block_size)
    files = [file for kind in USED for file in logs.get(kind, ())]
    raise UnusableError(
        files[0].name if files else "log", "alone it tells no IOPS: the job's latency or IOPS log is needed"
    )


def standalone(job_log: JobLogs, name: str, clones: int) -> Measurement:
    """Make a measurement of logs that no result file goes with.

    Raises UnusableError when nothing was logged.
    """
    directions = job_log.directions or {key: _from_series(part) for key, part in job_log.series.items()}
    if not directions:
        raise UnusableError(name, "there is no read or write in the logs")
    flags = ("from logs alone: what was asked for is not told", *job_log.flags)
    load = Load(threads=clones, block_size_bytes=job_log.block_size_bytes)
    return Measurement(name, "", load, directions, job_log.series, flags=flags)


def with_logs(measurement: Measurement, job_log: JobLogs | None) -> Measurement:
    """Add what logs say to what the result says: series, and histograms where it has none."""
    if job_log is None:
        return measurement
    directions = {
        name: _with_bins(part, job_log.directions.get(name)) for name, part in measurement.directions.items()
    }
    series = {name: of_direction for name, of_direction in job_log.series.items() if name in directions}
    return replace(
        measurement,
        directions=directions,
        series=series or measurement.series,
        flags=_still_true(measurement, directions, job_log),
    )


def _still_true(
    measurement: Measurement, directions: Mapping[str, Direction], job_log: JobLogs
) -> tuple[str, ...]:
    """Flags of a result without those of percentiles that a log has mended; then its own."""
    mended = all(
        part.bins and not measurement.directions[name].bins
        for name, part in directions.items()
        if name != "sync"
    )
    gone = {fio_latency.NOT_JOINED} if mended else set()
    # A histogram log is of the completion latency; one of every I/O may be of the total.
    if mended and not any("completion" in flag for flag in job_log.flags):
        gone.add(fio_latency.COMPLETION)
    kept = [flag for flag in measurement.flags if flag not in gone]
    return tuple(dict.fromkeys([*kept, *job_log.flags]))


def _with_bins(part: Direction, logged: Direction | None) -> Direction:
    if logged is None or part.bins or not logged.bins:
        return part
    return replace(
        part,
        bins=logged.bins,
        lat_p50_ms=logged.lat_p50_ms,
        lat_p99_ms=logged.lat_p99_ms,
        lat_p999_ms=logged.lat_p999_ms,
    )


def _averaged(file: LogFile, interval_s: float | None) -> bool:
    """Whether a line stands for an interval: as the job's options say, else as the first lines show."""
    if interval_s is not None:
        return True
    with file.open() as stream:
        head = stream.read(64 * 1024)
    whole = head[: head.rfind(b"\n") + 1] or head
    return fio_log.read_rows(whole, file.name)[0].averaged


def _of_each_io(files: Sequence[LogFile], old: bool, completion: bool) -> JobLogs:
    parts = []
    for file in files:
        with file.open() as stream:
            parts.append(held_rate.summarise(stream, file.name, NS_PER_US if old else 1))
    flags = [flag for part in parts for flag in part.flags]
    if completion:
        flags.append("latencies of the log are completion latencies")
    sizes = {part.block_size_bytes for part in parts}
    names = sorted({name for part in parts for name in part.directions})
    return JobLogs(
        {name: _joined([part.series[name] for part in parts if name in part.series], 1.0) for name in names},
        {name: added([part.directions[name] for part in parts if name in part.directions]) for name in names},
        sizes.pop() if len(sizes) == 1 else None,
        tuple(dict.fromkeys(flags)),
    )


def _averages(
    latency: Sequence[LogFile], iops: Sequence[LogFile], interval_s: float | None, old: bool
) -> JobLogs:
    """Interval by interval, all clones together, as of a live run."""
    rates = [_rows(file) for file in iops]
    interval = interval_s or _interval_s(rates[0])
    start = _start_ms(rates, interval)
    means = _one_after_another([_rows(file) for file in latency], start)
    series = log.series_of(means, _one_after_another(rates, start), interval)
    if not series:
        raise UnusableError(iops[0].name, "fewer than two intervals were logged")
    if old:
        series = {
            name: replace(part, lat_mean_ms=part.lat_mean_ms * NS_PER_US) for name, part in series.items()
        }
    flags = () if latency else ("no latency log: the series has IOPS alone",)
    return JobLogs(series, flags=flags)


def _block_size(bandwidth: Sequence[LogFile], iops: Sequence[LogFile]) -> int | None:
    """Bytes of an I/O, from averages of KiB/s and of IOPS over the same intervals; None without both."""
    if len(bandwidth) != len(iops):
        return None
    kib_s, ios_s = (sum(int(_rows(file).value.sum()) for file in files) for files in (bandwidth, iops))
    return round(kib_s * 1024 / ios_s / _SECTOR) * _SECTOR or None if ios_s else None


def _rows(file: LogFile) -> Rows:
    """Read a log of moderate size; a last line that was cut short is left out."""
    rows, _ = fio_log.read_rows(file.content(), file.name)
    if not len(rows.value):
        raise UnusableError(file.name, "the log is empty")
    return rows


def _start_ms(logs: Sequence[Rows], interval_s: float) -> int:
    """When the interval began that ends with the first line, for times since the epoch; else 0."""
    first = min(int(rows.time_ms[0]) for rows in logs)
    return first - round(1000 * interval_s) if first >= fio_log.EPOCH_MS else 0


def _one_after_another(logs: Sequence[Rows], start_ms: int) -> Rows:
    """Lines of all clones, with their times since the start."""
    rows = fio_log.stacked(logs)
    return replace(rows, time_ms=np.maximum(rows.time_ms - start_ms, 0))


def _interval_s(rows: Rows) -> float:
    """Distance of the lines of an averaged log; reads and writes are a ms apart, so of one direction."""
    steps = np.diff(rows.time_ms[rows.direction == rows.direction[0]])
    steps = steps[steps > 1]
    return float(np.median(steps)) / 1000 if len(steps) else max(float(rows.time_ms.max()), 1.0) / 1000


def _histograms(files: Sequence[LogFile]) -> JobLogs:
    parts = [log_histogram.summarise(file.content(), file.name) for file in files]
    names = sorted({name for part in parts for name in part.directions})
    sizes = {part.block_size_bytes for part in parts}
    series = {name: [part.series[name] for part in parts if name in part.series] for name in names}
    return JobLogs(
        {name: _joined(items, None) for name, items in series.items()},
        {name: added([part.directions[name] for part in parts if name in part.directions]) for name in names},
        sizes.pop() if len(sizes) == 1 else None,
        tuple(dict.fromkeys(flag for part in parts for flag in part.flags)),
    )


def _bandwidth(files: Sequence[LogFile], interval_s: float | None, block_size: int) -> JobLogs:
    """IOPS from KiB/s: a latency is not told."""
    logs = [_rows(file) for file in files]
    interval = interval_s or _interval_s(logs[0])
    kib_s = _one_after_another(logs, _start_ms(logs, interval))
    series = log.series_of(fio_log.no_rows(), kib_s, interval, KIB / block_size)
    if not series:
        raise UnusableError(files[0].name, "fewer than two intervals were logged")
    return JobLogs(series, flags=("IOPS of the series are bandwidth / block size",))


def _joined(parts: Sequence[Series], interval_s: float | None) -> Series:
    """Add the clones' series up, interval by interval."""
    if len(parts) == 1:
        return parts[0]
    ends = np.unique(np.concatenate([part.second for part in parts]))
    steps = np.diff(np.concatenate([part.second for part in parts]))
    steps = steps[steps > 0]
    width = interval_s or (float(np.median(steps)) if len(steps) else max(float(ends[-1]), 1e-3))
    numbers = [np.maximum(np.round(part.second / width), 1).astype(np.int64) for part in parts]
    length = max((int(values.max()) for values in numbers if len(values)), default=0) + 1
    if length > fio_log.GREATEST_S:
        raise UnusableError("log", "its intervals are too short for its times")
    iops, in_flight = np.zeros(length), np.zeros(length)
    for part, which in zip(parts, numbers, strict=True):
        np.add.at(iops, which, part.iops)
        np.add.at(in_flight, which, np.nan_to_num(part.iops * part.lat_mean_ms))
    there = np.unique(np.concatenate(numbers))
    with np.errstate(all="ignore"):
        mean = in_flight[there] / np.where(iops[there] > 0, iops[there], np.nan)
    return Series(there.astype(float) * width, iops[there], np.asarray(mean, float))


def added(parts: Sequence[Direction]) -> Direction:
    """Add clones up."""
    if len(parts) == 1:
        return parts[0]
    counts = [part.ios for part in parts]
    spread = [0.0 if math.isnan(part.lat_stddev_ms) else part.lat_stddev_ms for part in parts]
    mean, stddev = pooled([part.lat_mean_ms for part in parts], spread, counts)
    bins = merge_bins([part.bins for part in parts])
    p50, p99, p999 = (value / NS_PER_MS for value in percentile_ns(bins, 0.5, 0.99, 0.999))
    runtime_ms = max(part.runtime_ms for part in parts)
    return Direction(
        ios=sum(counts),
        iops=sum(counts) / runtime_ms * 1000,
        bw_bytes=math.nan,
        runtime_ms=runtime_ms,
        lat_mean_ms=mean,
        lat_stddev_ms=stddev,
        lat_min_ms=min(part.lat_min_ms for part in parts),
        lat_max_ms=max(part.lat_max_ms for part in parts),
        lat_p50_ms=p50,
        lat_p99_ms=p99,
        lat_p999_ms=p999,
        bins=bins,
    )


def _from_series(series: Series) -> Direction:
    """Totals of a series: means over its intervals, latency weighted by rate."""
    known = ~np.isnan(series.lat_mean_ms) & (series.iops > 0)
    weight = float(series.iops[known].sum())
    mean = float((series.iops * series.lat_mean_ms)[known].sum()) / weight if weight else math.nan
    iops, seconds = float(series.iops.mean()), float(series.second[-1])
    return Direction(
        ios=round(iops * seconds), iops=iops, bw_bytes=math.nan, runtime_ms=1000 * seconds, lat_mean_ms=mean
    )
