"""How late a disk made the I/Os of a held rate, from fio's log of every I/O. Compute only, no I/O.

The rate is offered by many jobs of one I/O each (`command._staggered`). The k-th I/O of a job is due k
periods after its first (`usec_for_io` in fio's backend.c; `rate_process=linear`, its default). A job can
send it unless its I/O before is still on the disk. So the latencies alone tell how late each was sent:
fio's own late wake-ups, and the log's whole milliseconds, do not get into it.

What a stall holds back a job sends one after another, and these wait for each other, which is the
generator's doing. A disk that serves them side by side would have ended each no later than the one that it
waited for, or than its own latency after it was due: the least that it can have taken. The more jobs, the
closer the two are; `stats.gates.tool` refuses a ratio that depends on which one is taken.

Jobs of several I/Os drain their queue before they sleep (`rate_ddir` in io_u.c), so that each I/O is late
by what those before it take, stall or none. Nothing is told of their lateness, nor where reads and writes,
or writes and their syncs, wait for each other in a job.

The log is read at any length: totals, histogram and series, in bounded memory.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from diskbook.design import rate_windows
from diskbook.facts.units import NS_PER_MS
from diskbook.tools import record
from diskbook.tools.fio.latency import index_value
from diskbook.tools.fio.log import EPOCH_MS, GREATEST_S, Ints, Rows, parsed

DIRECTIONS = {0: "read", 1: "write"}
# A double's bits from the 46th on are its exponent and the first 6 bits after the leading one: fio's own
# index in a histogram with 64 bins an octave, but for a constant.
_SHIFT = 46
_OFFSET = (1023 + 5) << 6
_LINEAR = 64
# The last second counts as whole when its last I/O came this part of a second before its end.
_LATE = 0.05


@dataclass
class _Sums:
    """Running sums of one direction; by second, grown as needed."""

    bins: Ints = field(default_factory=lambda: np.zeros(_BINS, np.int64))
    count: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    total: record.Floats = field(default_factory=lambda: np.zeros(0))
    squares: float = 0.0
    last_ms: int = 0
    least: int = 2**62
    most: int = 0


@dataclass(frozen=True)
class LatencyLog:
    """What a log of single I/Os says: directions and one-second series, and flags."""

    directions: dict[str, record.Direction]
    series: dict[str, record.Series]
    block_size_bytes: int | None
    flags: tuple[str, ...]


def summarise(stream: BinaryIO, source: str, unit_ns: int = 1) -> LatencyLog:
    """Read the log of one job.

    - `source`: its name, for messages.
    - `unit_ns`: 1, or 1000 for fio before version 3.

    Raises UnusableError when a line is none of a log, or values are averages (log_avg_msec): these say
    nothing of single I/Os.
    """
    sums: dict[int, _Sums] = {}
    sizes: Ints | None = None
    flags: tuple[str, ...] = ()
    start_ms: int | None = None
    for read, block in parsed(stream, source):
        if start_ms is None and len(read.time_ms):
            start_ms = _start_ms(read)
        rows = _since(read, start_ms or 0, source)
        if sizes is None and len(rows.size_bytes):
            sizes = np.unique(rows.size_bytes)
            if rows.averaged:
                raise record.UnusableError(source, "it holds averages over intervals, not single I/Os")
        _add(sums, rows, unit_ns)
        flags += block.flags
    directions = {DIRECTIONS[code]: part for code, part in sorted(sums.items()) if code in DIRECTIONS}
    if not directions or sizes is None:
        raise record.UnusableError(source, "there is no read or write in it")
    runtime_ms = float(max(1, *(part.last_ms for part in sums.values())))
    return LatencyLog(
        {name: _direction(part, runtime_ms) for name, part in directions.items()},
        {name: _series(part, int(runtime_ms / 1000 + _LATE)) for name, part in directions.items()},
        int(sizes[0]) if len(sizes) == 1 and sizes[0] else None,
        flags,
    )


def _start_ms(rows: Rows) -> int:
    """Time that the log begins at: 0, or of its first I/O where times are since the epoch."""
    first = int(rows.time_ms.min())
    return first if first >= EPOCH_MS else 0


def _since(rows: Rows, start_ms: int, source: str) -> Rows:
    """Rows with times since the start; those of a log must all be of one kind."""
    time_ms = np.maximum(rows.time_ms - start_ms, 0) if start_ms else rows.time_ms
    if len(time_ms) and time_ms.max() > GREATEST_S * 1000:
        raise record.UnusableError(source, f"its times are more than {GREATEST_S:,} s apart")
    return replace(rows, time_ms=time_ms)


def bin_index(values: Ints) -> Ints:
    """Index of fio's bin (64 an octave) for each value."""
    index: Ints = (values.astype(np.float64).view(np.int64) >> _SHIFT) - _OFFSET
    small = values < _LINEAR
    if small.any():
        index[small] = values[small]
    return index


