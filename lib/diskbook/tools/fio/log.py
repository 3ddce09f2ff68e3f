"""Reader of fio's latency, IOPS and bandwidth logs of any size, block by block.

A line is time (ms since the start, or since the epoch), value (latency in ns, in microseconds before fio 3;
IOPS; KiB/s), direction (0 read, 1 write, 2 trim), block size in bytes (0 where values are averaged over an
interval), and columns that differ between versions and are not used: the fifth is an offset where one was
asked for in old versions, a priority in new ones::

    500, 2160107, 1, 4096, 0

pyarrow reads the numbers; two threads, since it and numpy let go of the interpreter meanwhile.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from diskbook.facts.units import MIB
from diskbook.tools.record import UnusableError

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

    Raises
    ------
    UnusableError
        When a line, which is named, is none of a log.
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

    Raises
    ------
    UnusableError
        Names the first line, counted within the block, that is none of a log.
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
    """Read some of a block's columns; ValueError for what are no numbers."""
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
        raise UnusableError(source, "this is no line of a log ('time, value, direction, block size, ...')", 1)
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
            return UnusableError(source, f"this is no line of a log: '{shown}'", number)
    return UnusableError(source, f"it is no log of fio ({why.splitlines()[0][:100] if why else 'unknown'})")


def _numbers(fields: list[bytes], limits: tuple[int, ...]) -> bool:
    for field, most in zip(fields, limits, strict=True):
        digits = field.strip()
        if not (digits.isdigit() and len(digits) < 19 and int(digits) <= most):
            return False
    return True
