"""A table of results, one measurement per row: `diskbook import TABLE --columns iops=IOPS,block_size=bs,...`.

Theses, blogs and vendors publish such tables without the files they were made from. The mapping names
the column of each field. A column may be multiplied or divided by a number; nothing else is evaluated.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from diskbook.design.model import ToolName, block_bytes
from diskbook.facts import files
from diskbook.facts.errors import UsageError, unknown, visible
from diskbook.facts.units import GIB, MIB
from diskbook.importing.layout import Meaning
from diskbook.tools.record import Direction, Load, Measurement, Parsed, UnusableError, number, ranks

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "table"
UNKNOWN = "unknown"
TEXTS = ("arm", "load", "operation", "pattern", "replicate", "block", "started", "host", "target")
NUMBERS = (
    *("iops", "mb_s", "mib_s", "ios", "runtime_s", "block_size", "queue_depth", "threads", "write_pct"),
    *("lat_mean_ms", "lat_stddev_ms", "lat_min_ms", "lat_max_ms"),
    *("lat_p50_ms", "lat_p95_ms", "lat_p99_ms", "lat_p999_ms", "size_gib"),
)
FIELDS = (*TEXTS, *NUMBERS, "tool", "version")
"""What a column may stand for. `lat_ms` is short for `lat_mean_ms`."""
_SHORT = {"lat_ms": "lat_mean_ms"}
_FACTOR = re.compile(r"(?P<column>.+?)\s*(?P<sign>[*/])\s*(?P<factor>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)")
_PERCENTILES = {50.0: "lat_p50_ms", 95.0: "lat_p95_ms", 99.0: "lat_p99_ms", 99.9: "lat_p999_ms"}
_NO_VERSION = "the tool's version is not told, so arms are not compared: add version:=..., or version=COLUMN"
_MOST_FLAGS = 5
_MOST_KINDS = 12
_MOST_COLUMNS, _LONGEST = 30, 30
"""Columns that a message names, and letters of each."""
_GREATEST_BLOCK = 2**40
_EXAMPLE = "--columns arm=disk,operation=op,block_size=bs,queue_depth=iodepth,iops=IOPS"

Columns = tuple[tuple[str, str], ...]
"""Pairs of a field and its column, or ":" and a fixed value."""


class Row(NamedTuple):
    """One measurement, and what its row says of arm, replicate and block."""

    measurement: Measurement
    meaning: Meaning


class Read(NamedTuple):
    """A table as it was read.

    `refused` has a sentence for each row that cannot be used, `flags` what a reader of all rows must know.
    """

    rows: list[Row]
    tool: ToolName
    version: str
    refused: tuple[str, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class _Fields:
    """Texts of a table by field, and the parts of each row's arm."""

    texts: Mapping[str, Sequence[str]]
    arms: Sequence[tuple[str, ...]]


def columns_of(text: str) -> Columns:
    """Read a mapping: pairs such as "iops=IOPS", separated by commas, or the name of a TOML file.

    "lat_ms=lat_us/1000" scales a column, and "pattern:=random" gives all rows one value. `arm` may occur
    several times. The file has a table [columns], and one [values] for what all rows have in common.
    Raises UsageError for an unknown field, one that is named twice, or one that is missing.
    """
    pairs = (
        _of_file(Path(text))
        if text.endswith(".toml")
        else [_pair(part) for part in text.split(",") if part.strip()]
    )
    pairs = [(_SHORT.get(name, name), source) for name, source in pairs]
    for name, _ in pairs:
        if name not in FIELDS:
            raise unknown("field", name, (*FIELDS, *_SHORT), "--columns")
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1 and name != "arm"), ""):
        raise UsageError(f"--columns names {twice} twice; leave one out")
    _check_enough(set(names))
    return tuple(pairs)


def _of_file(path: Path) -> list[tuple[str, str]]:
    """Pairs of the tables [columns] and [values] of a mapping file."""
    document = files.read_toml(path, f"--columns: there is no file {path}")
    pairs: list[tuple[str, str]] = []
    for table, mark in (("columns", ""), ("values", ":")):
        rows = document.pop(table, {})
        if not isinstance(rows, dict):
            raise UsageError(f"{path}: [{table}] is not a table; write its fields below it")
        for name, value in rows.items():
            pairs += [(name, f"{mark}{item}") for item in (value if isinstance(value, list) else [value])]
    if document:
        raise unknown("table", next(iter(document)), ("columns", "values"), str(path))
    return pairs


