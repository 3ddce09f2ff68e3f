"""Reader of fio's histogram logs (write_hist_log), versions 2 and 3: totals and series. Compute only, no I/O.

A line is time in ms, direction, block size, and the counts of all bins since the line before::

    502, 1, 4096, 0, 0, 0, 12, ...

fio 3 has 29 x 64 bins of ns, fio 2 has 19 x 64 of microseconds; log_hist_coarseness halves their number.
Nearly all counts are 0, so not the numbers are read but the few bytes that begin one above 0.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from diskbook.facts.units import NS_PER_MS, NS_PER_US
from diskbook.tools.fio.held_rate import DIRECTIONS
from diskbook.tools.fio.latency import index_value
from diskbook.tools.fio.log import EPOCH_MS, GREATEST_S
from diskbook.tools.record import Direction, Series, UnusableError, percentile_ns

_GROUPS = {29: 1, 19: NS_PER_US}
"""Groups of 64 bins to the unit of the bins in ns."""
_KEYS = 3
_MOST_DIGITS = 15
_ONE_INTERVAL_MS = 1000
"""Taken for the only interval of a log, when its times are since the epoch and tell no length."""
_COMMA, _NEWLINE = ord(","), ord("\n")
_ALLOWED = b"0123456789, \r\n"

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Histograms:
    """All lines of a log, as a sparse matrix: `row`, `column`, `count` of every bin above 0.

    `time_ms`, `direction` and `size_bytes` have a value a line, `centre_ns` one a bin.
    """

    time_ms: Ints
    direction: Ints
    size_bytes: Ints
    row: Ints
    column: Ints
    count: Ints
    centre_ns: npt.NDArray[np.float64]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class HistogramLog:
    """What the log says: directions and series by its interval, and flags."""

    directions: dict[str, Direction]
    series: dict[str, Series]
    block_size_bytes: int | None
    flags: tuple[str, ...]


def is_histogram(content: bytes) -> bool:
    """Whether the first line has as many fields as one of a histogram log."""
    first = content[:100_000].lstrip().split(b"\n", 1)[0]
    return _unit(first.count(b",") + 1 - _KEYS) is not None


def read(content: bytes, source: str) -> Histograms:
    """Read a whole log.

    Raises UnusableError when it is none, or a line (named) does not fit the first one.
    """
    content, flags = _whole_lines(content)
    bins = _bins_of(content, source)
    field, values, fields = _fields(content, bins + _KEYS, source)
    row, column = np.divmod(field, bins + _KEYS)
    lines = fields // (bins + _KEYS)
    time_ms, direction, size_bytes = (_column(row, column, values, key, lines) for key in range(_KEYS))
    binned = column >= _KEYS
    histograms = Histograms(
        time_ms=_since_start(time_ms, direction),
        direction=direction,
        size_bytes=size_bytes,
        row=row[binned],
        column=column[binned] - _KEYS,
        count=values[binned],
        centre_ns=_centres(bins),
        flags=flags,
    )
    _check_values(histograms, source)
    return histograms


def summarise(content: bytes, source: str) -> HistogramLog:
    """Add all lines of a log up, and make a series of them.

    Means are those of bin centres: at most 0.8 % off, more where the log is coarse.
    Raises UnusableError: see `read`; also when there is no read or write in it.
    """
    log = read(content, source)
    directions, series = {}, {}
    for code, name in DIRECTIONS.items():
        part = _part(log, log.direction == code)
        if part:
            directions[name], series[name] = part
    if not directions:
        raise UnusableError(source, "there is no read or write in it")
    sizes = np.unique(log.size_bytes)
    size = int(sizes[0]) if len(sizes) == 1 and sizes[0] else None
    flags = (*log.flags, "latencies are centres of bins, of the completion latency")
    return HistogramLog(directions, series, size, flags)


def _bins_of(content: bytes, source: str) -> int:
    """Number of bins of a line, as the first one has it."""
    bins = content.count(b",", 0, content.index(b"\n")) + 1 - _KEYS
    if _unit(bins) is None:
        raise UnusableError(source, f"its first line has {bins} bins, which no histogram of fio has", 1)
    return bins


def _fields(content: bytes, fields: int, source: str) -> tuple[Ints, Ints, int]:
    """Position (from 0, over all lines) and value of every field above 0, and how many fields there are."""
    data = np.frombuffer(content, np.uint8)
    if strange := content.translate(None, _ALLOWED):
        line = content.count(b"\n", 0, content.index(strange[:1])) + 1
        raise UnusableError(source, "there are signs in it that no histogram log has", line)
    begins = data > ord("0")
    begins[1:] &= data[:-1] < ord("0")
    newline = data == _NEWLINE
    # Numbers above 0 and ends of fields in one list: before a number lie its place less earlier numbers.
    marks = np.flatnonzero(begins | newline | (data == _COMMA))
    at = np.flatnonzero(begins[marks])
    field, starts = at - np.arange(len(at)), marks[at]
    newlines = np.flatnonzero(newline)
    _check_shape(np.searchsorted(marks, newlines) - np.searchsorted(starts, newlines), fields, source)
    twice = np.flatnonzero(np.diff(field) == 0)
    if len(twice):
        raise UnusableError(
            source, "a comma is missing between two numbers", int(field[twice[0]]) // fields + 1
        )
    return field, _values(data, starts, source, content), len(marks) - len(at)


def _whole_lines(content: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Lines with a number at their end; a last one that was cut short is left out."""
    content = content.strip(b"\r\n \t") + b"\n"
    last = content.rfind(b"\n", 0, -1) + 1
    if last and content.count(b",", last) < content.count(b",", 0, content.index(b"\n")):
        return content[:last], ("the last line is cut short and left out",)
    return content, ()