def _add(sums: dict[int, _Sums], rows: Rows, unit_ns: int) -> None:
    codes = np.flatnonzero(np.bincount(rows.direction, minlength=4))
    second = rows.time_ms // 1000
    for code in codes.tolist():
        values, seconds = rows.value, second
        if len(codes) > 1:
            chosen = rows.direction == code
            values, seconds = values[chosen], seconds[chosen]
        if unit_ns != 1:
            values = values * unit_ns
        part = sums.setdefault(code, _Sums())
        part.bins += np.bincount(bin_index(values), minlength=_BINS)
        part.least = min(part.least, int(values.min()))
        part.most = max(part.most, int(values.max()))
        part.last_ms = max(part.last_ms, int(rows.time_ms[-1]))
        as_float = values.astype(np.float64)
        part.squares += float(np.square(as_float).sum())  # not np.dot, whose threads wait by spinning
        start = int(seconds.min())
        counts = np.bincount(seconds - start)
        _grow(part, start + len(counts))
        part.count[start : start + len(counts)] += counts
        part.total[start : start + len(counts)] += np.bincount(seconds - start, weights=as_float)


def _grow(part: _Sums, length: int) -> None:
    if length > len(part.count):
        more = min(max(length, 2 * len(part.count)), GREATEST_S + 1) - len(part.count)
        part.count = np.concatenate([part.count, np.zeros(more, np.int64)])
        part.total = np.concatenate([part.total, np.zeros(more)])


def _direction(part: _Sums, runtime_ms: float) -> record.Direction:
    ios = int(part.count.sum())
    mean_ns = float(part.total.sum()) / ios
    bins = {index_value(int(index)): int(part.bins[index]) for index in np.flatnonzero(part.bins)}
    p50, p99, p999 = record.percentile_ns(bins, 0.5, 0.99, 0.999)
    return record.Direction(
        ios=ios,
        iops=ios / runtime_ms * 1000,
        bw_bytes=math.nan,
        runtime_ms=runtime_ms,
        lat_mean_ms=mean_ns / NS_PER_MS,
        lat_stddev_ms=math.sqrt(max(part.squares / ios - mean_ns**2, 0.0)) / NS_PER_MS,
        lat_min_ms=part.least / NS_PER_MS,
        lat_max_ms=part.most / NS_PER_MS,
        lat_p50_ms=p50 / NS_PER_MS,
        lat_p99_ms=p99 / NS_PER_MS,
        lat_p999_ms=p999 / NS_PER_MS,
        bins=bins,
    )


def _series(part: _Sums, seconds: int) -> record.Series:
    """IOPS and mean latency of each whole second of the log."""
    _grow(part, seconds)
    count, total = part.count[:seconds], part.total[:seconds]
    with np.errstate(all="ignore"):
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return record.Series(np.arange(1.0, len(count) + 1), count.astype(float), mean / NS_PER_MS)


_RESOLUTION_MS = 1.0
_ROUNDING_MS = 1e-6
_BINS = 4096
_LAST_HALF = 0.5


