"""Reader of elbencho's results files, CSV (--csvfile) and JSON (--jsonfile). Text in, no I/O.

elbencho appends to such a file, so one holds the phases of several runs: each row is a measurement, with the
date at which its phase began. The rates here are those of the last thread's end ("last done"), from the
bytes done; elbencho prints whole IOPS. Its percentiles are bounds of wide buckets, and are not read.

Read from files of elbencho 3.1-1.
"""

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from diskbook.facts.units import MIB, MS_PER_S, US_PER_MS
from diskbook.tools import record
from diskbook.tools.record import CACHED, Direction, Load, Measurement, Parsed, UnusableError, number

CSV, JSON = "elbencho CSV", "elbencho JSON"
_HEAD = "ISO date,label,path type,"
_PATTERNS: dict[str, Literal["random", "sequential"]] = {"1": "random", "0": "sequential"}
_PHASE = re.compile(r"(?P<one>READ|WRITE)|RWMIX(?P<read_pct>\d{1,3})|MIX-T\d+")
_RAGGED = 1.1
_MOST_FLAGS = 5
_DATED = "%Y-%m-%dT%H:%M:%S.%f%z"
_CONFIG = {
    **{"path_type": "path type", "paths": "paths", "hosts": "hosts", "threads": "threads", "dirs": "dirs"},
    **{"files": "files", "file_size": "file size", "block_size": "block size", "direct_io": "direct IO"},
    **{"random_offsets": "random", "io_depth": "IO depth", "version": "version", "command": "command"},
}
"""Member of the JSON's "config" to the column of the CSV."""
_FILES = r"--(?:csvfile|jsonfile|resfile|configfile|hostsfile|treefile|livecsv|livejson|opslog|label)|-c"
_REPORTED = (
    *("threads", "block", "size", "iodepth", "direct", "rand", "hosts", "hostsfile", "label", "timelimit"),
    *("csvfile", "jsonfile", "resfile", "configfile", "livecsv", "livejson", "opslog", "nolive", "live1"),
    *("lat", "latpercent", "latpercent9s", "lathisto", "allelapsed", "cpu", "nocsvlabels", "write", "read"),
    *("mkdirs", "delfiles", "deldirs", "dirs", "files", "rwmixpct", "rwmixthr", "log", "trunc", "quiet"),
)
"""Options that columns tell, or that do not change what is measured."""

Row = Mapping[str, str]


def is_elbencho(text: str) -> bool:
    """Whether the text begins as one of elbencho's results files."""
    head = text.lstrip()[:4000]
    return head.startswith(_HEAD) or (head.startswith(("{", "[")) and '"phase_type"' in head)


def parse(text: str, source: str) -> Parsed:
    """Read every phase that reads or writes.

    Raises UnusableError when none can be used, or they are of several versions.
    """
    is_csv = text.lstrip().startswith(_HEAD)
    measurements, versions, problems = [], set[str](), list[str]()
    others = Counter[str]()
    for place, row in enumerate(_rows_of_csv(text) if is_csv else _rows_of_json(text, source), 1):
        phase = row.get("operation", "")
        if row and not _PHASE.fullmatch(phase):
            others[phase[:20]] += 1
            continue
        try:
            measurements.append(_measurement(row))
            versions.add(row.get("version", "")[:20] or "unknown")
        except ValueError as error:
            problems.append(f"row {place}: {error}")
    if not measurements:
        raise UnusableError(source, "; ".join(problems[:3]) or "no phase in it reads or writes")
    version = record.one_version(versions, source, "rows of several versions")
    flags = problems[:_MOST_FLAGS]
    if len(problems) > _MOST_FLAGS:
        flags.append(f"{len(problems) - _MOST_FLAGS} more rows cannot be used")
    if others:
        names = ", ".join(sorted(others))
        flags.append(f"phases that neither read nor write are left out ({names})")
    return Parsed("elbencho", version, CSV if is_csv else JSON, tuple(measurements), tuple(flags))


def _rows_of_csv(text: str) -> Iterator[Row]:
    """Rows by column; a header that comes again begins again, and a row that does not fit it is empty.

    elbencho writes no comma into a cell, and its command in quotes as a shell has them, not a table.
    """
    header: list[str] = []
    for line in filter(str.strip, text.lstrip().splitlines()):
        if line.startswith(_HEAD):
            header = line.strip().split(",")
            continue
        cells = line.split(",")
        yield dict(zip(header, cells, strict=True)) if len(cells) == len(header) else {}


def _rows_of_json(text: str, source: str) -> Iterator[Row]:
    """Phases as rows of the CSV, with bytes where that has MiB; one that is cut ends them."""
    decoder, place = json.JSONDecoder(), 0
    while opening := re.compile(r"[\[{]").search(text, place):
        try:
            document, place = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            yield {}
            return
        for phase in document if isinstance(document, list) else [document]:
            yield _row_of_json(phase) if isinstance(phase, dict) else {}


def _row_of_json(phase: Mapping[str, Any]) -> Row:
    config, first, last = (_part(phase, name) for name in ("config", "first_done", "last_done"))
    io = _part(_part(last, "latency"), "IO")
    row = {
        "operation": phase.get("phase_type"),
        "ISO date": phase.get("iso_start_date"),
        "time ms [first]": first.get("elapsed_time_ms"),
        "time ms [last]": last.get("elapsed_time_ms"),
        **{column: config.get(name) for name, column in _CONFIG.items()},
    }
    for start, done, latency in (
        ("", last, io),
        ("rwmix read ", _part(last, "rwmix_read"), _part(io, "rwmix_read")),
    ):
        row[f"{start}IOPS [last]"], row[f"{start}bytes [last]"] = done.get("iops"), done.get("bytes")
        for kind in ("min", "avg", "max"):
            row[f"{start}IO lat us [{kind}]"] = latency.get(f"{kind}_us")
    flags = {"true": "1", "false": "0", "True": "1", "False": "0", "None": ""}
    return {name: flags.get(str(value), str(value)) for name, value in row.items()}