def _pair(text: str) -> tuple[str, str]:
    name, equals, source = text.partition("=")
    if not equals or not source.strip() or not name.strip(" :"):
        raise UsageError(f"--columns: '{text.strip()}' is not field=column; an example is {_EXAMPLE}")
    fixed = name.rstrip().endswith(":")
    return name.strip(" :"), f"{':' if fixed else ''}{source.strip()}"


def _check_enough(names: set[str]) -> None:
    """Refuse a mapping that cannot make a measurement."""
    if not names & {"iops", "mb_s", "mib_s"}:
        raise UsageError("--columns names no rate: add iops=COLUMN, mb_s=COLUMN or mib_s=COLUMN")
    if not names & {"operation", "write_pct"}:
        raise UsageError("--columns does not tell reads from writes: add operation=COLUMN or operation:=read")
    if "block_size" not in names and not ("iops" in names and names & {"mb_s", "mib_s"}):
        raise UsageError("--columns names no block size: add block_size=COLUMN or block_size:=4K")


def parse(content: bytes, source: str, columns: Columns) -> Parsed:
    """Read a table as other formats are read; see `read`."""
    table = read(content, source, columns)
    return Parsed(table.tool, table.version, FORMAT, tuple(row.measurement for row in table.rows))


def read(content: bytes, source: str, columns: Columns) -> Read:
    """Read every row of a table of CSV, TSV, Parquet or Excel.

    Raises UnusableError when it is not a table, lacks a column of the mapping, or has no usable row.
    """
    frame = _frame(content, source)
    values = _values(frame, columns, source)
    placed: list[tuple[int, Row]] = []
    refused: list[str] = []
    for place in range(len(frame)):
        try:
            of_row = {name: texts[place] for name, texts in values.texts.items()}
            placed.append((place, _row(of_row, values.arms[place])))
        except ValueError as error:
            refused.append(f"row {place + 1}: {error}")
    placed = _whole_loads(placed, refused)
    if not placed:
        raise UnusableError(source, f"no row can be used: {refused[0] if refused else 'the table is empty'}")
    tool, version = _tool(values, source)
    unnamed = [_NO_VERSION] if version == UNKNOWN else []
    doubts = (*unnamed, *filter(None, [_unmapped(frame, columns, placed)]))
    return Read([row for _, row in placed], tool, version, _some(refused), doubts)


def texts(content: bytes, source: str, columns: Columns) -> Iterator[dict[str, str]]:
    """Yield the mapped columns of every row as text, scaled.

    Raises UnusableError when it is not a table, UsageError when it lacks a column.
    """
    frame = _frame(content, source)
    taken = {name: _column(frame, text, name, source) for name, text in columns}
    yield from (dict(zip(taken, of_row, strict=True)) for of_row in zip(*taken.values(), strict=True))


def _frame(content: bytes, source: str) -> pd.DataFrame:
    """Read the table as text, whatever its format."""
    import pandas as pd

    try:
        if content.startswith(b"PAR1"):
            frame = pd.read_parquet(io.BytesIO(content))
        elif content.startswith(b"PK\x03\x04"):
            frame = pd.read_excel(io.BytesIO(content), dtype=str, keep_default_na=False, engine="openpyxl")
        else:
            frame = _of_text(files.text_of(content)[0])
    except ImportError:
        raise UsageError(
            "tables of Excel need openpyxl, which is not installed: pip install -e '.[import]'"
        ) from None
    except (ValueError, KeyError, OSError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise UnusableError(source, f"this is not a table that can be read ({error})") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    return frame.astype(object).where(frame.notna(), "").map(str)


def _of_text(text: str) -> pd.DataFrame:
    """Read a table of text; where semicolons part the columns, a comma is the decimal point."""
    import pandas as pd

    head = text.lstrip().partition("\n")[0]
    delimiter = max((";", "\t", ","), key=head.count)
    frame = pd.read_csv(
        io.StringIO(text), sep=delimiter, dtype=str, keep_default_na=False, skipinitialspace=True
    )
    return frame.replace(r"^(-?\d+),(\d+)$", r"\1.\2", regex=True) if delimiter == ";" else frame


def _values(frame: pd.DataFrame, columns: Columns, source: str) -> _Fields:
    """Read the mapped columns and scale them to our units."""
    texts: dict[str, Sequence[str]] = {}
    arms: list[Sequence[str]] = []
    for name, text in columns:
        column = _column(frame, text, name, source)
        if name == "arm":
            arms.append(column)
        else:
            texts[name] = column
    joined = (
        [tuple(filter(None, of_row)) for of_row in zip(*arms, strict=True)] if arms else [()] * len(frame)
    )
    return _Fields(texts, joined)


def _column(frame: pd.DataFrame, text: str, name: str, source: str) -> Sequence[str]:
    if text.startswith(":"):
        return [text[1:]] * len(frame)
    if text in frame.columns:
        return [value.strip() for value in frame[text]]
    scaled = _FACTOR.fullmatch(text)
    if scaled is None or scaled["column"] not in frame.columns:
        known = [visible(column)[:_LONGEST] for column in frame.columns[:_MOST_COLUMNS]]
        raise unknown("column", scaled["column"] if scaled else text, known, f"{source}, field {name}")
    factor = float(scaled["factor"])
    if not factor > 0:
        raise UsageError(f"--columns {name}={text}: the number must be more than 0")
    factor = factor if scaled["sign"] == "*" else 1 / factor
    return [_scaled(value, factor) for value in frame[scaled["column"]]]


def _scaled(value: str, factor: float) -> str:
    try:
        return repr(float(_plain(value)) * factor)
    except ValueError:
        return value  # `_number` says which line it is in


def _plain(text: str) -> str:
    """Leave out commas between thousands, and only these."""
    return text.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) else text


