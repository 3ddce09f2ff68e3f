"""Reader of fio's latency, IOPS and bandwidth logs of any size, block by block.

A line is time (ms since the start, or since the epoch), value (latency in ns, in microseconds before fio 3;
IOPS; KiB/s), direction (0 read, 1 write, 2 trim), block size in bytes (0 where values are averaged over an
interval), and columns that differ between versions and are not used: the fifth is an offset where one was
asked for in old versions, a priority in new ones::

500, 2160107, 1, 4096, 0

pyarrow reads the numbers; two threads, since it and numpy let go of the interpreter meanwhile.

Averaged logs become series: IOPS of all jobs and their mean latency by interval.

The jobs' lines follow one another: time falls where the next job begins.
"""

import io
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from diskbook.facts.units import MIB, NS_PER_MS
from diskbook.tools.record import Floats, Series, UnusableError

BLOCK_BYTES = 512 * 1024
"""Small enough for the processor's caches: blocks of 16 MiB take twice as long on two cores."""
GREATEST_S = 1_000_000
"""Of a log: 11 days. A time beyond it is a damaged number."""
EPOCH_MS = 1_000_000_000_000
"""Times from here on are since the epoch (log_unix_epoch): from 2001 to `_LAST_MS`, 2096."""
_LAST_MS = 4_000_000_000_000
_GREATEST_VALUE = 2**53
_WORKERS = 2
_AHEAD = 8
_LONGEST_LINE = MIB
_NAMES = ("time_ms", "value", "direction", "size_bytes")
_LEAST_COLUMNS = 4  # fio 2.0 wrote no more
_MOST_COLUMNS = 8

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Lines of a log as columns; `size_bytes` is empty where it was not read."""

    time_ms: Ints
    value: Ints
    direction: Ints
    size_bytes: Ints

    @property
    def averaged(self) -> bool:
        """Whether a line stands for an interval, not for an I/O."""
        return len(self.size_bytes) > 0 and not self.size_bytes.any()


def no_rows() -> Rows:
    """Return the rows of an empty log."""
    return Rows(*(np.zeros(0, np.int64) for _ in _NAMES))


def stacked(logs: Sequence[Rows]) -> Rows:
    """Put the lines of several logs one after another."""
    return Rows(*(np.concatenate([getattr(rows, name) for rows in (no_rows(), *logs)]) for name in _NAMES))


def read_rows(content: bytes, source: str) -> tuple[Rows, tuple[str, ...]]:
    """Read a whole log of moderate size; return its rows, and flags.

    Raises UnusableError when a line, which is named, is none of a log.
    """
    blocks = list(blocks_of(io.BytesIO(content), source, len(content) + 1))
    if not blocks:
        raise UnusableError(source, "the log is empty")
    return parse_block(blocks[0], source), blocks[-1].flags


@dataclass(frozen=True)
class Block:
    """Whole lines, how many columns they have, and flags (of the last block)."""

    content: bytes
    columns: int
    flags: tuple[str, ...] = ()


def blocks_of(stream: BinaryIO, source: str, size: int = 0) -> Iterator[Block]:
    """Cut a log into blocks of whole lines. A last line that was cut short is left out and flagged."""
    size = size or BLOCK_BYTES
    rest, columns = b"", 0
    while True:
        read = stream.read(size)
        content = rest + read
        end = content.rfind(b"\n") + 1 if read else len(content)
        if not columns and content:
            columns = _columns(content, source)
        part, rest = content[:end], content[end:]
        flags: tuple[str, ...] = ()
        if not read:
            part, flags = _without_cut_line(part, columns)
        if flags or (part and not part.isspace()):
            yield Block(part, columns, flags)
        if not read:
            return
        if len(rest) > max(2 * size, _LONGEST_LINE):
            raise UnusableError(source, "it holds a line without end")


def parse_block(block: Block, source: str, *, sizes: bool = True) -> Rows:
    """Read the numbers of a block; block sizes take a tenth of the time and are read where they are wanted.

    Raises UnusableError: names the first line, counted within the block, that is none of a log.
    """
    if not block.content or block.content.isspace():
        return no_rows()
    try:
        columns = _columns_of(block, _NAMES if sizes else _NAMES[:-1])
    except ValueError as error:
        raise _bad_line(block, source, str(error)) from None
    rows = Rows(**{"size_bytes": np.zeros(0, np.int64), **columns})
    if not _plausible(rows):
        raise _bad_line(block, source, "")
    return rows


def _columns_of(block: Block, names: Sequence[str]) -> dict[str, Ints]:
    """Read some of a block's columns; ValueError for what are not numbers."""
    # Half as long again as numpy: who only builds commands need not spend it.
    import pyarrow as pa
    from pyarrow import csv

    every = [*_NAMES, *(f"more_{k}" for k in range(block.columns - len(_NAMES)))]
    whole = len(block.content) + 1
    try:
        table = csv.read_csv(
            pa.BufferReader(block.content),
            read_options=csv.ReadOptions(column_names=every, use_threads=False, block_size=whole),
            parse_options=csv.ParseOptions(quote_char=False, ignore_empty_lines=True),
            convert_options=csv.ConvertOptions(
                include_columns=names, column_types=dict.fromkeys(names, pa.int64()), null_values=[]
            ),
        )
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None
    # Arrow's own to_numpy imports pandas: a third of a second in a process that has it not.
    columns = {name: table.column(name).combine_chunks() for name in names}
    return {name: np.asarray(np.from_dlpack(column), np.int64) for name, column in columns.items()}