@dataclass(frozen=True)
class _Stream:
    """I/Os of one job in the order sent, in ms.

    `least_ms` is the least that each can have taken from when it was due; `waited_ms` is of those due that
    were never sent, and `kept` the part of the job's rate that was sent.
    """

    due_ms: record.Floats
    late_ms: record.Floats
    own_ms: record.Floats
    least_ms: record.Floats
    unsent_ms: record.Floats
    waited_ms: record.Floats
    kept: float


def with_schedule(measurement: record.Measurement, rows: Rows, series_s: float) -> record.Measurement:
    """Add latencies from the intended start, the rate by the schedule, its windows, and series.

    Only series where lateness is not told (see above): the latencies then are lower bounds.
    """
    measurement = replace(measurement, series=series_of(rows, series_s))
    load = measurement.load
    jobs = _jobs(rows, load.threads or 1)
    is_told = load.queue_depth == 1 and load.sync != "fdatasync" and len(measurement.rates) == 1
    if jobs is None or not is_told:
        return measurement
    ((name, rate),) = measurement.rates.items()
    code = next(code for code, direction in DIRECTIONS.items() if direction == name)
    runtime_ms = 1000 * load.runtime_s if load.runtime_s else measurement.runtime_ms
    streams = [_stream(job, code, rate, runtime_ms) for job in jobs]
    if not any(len(stream.own_ms) for stream in streams):
        return measurement
    # fio divides by the time of the job that ended last, which of many jobs is one that ended late.
    achieved = rate * sum(stream.kept for stream in streams)
    part = replace(measurement.directions[name], intended=_intended(streams), iops=achieved)
    worst, low_share = _windows(streams, runtime_ms)
    return replace(
        measurement,
        directions={**measurement.directions, name: part},
        rate_window_worst=worst,
        rate_windows_low_share=low_share,
    )


def series_of(rows: Rows, interval_s: float) -> dict[str, record.Series]:
    """Rates and mean latencies by interval, from single I/Os; an interval in which none ended has rate 0.

    A rest shorter than half an interval at the end is left out.
    """
    number = int(rows.time_ms.max(initial=0) / (1000 * interval_s) + _LAST_HALF)
    if number < 2:
        return {}
    place = (rows.time_ms / (1000 * interval_s)).astype(np.int64)
    second: record.Floats = np.arange(1.0, number + 1) * interval_s
    series = {}
    for code, name in DIRECTIONS.items():
        chosen = (rows.direction == code) & (place < number)
        if not chosen.any():
            continue
        count = np.bincount(place[chosen], minlength=number)
        total = np.bincount(place[chosen], rows.value[chosen].astype(np.float64), minlength=number)
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan) / NS_PER_MS
        series[name] = record.Series(second, count / interval_s, mean)
    return series


def _jobs(rows: Rows, threads: int) -> list[Rows] | None:
    """Lines of each job, which follow one another: time falls where the next begins. None if it does not."""
    cuts = np.flatnonzero(np.diff(rows.time_ms) < 0) + 1
    if len(cuts) != threads - 1:
        return None
    ends = [0, *cuts.tolist(), len(rows.time_ms)]
    return [Rows(*(column[start:end] for column in _columns(rows))) for start, end in pairwise(ends)]


def _columns(rows: Rows) -> tuple[Ints, Ints, Ints, Ints]:
    return rows.time_ms, rows.value, rows.direction, rows.size_bytes