def _row(values: Mapping[str, str], arm: tuple[str, ...]) -> Row:
    """Make a measurement of a row; ValueError says what is wrong with it."""
    numbers = {name: _number(values.get(name, ""), name) for name in NUMBERS if name != "block_size"}
    operation, write_pct = _operation(values, numbers["write_pct"])
    block_size = _block_size(values.get("block_size", ""))
    direction = _direction(numbers, block_size)
    load = Load(
        pattern=_pattern(values),
        block_size_bytes=block_size,
        write_pct=write_pct,
        threads=_whole(numbers["threads"]),
        queue_depth=_whole(numbers["queue_depth"]),
        size_bytes=_whole(numbers["size_gib"] * GIB),
        runtime_s=None if math.isnan(numbers["runtime_s"]) else numbers["runtime_s"],
    )
    flags = ["from a table of results, not from the tool's own output"]
    if math.isnan(numbers["iops"]):
        flags.append("IOPS follow from bytes per second and the block size")
    measurement = Measurement(
        name=values.get("load", ""),
        target=values.get("target", ""),
        load=load,
        directions={operation: direction},
        started_utc=_started(values.get("started", "")),
        flags=tuple(flags),
        host=values.get("host", ""),
    )
    meaning = Meaning(arm, values.get("replicate", ""), values.get("block", ""), values.get("load", ""))
    return Row(measurement, meaning)


def _whole_loads(placed: Sequence[tuple[int, Row]], refused: list[str]) -> list[tuple[int, Row]]:
    """Join the two rows of each mixed load, the reads and the writes; one without the other is refused."""
    whole: dict[int, Row] = {}
    halves: dict[tuple[object, ...], list[tuple[int, Row]]] = {}
    for place, row in placed:
        of_row = row.measurement
        if of_row.load.write_pct in (0, 100):
            whole[place] = row
            continue
        waiting = halves.setdefault((row.meaning, of_row.load, of_row.host, of_row.target), [])
        if not waiting or of_row.directions.keys() == waiting[0][1].measurement.directions.keys():
            waiting.append((place, row))
            continue
        first, other = waiting.pop(0)
        both = other.measurement.directions | of_row.directions
        whole[first] = other._replace(measurement=replace(other.measurement, directions=both))
    alone = sorted(place for waiting in halves.values() for place, _ in waiting)
    refused += [f"row {place + 1}: {_MIXED}, of the same load" for place in alone]
    return sorted(whole.items())


def _number(text: str, name: str) -> float:
    if text.lower() in ("", "nan", "none", "null", "-", "n/a"):
        return math.nan
    return number(_plain(text), name)


def _whole(value: float) -> int | None:
    return None if math.isnan(value) or value < 1 else round(value)


def _direction(numbers: Mapping[str, float], block_size: int | None) -> Direction:
    """Rate and latencies of a row."""
    mb_s = numbers["mb_s"] * 1e6
    bytes_s = mb_s if not math.isnan(mb_s) else numbers["mib_s"] * MIB
    iops = numbers["iops"]
    if math.isnan(iops):
        iops = bytes_s / block_size if block_size else math.nan
    if not iops > 0:
        raise ValueError("it has no rate")
    runtime_s, ios = numbers["runtime_s"], numbers["ios"]
    percentiles = {rank: numbers[name] for rank, name in _PERCENTILES.items() if numbers[name] >= 0}
    return Direction(
        ios=round(iops * runtime_s) if math.isnan(ios) and not math.isnan(runtime_s) else ios,
        iops=iops,
        bw_bytes=bytes_s,
        runtime_ms=1000 * runtime_s,
        lat_mean_ms=numbers["lat_mean_ms"],
        lat_stddev_ms=numbers["lat_stddev_ms"],
        lat_min_ms=numbers["lat_min_ms"],
        lat_max_ms=numbers["lat_max_ms"],
        **ranks(percentiles),
    )


