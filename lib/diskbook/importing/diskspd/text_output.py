"""Reader of DiskSpd's text output, versions 2.0.12 to 2.2 and for Linux. Reads text, touches no file.

The tables for all, read and write I/O end with a line of totals::

    total:         814219264 |       198784 |     155.26 |   39747.26 |    0.150 |    2553.66 |     0.597

The third column is MiB a second, also where old versions and the one for Linux call it MB/s; latencies and
their columns are there with -L only. The version is not printed. A file may hold several runs, one after
another, and may be a paste: indented, quoted with ">", with prompts in between. The one for Linux
(microsoft/diskspd-for-linux, src/result_formatter.cc) has jobs for time spans, and for the time that it took
the one that was asked for.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from diskbook.importing.diskspd import text_output_profile
from diskbook.tools.diskspd.xml import NO_LATENCY, bins_of
from diskbook.tools.record import Direction, Measurement, Parsed, UnusableError, failed_with, number, ranks

FOR_LINUX = "for Linux"
"""Stands for the version, which the one for Linux does not print either."""
_PASTED = r"^[ \t>]*"
_RUN = re.compile(_PASTED + "Command Line: ", re.MULTILINE)
_SPAN = re.compile(_PASTED + r"Results for (?:timespan|job) (\d{1,6}):", re.MULTILINE)
_INPUT = re.compile(_PASTED + r"(?:timespan|job):\s+(\d{1,6})", re.MULTILINE)
_TABLE = re.compile(_PASTED + r"(Total|Read|Write) IO\s*$", re.MULTILINE)
_TOTALS = re.compile(_PASTED + "total:(.*)$", re.MULTILINE)
_LINUX = re.compile(_PASTED + r"Results for job \d{1,6}:", re.MULTILINE)
_INTERRUPTED = "The test was interrupted before the measurements began"
_NAMED = {"min": 0.0, "max": 100.0}
_ROUNDED = 0.02
"""IOPS as printed, and those of counts and rounded time, differ by less; more is a damaged table."""


@dataclass(frozen=True)
class _Total:
    """A line of totals: I/Os, bytes, and mean and spread of the latency in ms (NaN without -L)."""

    ios: int
    size_bytes: float
    iops: float
    lat_mean_ms: float
    lat_stddev_ms: float


def is_text(text: str) -> bool:
    """Whether the text looks like DiskSpd's."""
    return bool(_SPAN.search(text)) or "Input parameters:" in text


def parse(text: str, source: str) -> Parsed:
    """Read every run and time span in a file of DiskSpd's text.

    Raises UnusableError when none can be used: line and reason.
    """
    measurements: list[Measurement] = []
    problems: list[tuple[int, str]] = []
    runs = list(_parts(text, _RUN)) or [(0, text)]
    for start, run in runs:
        inputs = {_int(match): part for match, part in _numbered(run, _INPUT)}
        for match, part in _numbered(run, _SPAN):
            line = text.count("\n", 0, start + match.start()) + 1
            try:
                measurements.append(_measurement(match, part, inputs.get(_int(match), ""), run))
            except ValueError as error:
                problems.append((line, f"time span {match[1]} cannot be used: {error}"))
    if not measurements:
        if not problems:
            raise UnusableError(source, "it has no results", cause=_complaint(text))
        where, why = problems[0]
        raise UnusableError(source, why, where)
    flags = [f"line {where}: {why}" for where, why in problems]
    if len(runs) > 1:
        flags.append(f"the file holds {len(runs)} runs")
    version = FOR_LINUX if _LINUX.search(text) else "unknown"
    return Parsed("diskspd", version, "DiskSpd text", tuple(measurements), tuple(flags))


def _complaint(text: str) -> str:
    message = re.search(r"^.*(?:ERROR|error|interrupted).*$", text, re.MULTILINE)
    return failed_with("DiskSpd", message.group()) if message else ""


def _parts(text: str, start: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    starts = [match.start() for match in start.finditer(text)]
    for position, begin in enumerate(starts):
        end = starts[position + 1] if position + 1 < len(starts) else len(text)
        yield begin, text[begin:end]


def _numbered(text: str, start: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str]]:
    matches = list(start.finditer(text))
    for position, match in enumerate(matches):
        end = matches[position + 1].start() if position + 1 < len(matches) else len(text)
        yield match, text[match.start() : end]


def _int(match: re.Match[str]) -> int:
    return int(match[1])


def _measurement(match: re.Match[str], part: str, asked: str, run: str) -> Measurement:
    """One time span; ValueError says why it cannot be used."""
    flags = ["text output does not tell DiskSpd's version"]
    seconds = _seconds(part, flags)
    totals = {name: total for name in ("read", "write") if (total := _total(part, name)).ios}
    if not totals:
        raise ValueError("no I/O was done")
    percentiles = _percentiles(part)
    if all(math.isnan(total.lat_mean_ms) for total in totals.values()):
        flags.append(NO_LATENCY)
    elif not percentiles:
        flags.append("the table of percentiles is not there or cut off")
    directions = {
        name: _direction(total, seconds, percentiles.get(name, {})) for name, total in totals.items()
    }
    load, paths = text_output_profile.load(asked, part, run, flags)
    return Measurement(
        name=f"time span {match[1]}",
        target=" + ".join(paths),
        load=load,
        options=text_output_profile.options(run, load.block_size_bytes),
        directions=directions,
        started_utc=_started(run),
        flags=tuple(flags),
        host=_host(run),
    )


