"""Reader of what `sysbench fileio run` prints: one measurement per result. Text in, no I/O.

A file may hold the output of two processes that ran at once, so that one's banner stands above the other's
result. What a result tells goes before the banner: its threads are its events over its events per thread.

Before 1.0 a result lists counts and bytes instead of rates, and its latencies leave out the periodic fsyncs.

Read from output of sysbench 0.4.12, 0.5, 1.0, 1.0.6, 1.0.17 and 1.0.20.
"""

import math
import re
from typing import Literal, NamedTuple

from diskbook.tools.fio import options as fio_options
from diskbook.tools.record import CACHED, Direction, Load, Measurement, Parsed, UnusableError, number, ranks

FORMAT = "sysbench text"
_BEGIN = re.compile(r"^sysbench (\d[\w.]*)", re.MULTILINE)
_RESULT, _OLD_RESULT = "File operations:", "Operations performed:"
_ASKED = {
    "threads": r"^Number of threads: (\d+)",
    "rate": r"^Target transaction rate: (\d+)/sec",
    "flags": r"^Extra file open flags: (.+)",
    "size": r"^(\S+) total file size",
    "block": r"^Block size (\S+)",
    "ratio": r"^Read/Write ratio for combined random IO test: ([\d.]+)",
    "sync_each": r"^(Calling fsync\(\) after each write)",
    "sync_every": r"^Periodic FSYNC enabled, calling fsync\(\) each (\d+)",
    "mode": r"^Using (.+) I/O mode",
    "test": r"^Doing (.+) test",
}
_TOLD = {
    "read": r"^\s*reads/s:\s+(\S+)",
    "write": r"^\s*writes/s:\s+(\S+)",
    "read_mib_s": r"^\s*read, MiB/s:\s+(\S+)",
    "write_mib_s": r"^\s*written, MiB/s:\s+(\S+)",
    "seconds": r"^\s*total time:\s+(\S+)s\s*$",
    "events": r"^\s*total number of events:\s+(\S+)",
    "min": r"^\s*min:\s+(\S+?)(?:ms)?\s*$",
    "max": r"^\s*max:\s+(\S+?)(?:ms)?\s*$",
    "sum": r"^\s*sum:\s+(\S+)",
    "each": r"^\s*events \(avg/stddev\):\s+([\d.]+)/",
}
_COUNTED = {
    "read": r"^Operations performed:\s+(\d+) [Rr]ead",
    "write": r"^Operations performed:.*, (\d+) [Ww]rite",
    "read_size": r"^Read (\S+)  Written",
    "write_size": r"^Read \S+  Written (\S+)",
    "sum_s": r"^\s*total time taken by event execution:\s+(\S+?)s?\s*$",
}
"""What results tell before 1.0 instead: I/Os, bytes such as "450Mb", and the sum of latencies in seconds."""
_PERCENTILE = re.compile(
    r"^\s*(?:approx\. +)?(\d{1,3})(?:[a-z]{2})? percentile:\s+(\S+?)(?:ms)?\s*$", re.MULTILINE
)
_DIRECT = ("3", "16384")
"""Open flags of direct I/O as numbers: of 0.5 to 1.0.6, and of 0.4 on x86. Later releases write a word."""
_MIB = 2**20
_NEAR = 0.005
"""By how much events may differ from I/Os over time: the rates are over the time of the slowest thread."""
_SHARED = "its latencies are of all its operations together, so they are not measured for either"
_WITH_FSYNC = "each latency is of a write and the fsync after it"


class _Result(NamedTuple):
    """What was asked for as the banner above says, and the numbers of a result."""

    asked: dict[str, str]
    numbers: dict[str, float]
    percentiles: dict[float, float]


def is_sysbench(text: str) -> bool:
    """Whether the text begins, or a line of it, as what sysbench prints."""
    return _BEGIN.search(text[:100_000]) is not None