def parsed(stream: BinaryIO, source: str) -> Iterator[tuple[Rows, Block]]:
    """Read a log block by block, in order, on two threads; few blocks are held at a time."""
    lines = 0
    with ThreadPoolExecutor(_WORKERS) as pool:
        for block, future in _ahead(pool, blocks_of(stream, source), source):
            try:
                rows = future.result()
            except UnusableError as error:
                raise UnusableError(source, error.reason, lines + (error.line or 1)) from None
            lines += len(rows.value)
            yield rows, block


def _ahead(
    pool: ThreadPoolExecutor, blocks: Iterator[Block], source: str
) -> Iterator[tuple[Block, Future[Rows]]]:
    """Hand blocks to the pool, a few ahead of the one that is waited for."""
    waiting: deque[tuple[Block, Future[Rows]]] = deque()
    for number, block in enumerate(blocks):
        waiting.append((block, pool.submit(parse_block, block, source, sizes=number == 0)))
        if len(waiting) > _AHEAD:
            yield waiting.popleft()
    yield from waiting


def _columns(content: bytes, source: str) -> int:
    first = content.lstrip().split(b"\n", 1)[0]
    columns = first[:1000].count(b",") + 1
    if not _LEAST_COLUMNS <= columns <= _MOST_COLUMNS:
        raise UnusableError(source, "this is not a line of a log ('time, value, direction, size, ...')", 1)
    return columns


def _without_cut_line(content: bytes, columns: int) -> tuple[bytes, tuple[str, ...]]:
    last = content.rfind(b"\n") + 1
    if content[last:].strip() and content[last:].count(b",") + 1 < columns:
        return content[:last], ("the last line is cut short and left out",)
    return content, ()


def _plausible(rows: Rows) -> bool:
    if not len(rows.value):
        return True
    limits = (_latest_ms(int(rows.time_ms[0])), _GREATEST_VALUE, 3, 2**40)
    columns = (rows.time_ms, rows.value, rows.direction, rows.size_bytes)
    return all(
        not len(column) or (column.min() >= 0 and column.max() <= most)
        for column, most in zip(columns, limits, strict=True)
    )


def _latest_ms(first_ms: int) -> int:
    """Greatest time that a log may have, of which one line is known."""
    return _LAST_MS if EPOCH_MS <= first_ms <= _LAST_MS else GREATEST_S * 1000


def _bad_line(block: Block, source: str, why: str) -> UnusableError:
    """Find the line that is wrong, now that speed no longer matters."""
    first = block.content.split(b",", 1)[0].strip()
    latest = _latest_ms(int(first)) if first.isdigit() and len(first) < 19 else 0
    limits = (latest or GREATEST_S * 1000, _GREATEST_VALUE, 3, 2**40)
    for number, line in enumerate(block.content.split(b"\n"), 1):
        fields = line.split(b",")
        if line.strip() and not (len(fields) == block.columns and _numbers(fields[:4], limits)):
            shown = line[:60].decode("utf-8", "replace").strip()
            return UnusableError(source, f"this is not a line of a log: '{shown}'", number)
    return UnusableError(source, f"it is not a log of fio ({why.splitlines()[0][:90] if why else 'unknown'})")


def _numbers(fields: list[bytes], limits: tuple[int, ...]) -> bool:
    for field, most in zip(fields, limits, strict=True):
        digits = field.strip()
        if not (digits.isdigit() and len(digits) < 19 and int(digits) <= most):
            return False
    return True


_DIRECTIONS = {0: "read", 1: "write"}
_CODES = 4  # of directions, that a line may have