def _operation(values: Mapping[str, str], write_pct: float) -> tuple[str, int]:
    """Whether a row is of reads or writes, and the share of writes of its load in percent."""
    if "operation" not in values:
        if write_pct not in (0.0, 100.0):
            raise ValueError(f"write_pct is {write_pct:g}: {_MIXED}")
        return "write" if write_pct else "read", int(write_pct)
    text = values["operation"].lower()
    reads, writes = "read" in text or text in ("r", "rd"), "write" in text or text in ("w", "wr")
    if reads == writes:
        raise ValueError(f"operation '{text}' is neither a read nor a write; {_MIXED}")
    operation, alone = ("write", 100) if writes else ("read", 0)
    return operation, round(write_pct) if 0 < write_pct < 100 else alone


_MIXED = "a mixed load needs a row for reads and one for writes"
_Access = Literal["random", "sequential"] | None


def _pattern(values: Mapping[str, str]) -> _Access:
    """Access as its column says, else as the operation's name does, e.g. "randread"."""
    text, operation = values.get("pattern", "").lower(), values.get("operation", "").lower()
    if text in ("random", "rand", "1", "true", "yes") or (not text and "rand" in operation):
        return "random"
    if text in ("sequential", "seq", "0", "false", "no") or (not text and "seq" in operation):
        return "sequential"
    if text:
        raise ValueError(f"pattern '{text}' is neither random nor sequential")
    return None


def _block_size(text: str) -> int | None:
    if not text:
        return None
    plain = re.sub(r"(?i)\s*(?:ib|b|bytes)$", "", text).strip().removesuffix(".0")
    try:
        size = int(block_bytes(plain))
    except ValueError:
        size = 0
    if not 1 <= size <= _GREATEST_BLOCK:
        raise ValueError(f"block_size '{text[:_LONGEST]}' is not a size such as 4K or 4096")
    return size


def _started(text: str) -> str | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"started '{text}' is not an ISO date such as 2026-08-15T14:45:51Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _tool(values: _Fields, source: str) -> tuple[ToolName, str]:
    """Tool and version of the table, which has one; "other" where it tells none."""
    names, versions = (sorted({*values.texts.get(name, [""])}) for name in ("tool", "version"))
    if len(names) > 1 or len(versions) > 1:
        several = ", ".join(names if len(names) > 1 else versions)
        raise UnusableError(source, f"it holds results of several tools or versions ({several}); split it")
    known: dict[str, ToolName] = {
        "fio": "fio",
        "diskspd": "diskspd",
        "elbencho": "elbencho",
        "sysbench": "sysbench",
    }
    return known.get(names[0].lower(), "other"), versions[0] or UNKNOWN


def _some(refused: Sequence[str]) -> tuple[str, ...]:
    """Return the first reasons, and how many there are."""
    more = len(refused) - _MOST_FLAGS
    return (*refused[:_MOST_FLAGS], *([f"{more} more rows cannot be used"] if more > 0 else []))


def _unmapped(frame: pd.DataFrame, columns: Columns, placed: Sequence[tuple[int, Row]]) -> str:
    """Say which columns that are not mapped differ within a cell, and so may be arms; empty for none."""
    used = {text for _, text in columns} | {
        match["column"] for _, text in columns if (match := _FACTOR.fullmatch(text))
    }
    cells: dict[tuple[object, ...], list[int]] = {}
    for place, row in placed:
        load = replace(row.measurement.load, runtime_s=None)
        cells.setdefault((row.meaning.arm, row.meaning.load, row.measurement.target, load), []).append(place)
    several = [places for places in cells.values() if len(places) > 1]
    names = [
        name
        for name in frame.columns
        if name not in used
        and 1 < len(set(frame[name])) <= _MOST_KINDS
        and not _are_measured(frame[name])
        and any(frame[name].iloc[places].nunique() > 1 for places in several)
    ]
    if not names:
        return ""
    return (
        f"not mapped, but different within a cell: {', '.join(names)}; "
        f"if one tells arms apart, add arm={names[0]}"
    )


def _are_measured(texts: pd.Series[str]) -> bool:
    """Whether a column holds fractions, which are results and no setting."""
    return any(re.fullmatch(r"-?\d+\.\d+(?:[eE][+-]?\d+)?", text) for text in texts)