def _stream(job: Rows, code: int, rate: float, runtime_ms: float) -> _Stream:
    """Hold the I/Os of a job against their schedule."""
    gap = 1000.0 / rate
    own_ms = _in_order(job, code, gap)
    due_ms: record.Floats = gap * np.arange(float(len(own_ms)))
    # Each begins when it is due, or when the one before it ends.
    worked_ms = np.cumsum(own_ms)
    end_ms = worked_ms + np.maximum.accumulate(due_ms - (worked_ms - own_ms))
    sent_ms = end_ms - own_ms
    is_late = sent_ms > due_ms + _ROUNDING_MS
    holder = np.maximum(np.searchsorted(sent_ms, due_ms, side="right") - 1, 0)
    held_ms = np.where(is_late, end_ms[holder] - due_ms, 0.0) if len(own_ms) else own_ms
    last_ms = float(end_ms[-1]) if len(own_ms) else 0.0
    unsent_ms: record.Floats = np.arange(gap * len(own_ms), min(runtime_ms, last_ms), gap)
    return _Stream(
        due_ms=due_ms,
        late_ms=np.where(is_late, sent_ms - due_ms, 0.0),
        own_ms=own_ms,
        least_ms=np.maximum(own_ms, held_ms),
        unsent_ms=unsent_ms,
        waited_ms=last_ms - unsent_ms,
        kept=min(1.0, len(own_ms) / max(1, math.floor(runtime_ms / gap + _ROUNDING_MS))),
    )


def _in_order(job: Rows, code: int, gap: float) -> record.Floats:
    """Latencies of the I/Os of the schedule, in the order sent: without those sent in the ramp."""
    chosen = job.direction == code
    own_ms: record.Floats = job.value[chosen].astype(np.float64) / NS_PER_MS
    sent_ms: record.Floats = job.time_ms[chosen].astype(np.float64) - own_ms
    order = np.argsort(sent_ms, kind="stable")
    # In the last ms of the ramp only the schedule tells: all I/Os after it seem to be a gap early.
    order = order[sent_ms[order] > -_RESOLUTION_MS]
    of_ramp = math.floor((-_began(sent_ms[order], gap) - _RESOLUTION_MS) / gap + 0.5)
    return own_ms[order[max(0, of_ramp) :]]


def _began(sent_ms: record.Floats, gap: float) -> float:
    """When the schedule began: the lower envelope of all I/Os, and not after the log's zero."""
    return float(min((sent_ms - gap * np.arange(len(sent_ms))).min(initial=0.0), 0.0))


def _intended(streams: Sequence[_Stream]) -> record.Intended:
    """Latencies from the intended start, all jobs together.

    An I/O that was due and not sent before the end has waited at least until then, and counts with that.
    """
    lat_ms = _sorted([stream.own_ms + stream.late_ms for stream in streams], streams)
    least_ms = _sorted([stream.least_ms for stream in streams], streams)
    counts = np.bincount(bin_index(np.rint(lat_ms * NS_PER_MS).astype(np.int64)), minlength=_BINS)
    return record.Intended(
        lat_mean_ms=float(lat_ms.mean()),
        lat_p50_ms=_percentile(lat_ms, 0.5),
        lat_p99_ms=_percentile(lat_ms, 0.99),
        lat_p999_ms=_percentile(lat_ms, 0.999),
        mean_least_ms=float(least_ms.mean()),
        p99_least_ms=_percentile(least_ms, 0.99),
        p99_rise=_percentile(lat_ms, 0.995) / _percentile(lat_ms, 0.985),
        bins={index_value(int(index)): int(counts[index]) for index in np.flatnonzero(counts)},
    )


def _sorted(sent: Sequence[record.Floats], streams: Sequence[_Stream]) -> record.Floats:
    """Latencies of what was sent, and waits of what was not, sorted."""
    every: record.Floats = np.sort(np.concatenate([*sent, *(stream.waited_ms for stream in streams)]))
    return every


def _percentile(lat_ms: record.Floats, quantile: float) -> float:
    """Percentile by the rank that fio's own have."""
    return float(lat_ms[max(1, math.ceil(quantile * len(lat_ms) - 1e-9)) - 1])


def _windows(streams: Sequence[_Stream], runtime_ms: float) -> tuple[float, float]:
    """Judge the windows of all jobs together."""
    due = [part for stream in streams for part in (stream.due_ms, stream.unsent_ms)]
    sent = [stream.due_ms + stream.late_ms for stream in streams]
    return rate_windows.windows(np.concatenate(due) / 1000, np.concatenate(sent) / 1000, runtime_ms / 1000)