def parse(text: str, source: str) -> Parsed:
    """Read every result in the output of one or several runs of `sysbench fileio`.

    Raises UnusableError when no result is in it, or they are of several versions.
    """
    versions = sorted(set(_BEGIN.findall(text)))
    if len(versions) != 1:
        several = f"it holds results of several versions ({', '.join(versions)})"
        raise UnusableError(source, several if versions else "no line tells the version of sysbench")
    measurements, problems = [], list[str]()
    begun, asked = 0, dict[str, str]()
    results = (_RESULT, _OLD_RESULT)
    for part in re.split(rf"(?=^(?:{'|'.join(results)}))|(?=^sysbench \d)", text, flags=re.MULTILINE):
        if not part.startswith(results):
            asked = _found(_ASKED, part) or asked
            begun += "test" in _found(_ASKED, part)
            continue
        try:
            measurements.append(_measurement(_result(part, asked)))
        except ValueError as error:
            problems.append(f"result {len(measurements) + len(problems) + 1} cannot be used: {error}")
    if not measurements:
        raise UnusableError(source, "; ".join(problems[:3]) or _why_none(text))
    lacking = begun - len(measurements) - len(problems)
    if lacking > 0:
        problems.append(f"{lacking} of {begun} tests have no result: they were ended, or the file is cut")
    return Parsed("sysbench", versions[0], FORMAT, tuple(measurements), tuple(problems))


def _why_none(text: str) -> str:
    if "Threads started!" in text and "total file size" in text:
        return "sysbench was ended before it printed a result"
    if "Creating files for the test" in text or "bytes written in" in text:
        return "sysbench made its files here, and measured nothing that a run measures"
    return "it is of sysbench, but no result of 'sysbench fileio run'"


def _found(patterns: dict[str, str], text: str) -> dict[str, str]:
    matches = {name: re.search(pattern, text, re.MULTILINE) for name, pattern in patterns.items()}
    return {name: match[1].strip() for name, match in matches.items() if match}


def _result(text: str, asked: dict[str, str]) -> _Result:
    numbers = {name: number(value, name) for name, value in _found(_TOLD, text).items()}
    if text.startswith(_OLD_RESULT) and numbers.get("seconds", 0.0) > 0:
        numbers |= _rates_of_counts(_found(_COUNTED, text), numbers["seconds"])
    if lacking := [name for name in ("read", "write", "seconds", "events", "each") if name not in numbers]:
        raise ValueError(f"it is cut (no {lacking[0]})")
    percentiles = {float(rank): number(value, "percentile") for rank, value in _PERCENTILE.findall(text)}
    return _Result(
        asked, numbers, {rank: value for rank, value in percentiles.items() if value > 0 and rank < 100}
    )


def _rates_of_counts(counts: dict[str, str], seconds: float) -> dict[str, float]:
    """Rates as later releases print them, of the counts and bytes that earlier ones do."""
    rates: dict[str, float] = {
        name: number(counts[name], name) / seconds for name in ("read", "write") if name in counts
    }
    for name in tuple(rates):
        size = fio_options.size_bytes(counts.get(f"{name}_size", ""))
        rates[f"{name}_mib_s"] = size / _MIB / seconds if size else math.nan
    return rates | {"sum": 1000 * number(counts.get("sum_s", "0"), "the sum of latencies")}


def _measurement(result: _Result) -> Measurement:
    asked, numbers = result.asked, result.numbers
    flags = list[str]()
    rates = {name: numbers[name] for name in ("read", "write") if numbers[name] > 0}
    if not rates or not numbers["seconds"] > 0:
        raise ValueError("it did no I/O")
    threads = _threads(asked, numbers, flags)
    load = _load(asked, rates, threads, flags)
    _check_banner(load, numbers, rates, asked)
    alone = _alone(numbers, rates, flags)
    if alone and load.sync:
        flags.append(_WITH_FSYNC)
    directions = {name: _direction(result, name, alone=alone) for name in rates}
    return Measurement(
        name=asked.get("test", "fileio"), target="", load=load, directions=directions, flags=tuple(flags)
    )


def _threads(asked: dict[str, str], numbers: dict[str, float], flags: list[str]) -> int:
    """Threads by the result's own events; the banner may be another process's."""
    if not numbers["each"] > 0:
        raise ValueError("it has no events per thread")
    threads = max(1, round(numbers["events"] / numbers["each"]))
    if asked.get("threads", str(threads)) != str(threads):
        flags.append(
            f"the banner above it says {asked['threads'][:20]} thread(s), its own events per thread "
            f"{threads}: several processes may have run at once"
        )
    return threads