def _seconds(part: str, flags: list[str]) -> float:
    """Time that it measured for; ValueError when it did not, or does not tell."""
    if _INTERRUPTED in part:
        raise ValueError("the test was interrupted before it measured anything")
    duration = re.search(r"(actual )?test time:\s*([\d.]{1,20})s", part)
    seconds = number(duration[2], "the test time", 1e9) if duration else 0.0
    if duration is None or not seconds:
        raise ValueError("it does not tell for how long it measured")
    if not duration[1]:
        flags.append("DiskSpd for Linux tells the time that was asked for, not the one it took")
    return seconds


def _total(part: str, name: str) -> _Total:
    """Line of totals of the table for reads or writes."""
    tables = {match[1].lower(): text for match, text in _numbered(part, _TABLE)}
    table = tables.get(name)
    if table is None:
        raise ValueError(f"the table of {name}s is not there or cut off")
    head = next((line for line in table.splitlines() if line.lstrip(" \t>").startswith("thread")), "")
    line = _TOTALS.search(table)
    if line is None:
        raise ValueError(f"the table of {name}s is cut off before its totals")
    # The one for Linux has "AvgLat(ms)" for "AvgLat".
    columns = [column.split("(")[0].strip() for column in head.split("|")][1:]
    values = [value.strip() for value in line[1].split("|")]
    cells = dict(zip(columns, values, strict=False))
    if not {"bytes", "I/Os"} <= cells.keys():
        raise ValueError(f"the table of {name}s has no columns for bytes and I/Os")
    return _Total(
        ios=int(number(cells["I/Os"], "I/Os")),
        size_bytes=number(cells["bytes"], "bytes"),
        iops=number(cells.get("I/O per s", "0"), "I/O per s"),
        lat_mean_ms=_optional(cells.get("AvgLat")),
        lat_stddev_ms=_optional(cells.get("LatStdDev")),
    )


def _optional(text: str | None) -> float:
    """Take a latency; without any I/O its spread is "N/A"."""
    return number(text, "a latency", 1e9) if text and text != "N/A" else math.nan


def _direction(total: _Total, seconds: float, percentiles: dict[float, float]) -> Direction:
    iops = total.ios / seconds
    if abs(total.iops - iops) <= _ROUNDED * iops:
        iops = total.iops  # the time has two decimals, or none
    return Direction(
        ios=total.ios,
        iops=iops,
        bw_bytes=total.size_bytes / total.ios * iops,
        runtime_ms=1000 * seconds,
        lat_mean_ms=total.lat_mean_ms,
        lat_stddev_ms=total.lat_stddev_ms,
        lat_min_ms=percentiles.get(0.0, math.nan),
        lat_max_ms=percentiles.get(100.0, math.nan),
        bins=bins_of(percentiles, total.ios) if len(percentiles) > 20 else {},
        **ranks(percentiles),
    )


def _percentiles(part: str) -> dict[str, dict[float, float]]:
    """Percentiles in ms by direction, of the last table (of all targets); empty when it does not end."""
    start = part.rfind("%-ile |")
    lines = part[start:].splitlines() if start >= 0 else []
    if not any(line.split("|")[0].strip(" \t>") == "max" for line in lines):
        return {}
    names = [name.split("(")[0].strip().lower() for name in lines[0].split("|")][1:]
    percentiles: dict[str, dict[float, float]] = {}
    for line in lines[2:]:
        first, *values = [value.strip(" \t>") for value in line.split("|")]
        percentile = _percentile(first)
        if percentile is None:
            break
        for name, value in zip(names, values, strict=False):
            if value and value != "N/A":
                percentiles.setdefault(name, {})[percentile] = number(value, "a percentile", 1e9)
    return percentiles


def _percentile(text: str) -> float | None:
    """Percentage of "50th", "3-nines", "min" or "max"; None for anything else."""
    if text in _NAMED:
        return _NAMED[text]
    if nines := re.fullmatch(r"([1-9])-nines", text):
        return round(100 - 10.0 ** (2 - int(nines[1])), 9)
    order = re.fullmatch(r"(\d{1,2})th", text)
    return float(order[1]) if order else None


def _host(run: str) -> str:
    """Machine that measured; versions before 2.0.18 print none."""
    name = re.search(r"computer name:[ \t]*(\S{1,80})", run)
    return name[1] if name else ""


def _started(run: str) -> str | None:
    stamp = re.search(r"start time: (\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)", run)
    try:
        time = datetime.strptime(stamp[1], "%Y/%m/%d %H:%M:%S") if stamp else None
    except ValueError:
        return None
    return time.replace(tzinfo=UTC).isoformat(timespec="seconds") if time else None