@cache
def _unit(bins: int) -> tuple[int, int] | None:
    """Unit of the bins in ns, and how many of fio's own make one of them; None if it is no such number."""
    for groups, unit_ns in _GROUPS.items():
        for coarseness in range(7):
            if bins == groups * 64 >> coarseness and bins:
                return unit_ns, 1 << coarseness
    return None


@cache
def _centres(bins: int) -> npt.NDArray[np.float64]:
    centres = _unit(bins)
    assert centres is not None
    unit_ns, stride = centres
    pairs = [(index_value(k * stride), index_value((k + 1) * stride - 1)) for k in range(bins)]
    return np.array(pairs).mean(axis=1) * unit_ns


def _check_shape(ends_before_newlines: Ints, fields: int, source: str) -> None:
    """Every line has as many fields as the first."""
    columns = np.diff(ends_before_newlines, prepend=-1)
    wrong = np.flatnonzero(columns != fields)
    if len(wrong):
        line = int(wrong[0])
        raise UnusableError(source, f"this line has {columns[line]} fields, the first has {fields}", line + 1)


def _values(data: Bytes, starts: Ints, source: str, content: bytes) -> Ints:
    """Value of each number, from where it begins; the last byte is a newline."""
    values = np.zeros(len(starts), np.int64)
    going = np.ones(len(starts), bool)
    for offset in range(_MOST_DIGITS + 1):
        here = data.take(starts + offset, mode="clip")
        going &= here >= ord("0")
        if not going.any():
            return values
        values = np.where(going, values * 10 + (here - ord("0")), values)
    line = content.count(b"\n", 0, int(starts[np.flatnonzero(going)[0]])) + 1
    raise UnusableError(source, f"a number has more than {_MOST_DIGITS} digits", line)


def _column(row: Ints, column: Ints, values: Ints, number: int, lines: int) -> Ints:
    filled = np.zeros(lines, np.int64)
    chosen = column == number
    filled[row[chosen]] = values[chosen]
    return filled


def _since_start(time_ms: Ints, direction: Ints) -> Ints:
    """Times since the epoch (log_unix_epoch) as times since the interval began that the first line ends."""
    if not len(time_ms) or time_ms[0] < EPOCH_MS:
        return time_ms
    steps = np.diff(time_ms[direction == direction[0]])
    steps = steps[steps > 1]
    interval = int(np.median(steps)) if len(steps) else _ONE_INTERVAL_MS
    start: Ints = np.maximum(time_ms - (time_ms[0] - interval), 0)
    return start


def _check_values(log: Histograms, source: str) -> None:
    wrong = (log.time_ms > GREATEST_S * 1000) | (log.direction > 3)
    if wrong.any():
        line = int(np.flatnonzero(wrong)[0]) + 1
        raise UnusableError(source, "its time or direction is none", line)


def _part(log: Histograms, chosen: npt.NDArray[np.bool_]) -> tuple[Direction, Series] | None:
    """Totals and series of one direction; lines of one time (several jobs in a log) add up."""
    inside = chosen[log.row]
    count, column = log.count[inside], log.column[inside]
    per_bin = np.bincount(column, weights=count, minlength=len(log.centre_ns))
    if not per_bin.any():
        return None
    times, which = np.unique(log.time_ms[chosen], return_inverse=True)
    line_of = np.cumsum(chosen) - 1
    interval = which[line_of[log.row[inside]]]
    counts = np.bincount(interval, weights=count, minlength=len(times))
    total = np.bincount(interval, weights=count * log.centre_ns[column], minlength=len(times))
    bins = {round(log.centre_ns[index]): int(per_bin[index]) for index in np.flatnonzero(per_bin).tolist()}
    seconds = max(float(times[-1]) / 1000, 0.001)
    ios = int(per_bin.sum())
    return _totals(bins, ios, float(total.sum()), seconds), _series(times, counts, total)


def _totals(bins: dict[int, int], ios: int, sum_ns: float, seconds: float) -> Direction:
    p50, p99, p999 = percentile_ns(bins, 0.5, 0.99, 0.999)
    return Direction(
        ios=ios,
        iops=ios / seconds,
        bw_bytes=float("nan"),
        runtime_ms=1000 * seconds,
        lat_mean_ms=sum_ns / ios / NS_PER_MS,
        lat_min_ms=min(bins) / NS_PER_MS,
        lat_max_ms=max(bins) / NS_PER_MS,
        lat_p50_ms=p50 / NS_PER_MS,
        lat_p99_ms=p99 / NS_PER_MS,
        lat_p999_ms=p999 / NS_PER_MS,
        bins=bins,
    )


def _series(times: Ints, counts: npt.NDArray[Any], total_ns: npt.NDArray[Any]) -> Series:
    """Rates and mean latencies of intervals that end at these times, in ms."""
    widths = np.diff(times, prepend=0) / 1000
    with np.errstate(all="ignore"):
        mean_ns = np.where(counts > 0, total_ns / np.maximum(counts, 1), np.nan)
    kept = widths > 0
    return Series(times[kept] / 1000, counts[kept] / widths[kept], mean_ns[kept] / NS_PER_MS)