def _load(asked: dict[str, str], rates: dict[str, float], threads: int, flags: list[str]) -> Load:
    test, mode = asked.get("test", ""), asked.get("mode", "")
    pattern: Literal["random", "sequential"] | None = (
        "random" if test.startswith("random") else "sequential" if test.startswith("sequential") else None
    )
    is_mixed = len(rates) == 2
    ratio = float(asked["ratio"]) if re.fullmatch(r"\d+(\.\d+)?", asked.get("ratio", "")) else math.nan
    write_pct = (0 if "read" in rates else 100) if not is_mixed else None
    if is_mixed and ratio > 0:
        write_pct = round(100 / (1 + ratio))
    is_durable = "sync_each" in asked and write_pct == 100
    if "write" in rates and "sync_every" in asked:
        flags.append(f"it synced after every {asked['sync_every'][:20]} requests: not a commit of each write")
    open_flags = asked.get("flags", "")
    if "direct" not in open_flags and open_flags not in _DIRECT and not is_durable:
        flags.append(CACHED)
    depth = 1 if mode.startswith(("synchronous", "fast mmap", "slow mmap")) else None
    return Load(
        pattern=pattern,
        block_size_bytes=fio_options.size_bytes(asked.get("block", "")),
        write_pct=write_pct,
        threads=threads,
        queue_depth=depth,
        rate=float(asked["rate"][:12]) if asked.get("rate", "0") != "0" else None,
        sync="fdatasync" if is_durable else None,
        size_bytes=fio_options.size_bytes(asked.get("size", "")),
    )


def _check_banner(
    load: Load, numbers: dict[str, float], rates: dict[str, float], asked: dict[str, str]
) -> None:
    """Refuse a result whose banner tells of another test: the block size or the direction does not fit."""
    test = asked.get("test", "")
    is_one = {"read": "read" in test, "write": "write" in test}
    if is_one["read"] != is_one["write"] and set(rates) != {name for name, is_it in is_one.items() if is_it}:
        raise ValueError(f"the banner above it is of a {test[:40]} test, and so another result's")
    for name, rate in rates.items():
        mib_s = numbers.get(f"{name}_mib_s", math.nan)
        size = mib_s * _MIB / rate
        block = load.block_size_bytes or math.nan
        if abs(size - block) > block * (0.01 + 0.01 / max(mib_s, 0.01) + 0.01 / rate):
            raise ValueError(f"its {name}s are of {size:,.0f} bytes, the banner above it says {block:,.0f}")


def _alone(numbers: dict[str, float], rates: dict[str, float], flags: list[str]) -> bool:
    """Whether all events were of one direction, so that the latencies are its own."""
    if len(rates) == 1:
        (rate,) = rates.values()
        if abs(numbers["events"] - rate * numbers["seconds"]) <= max(_NEAR * numbers["events"], 2.0):
            return True
    flags.append(_SHARED)
    return False


def _direction(result: _Result, name: str, *, alone: bool) -> Direction:
    numbers = result.numbers
    ios = (
        numbers["events"]
        if alone
        else round(number(numbers[name] * numbers["seconds"], "its number of I/Os"))
    )
    totals = Direction(
        ios, numbers[name], numbers.get(f"{name}_mib_s", math.nan) * _MIB, 1000 * numbers["seconds"]
    )
    if not alone:
        return totals
    return Direction(
        ios=ios,
        iops=totals.iops,
        bw_bytes=totals.bw_bytes,
        runtime_ms=totals.runtime_ms,
        lat_mean_ms=_or_nan(numbers.get("sum", 0.0) / numbers["events"]),
        lat_min_ms=_or_nan(numbers.get("min", 0.0)),
        lat_max_ms=_or_nan(numbers.get("max", 0.0)),
        **ranks(result.percentiles),
    )


def _or_nan(value: float) -> float:
    """What is below a printed digit, or is not printed, is not measured."""
    return value if value > 0 else math.nan
