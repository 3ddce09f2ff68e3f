"""Reader of fio's log of every I/O, of any length: totals, histogram and series, in bounded memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import numpy as np

from diskbook.facts.units import NS_PER_MS
from diskbook.tools.fio.latency import index_value
from diskbook.tools.fio.log import EPOCH_MS, GREATEST_S, Ints, Rows, parsed
from diskbook.tools.record import Direction, Floats, Series, UnusableError, percentile_ns

DIRECTIONS = {0: "read", 1: "write"}
_BINS = 4096
"""More than any 63-bit value's index (3,712)."""
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
    total: Floats = field(default_factory=lambda: np.zeros(0))
    squares: float = 0.0
    last_ms: int = 0
    least: int = 2**62
    most: int = 0


@dataclass(frozen=True)
class LatencyLog:
    """What a log of single I/Os says: directions and one-second series, and flags."""

    directions: dict[str, Direction]
    series: dict[str, Series]
    block_size_bytes: int | None
    flags: tuple[str, ...]


def summarise(stream: BinaryIO, source: str, unit_ns: int = 1) -> LatencyLog:
    """Read the log of one job.

    Parameters
    ----------
    stream
        Of bytes.
    source
        Its name, for messages.
    unit_ns
        1, or 1000 for fio before version 3.

    Raises
    ------
    UnusableError
        When a line is none of a log, or values are averages (log_avg_msec): these say nothing of single I/Os.
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
                raise UnusableError(source, "it holds averages over intervals, not single I/Os")
        _add(sums, rows, unit_ns)
        flags += block.flags
    directions = {DIRECTIONS[code]: part for code, part in sorted(sums.items()) if code in DIRECTIONS}
    if not directions or sizes is None:
        raise UnusableError(source, "there is no read or write in it")
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
        raise UnusableError(source, f"its times are more than {GREATEST_S:,} s apart")
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


def _direction(part: _Sums, runtime_ms: float) -> Direction:
    ios = int(part.count.sum())
    mean_ns = float(part.total.sum()) / ios
    bins = {index_value(int(index)): int(part.bins[index]) for index in np.flatnonzero(part.bins)}
    p50, p99, p999 = percentile_ns(bins, 0.5, 0.99, 0.999)
    return Direction(
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


def _series(part: _Sums, seconds: int) -> Series:
    """IOPS and mean latency of each whole second of the log."""
    _grow(part, seconds)
    count, total = part.count[:seconds], part.total[:seconds]
    with np.errstate(all="ignore"):
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return Series(np.arange(1.0, len(count) + 1), count.astype(float), mean / NS_PER_MS)