@dataclass(frozen=True)
class _Averages:
    """What each job averaged in each interval, in the order of the log."""

    interval: Ints
    job: Ints
    direction: Ints
    value: Floats

    def at(self, index: np.ndarray) -> "_Averages":
        return _Averages(self.interval[index], self.job[index], self.direction[index], self.value[index])


def series_of(latency: Rows, iops: Rows, interval_s: float, unit_iops: float = 1.0) -> dict[str, Series]:
    """Add the jobs of averaged logs up, interval by interval.

    Latency is the mean over jobs, weighted by each job's IOPS in that interval. A rest shorter than half an
    interval at the end is left out, and so is a last interval that some of the jobs did not log.

    - `latency`, `iops`: the two logs; that of the latency may be empty.
    - `interval_s`: log_avg_msec / 1000.
    - `unit_iops`: IOPS that a value of the second log stands for, where it is one of bandwidth.

    Returns series by direction (read, write); empty for a trial shorter than two intervals.
    """
    rates = _while_all_ran(_averages(iops, interval_s, unit_iops))
    means = _averages(latency, interval_s, 1.0)
    if rates.interval.max(initial=0) < 2:
        return {}  # with one interval a job, the jobs cannot be distinguished
    return {
        name: _series(rates.at(rates.direction == code), means.at(means.direction == code), interval_s)
        for code, name in _DIRECTIONS.items()
        if code in rates.direction
    }


def _averages(rows: Rows, interval_s: float, unit: float) -> _Averages:
    """Sort the lines by interval and job.

    Of several entries of a job in an interval the first counts: another one is a rest at the end.
    """
    ended = rows.time_ms / (interval_s * 1000)
    job = np.cumsum(np.diff(ended, prepend=0) < -0.5, dtype=np.int64)
    interval = np.rint(ended - _late(ended, job)).astype(np.int64)
    averages = _Averages(interval, job, rows.direction, np.asarray(rows.value * unit, np.float64))
    _, first = np.unique(_keys(interval, job) * _CODES + rows.direction, return_index=True)
    first = np.sort(first)
    return averages.at(first[interval[first] > 0])


def _while_all_ran(rates: _Averages) -> _Averages:
    """Leave out the last interval if the lines of some job end one interval earlier.

    fio logs the rates of the jobs that still run when it takes its samples (calc_log_samples). Of jobs that
    end together some may have ended by then, so that the sum over the others would be too low.
    """
    ends = np.zeros(rates.job.max(initial=0) + 1, np.int64)
    np.maximum.at(ends, rates.job, rates.interval)
    return rates.at(rates.interval < ends.max()) if ends.max() - 1 in ends else rates


def _late(ended: Floats, job: Ints) -> Floats:
    """By how much of an interval the lines of each job come late, from -0.25 to 0.75 (circular mean).

    A job that began half an interval late would else have intervals with two of its lines, and with none.
    """
    turn = np.exp(2j * np.pi * ended)
    of_job = np.bincount(job, turn.real) + 1j * np.bincount(job, turn.imag)
    late: Floats = (np.angle(of_job) / (2 * np.pi) + 0.25) % 1.0 - 0.25
    return late[job]


def _keys(interval: Ints, job: Ints) -> Ints:
    """Number for each pair of interval and job, small enough for any log."""
    _, place = np.unique(interval, return_inverse=True)
    return np.asarray(place * (job.max(initial=0) + 1) + job, np.int64)


def _series(rates: _Averages, means: _Averages, interval_s: float) -> Series:
    intervals, place = np.unique(rates.interval, return_inverse=True)
    latency_ns = _latency_of(rates, means)
    known = ~np.isnan(latency_ns)
    at, n = place[known], len(intervals)
    weight = np.bincount(at, rates.value[known], minlength=n)
    weighted = np.bincount(at, rates.value[known] * latency_ns[known], minlength=n)
    with np.errstate(all="ignore"):
        mean = weighted / np.where(weight > 0, weight, np.nan) / NS_PER_MS
    total = np.bincount(place, rates.value, minlength=n)
    return Series(np.asarray(intervals * interval_s, np.float64), np.asarray(total, np.float64), mean)


def _latency_of(rates: _Averages, means: _Averages) -> Floats:
    """Mean latency, in ns, of the interval and job of each rate; NaN where none was logged."""
    latency_ns = np.full(len(rates.value), np.nan)
    keys = _keys(np.append(rates.interval, means.interval), np.append(rates.job, means.job))
    of_rates, of_means = np.split(keys, [len(rates.value)])
    _, here, there = np.intersect1d(of_rates, of_means, assume_unique=True, return_indices=True)
    latency_ns[here] = means.value[there]
    return latency_ns