def _part(node: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = node.get(name)
    return part if isinstance(part, dict) else {}


def _measurement(row: Row) -> Measurement:
    # Long: a row's columns, one after the other.
    if not row:
        raise ValueError("it is cut, or does not fit the header")
    if row.get("path type", "") not in ("file", "dir", "blockdev"):
        raise ValueError(f"it is of '{row.get('path type', '')[:20]}', which is not a disk")
    milliseconds = _number(row, "time ms [last]")
    block, depth, hosts = (_whole(row, name) for name in ("block size", "IO depth", "hosts"))
    if not milliseconds > 0:
        raise ValueError("it took no time")
    phase = _PHASE.fullmatch(row["operation"])
    assert phase is not None
    starts = {"write": "", "read": "rwmix read "} if not phase["one"] else {phase["one"].lower(): ""}
    directions = {
        name: part for name, start in starts.items() if (part := _direction(row, start, milliseconds)).ios > 0
    }
    if not directions:
        raise ValueError("it did no I/O")
    write_pct = {"WRITE": 100, "READ": 0}.get(phase["one"] or "")
    if phase["read_pct"]:
        write_pct = max(100 - int(phase["read_pct"]), 0)
    load = Load(
        pattern=_PATTERNS.get(row.get("random", "")),
        block_size_bytes=block,
        write_pct=write_pct,
        threads=(_whole(row, "threads") or 1) * (hosts or 1),
        queue_depth=depth,
        size_bytes=_size(row),
    )
    target, options = _command(row)
    return Measurement(
        name=row["operation"],
        target=target,
        load=load,
        directions=directions,
        started_utc=_started(row.get("ISO date", "")),
        flags=_flags(row, milliseconds, hosts or 1),
        options=options,
    )


def _direction(row: Row, start: str, milliseconds: float) -> Direction:
    """Rates from the bytes done where they are finer than elbencho's whole IOPS."""
    block = _number(row, "block size")
    iops, mib = (_number(row, f"{start}{name} [last]") for name in ("IOPS", "MiB"))
    done = _number(row, f"{start}bytes [last]")
    done = mib * MIB if math.isnan(done) else done
    seconds = milliseconds / MS_PER_S
    is_whole = block > 0 and _number(row, "file size") % block == 0
    counts_bytes = is_whole and done > 0 and not mib < iops
    ios = done / block if counts_bytes else iops * seconds
    done = ios * block if is_whole else done
    ios = 0.0 if math.isnan(ios) else ios
    least, mean, most = (
        _number(row, f"{start}IO lat us [{kind}]") / US_PER_MS for kind in ("min", "avg", "max")
    )
    return Direction(
        ios=round(ios),
        iops=ios / seconds,
        bw_bytes=done / seconds,
        runtime_ms=milliseconds,
        lat_mean_ms=mean,
        lat_min_ms=least,
        lat_max_ms=most,
    )


def _flags(row: Row, milliseconds: float, hosts: int) -> tuple[str, ...]:
    flags = []
    if row.get("direct IO") == "0":
        flags.append(CACHED)
    first = _number(row, "time ms [first]")
    if milliseconds > _RAGGED * first:
        flags.append(
            f"threads ended far apart (the first after {first / MS_PER_S:.1f} s, the last after "
            f"{milliseconds / MS_PER_S:.1f} s): the rate is over all that time"
        )
    if hosts > 1:
        flags.append(f"{hosts} hosts together, whose threads are added up")
    return tuple(flags)


def _size(row: Row) -> int | None:
    """Bytes of all files: those of a folder are counted by thread and folder."""
    size, paths = _number(row, "file size"), _whole(row, "paths") or 1
    if row.get("path type") == "dir":
        counts = [_whole(row, name) or 1 for name in ("files", "dirs", "threads", "hosts")]
        size, paths = size * math.prod(counts), 1
    return round(size * paths) if 0 < size * paths < 2**62 else None


def _command(row: Row) -> tuple[str, dict[str, str]]:
    """Return the paths that the command names, where they are as many as the row says, and its options."""
    try:
        words = shlex.split(row.get("command", ""))[1:]
    except ValueError:
        return "", {}
    before = ["", *words]
    paths = [
        word
        for word, last in zip(words, before, strict=False)
        if word.startswith("/") and not re.fullmatch(_FILES, last)
    ]
    options = {}
    for word, follows in zip(words, [*words[1:], "-"], strict=True):
        name, _, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and name not in _REPORTED:
            options[name] = value or ("1" if follows.startswith(("-", "/")) else follows)
    return (" + ".join(paths) if len(paths) == _whole(row, "paths") else ""), options


def _started(text: str) -> str | None:
    try:
        return datetime.strptime(text, _DATED).isoformat()
    except ValueError:
        return None


def _number(row: Row, name: str) -> float:
    """Return a cell, NaN where it is empty or the version writes none."""
    text = row.get(name, "")
    return number(text, name) if text else math.nan


def _whole(row: Row, name: str) -> int | None:
    value = _number(row, name)
    return round(value) if 1 <= value < 2**62 else None
