"""Reader of latencies and histograms in fio's JSON, whichever version wrote it. Compute only, no I/O.

fio 3 has `lat_ns`, `clat_ns` in ns and bins by latency; fio 2 has `lat`, `clat` in microseconds, no number
of samples, and bins by their index.

The latency of a sync, as fio's libaio engine reports it, includes the time of the write before.

The engine calls fdatasync itself and does not note when (`fio_libaio_queue` in fio's engines/libaio.c), so
a sync counts from the write that used the same I/O unit before: at depth 1 from the submission of the write
it makes durable. Seen with fio 3.33 on a disk with planted delays of 7 ms for a write and 11 ms for a
flush: 19.99 ms for a sync by libaio, 11.48 ms by io_uring.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diskbook.facts.units import NS_PER_MS, NS_PER_US
from diskbook.tools.record import Direction, Load, merge_bins, number, percentile_ns, pooled

_BIN = 1.04
"""Latencies of one bin of fio's histogram differ by less."""
CAP_MS = 17_100.0
"""Greatest latency that fio's histogram tells apart (17.11 s)."""
NOT_JOINED = "percentiles of several jobs cannot be joined and are left out (use json+)"
COMPLETION = "percentiles are of the completion latency, means of the total latency"
STANDS_IN = "total latency was not recorded (disable_lat): completion latency, without submission, stands in"
_UNITS = (("_ns", 1.0), ("", float(NS_PER_US)))
_PLAT_BITS = 6
_PLAT_VAL = 1 << _PLAT_BITS
_GREATEST_NS = 2**62


@dataclass(frozen=True)
class Latency:
    """Latency of one job and direction.

    `of` says what the percentiles and bins are of (lat or clat), `mean_of` what mean and ends are of;
    `step_ns` is what its numbers are rounded to where a text for people told them.
    """

    samples: int
    mean_ns: float
    stddev_ns: float
    min_ns: float
    max_ns: float
    bins: dict[int, int]
    percentiles_ms: dict[float, float]
    of: str
    mean_of: str = "lat"
    step_ns: float = 0.0


def read(part: Mapping[str, Any], ios: int) -> Latency | None:
    """Read the latencies of a direction; None when none were recorded (gtod_reduce).

    Where the total alone was not (disable_lat), that of completion stands in for it.

    Raises ValueError when a number in it is none.
    """
    for name in ("lat", "clat"):
        section = _section(part, name)
        if section is None:
            continue
        total, unit = section
        samples = int(number(total.get("N", ios), "N"))
        # Programs that write fio's JSON again leave out what is zero: then nothing was recorded.
        mean, most = number(total.get("mean", 0), "mean"), number(total.get("max", 0), "max")
        if samples and (mean or most):
            return _of_section(part, total, samples, unit, name)
    return None


def _of_section(
    part: Mapping[str, Any], total: Mapping[str, Any], samples: int, unit: float, name: str
) -> Latency:
    bins, percentiles, of = _distribution(part)
    return Latency(
        samples=samples,
        mean_ns=number(total.get("mean", 0), "mean") * unit,
        stddev_ns=number(total.get("stddev", 0), "stddev") * unit,
        min_ns=number(total.get("min", 0), "min") * unit,
        max_ns=number(total.get("max", 0), "max") * unit,
        bins=bins,
        percentiles_ms=percentiles,
        of=of,
        mean_of=name,
    )


def join(parts: Sequence[Latency], flags: list[str]) -> dict[str, Any]:
    """Join the latencies of clones of a job, as the fields of a `Direction`.

    Histograms add up. Percentiles do not: without histograms those of several jobs are left out.
    """
    if not parts:
        return {}
    counts = [part.samples for part in parts]
    mean, stddev = pooled([part.mean_ns for part in parts], [part.stddev_ns for part in parts], counts)
    bins = merge_bins([part.bins for part in parts]) if all(part.bins for part in parts) else {}
    percentiles = parts[0].percentiles_ms if len(parts) == 1 else {}
    if len(parts) > 1 and not bins and parts[0].percentiles_ms:
        flags.append(NOT_JOINED)
    p50, p99, p999 = _wanted(bins, percentiles)
    most = max(part.max_ns for part in parts) / NS_PER_MS
    if any(part.mean_of == "clat" for part in parts):
        flags.append(STANDS_IN)
    elif parts[0].of == "clat" and not math.isnan(p50):
        flags.append(COMPLETION)
    if most > CAP_MS:
        flags.append("latencies above 17.11 s: fio's percentiles end there")
    above = most * _BIN + parts[0].step_ns / NS_PER_MS
    if percentiles and max(percentiles.values()) > above:
        flags.append("a percentile lies above the largest latency")
    return {
        "lat_mean_ms": mean / NS_PER_MS,
        "lat_stddev_ms": stddev / NS_PER_MS,
        "lat_min_ms": min(part.min_ns for part in parts) / NS_PER_MS,
        "lat_max_ms": most,
        "lat_p50_ms": p50,
        "lat_p99_ms": p99,
        "lat_p999_ms": p999,
        "bins": bins,
        "percentiles_ms": percentiles,
    }


def mean_ns(part: Mapping[str, Any], name: str) -> tuple[int, float]:
    """Read the number of samples and the mean, in ns, of a kind of latency (clat, slat); none is 0 samples.

    Raises ValueError when a number in it is none.
    """
    section = _section(part, name)
    if section is None:
        return 0, math.nan
    content, unit = section
    return int(number(content.get("N", 0), "N")), number(content.get("mean", 0), "mean") * unit


def index_value(index: int, bits: int = _PLAT_BITS) -> int:
    """Centre of the bin with this index, in the unit of the histogram (fio's plat_idx_to_val)."""
    values = 1 << bits
    if index < 2 * values:
        return index
    error_bits = (index >> bits) - 1
    base = 1 << (error_bits + bits)
    return base + int((index % values + 0.5) * (1 << error_bits))


def _wanted(bins: Mapping[int, int], percentiles: Mapping[float, float]) -> list[float]:
    if bins:
        return [value / NS_PER_MS for value in percentile_ns(bins, 0.5, 0.99, 0.999)]
    return [percentiles.get(percent, math.nan) for percent in (50.0, 99.0, 99.9)]


def _section(part: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], float] | None:
    """Section of a kind of latency with the unit's size in ns."""
    for ending, unit in _UNITS:
        section = part.get(name + ending)
        if isinstance(section, Mapping):
            return section, unit
    return None


def _distribution(part: Mapping[str, Any]) -> tuple[dict[int, int], dict[float, float], str]:
    """Bins in ns, percentiles in ms, and of what: total latency where it has them, else completion."""
    for name in ("lat", "clat"):
        part_read = _section(part, name)
        if part_read is None:
            continue
        section, unit = part_read
        bins, percentiles = _bins(section.get("bins"), unit), _percentiles(section.get("percentile"), unit)
        if bins or percentiles:
            return bins, percentiles, name
    return {}, {}, "lat"


def _bins(table: object, unit: float) -> dict[int, int]:
    if not isinstance(table, Mapping):
        return {}
    by_index = "FIO_IO_U_PLAT_BITS" in table
    bins: dict[int, int] = {}
    for key, count in table.items():
        if not (key.isascii() and key.isdigit()) or len(key) > 18:
            continue
        # fio writes a whole number: most of the time of an import of json+ was spent on looking for others.
        is_whole = type(count) is int and 0 <= count <= 10**18
        times = count if is_whole else int(number(count, "a count of a bin"))
        if times:
            value = int((index_value(_index(key)) if by_index else int(key)) * unit)
            bins[value] = bins.get(value, 0) + times
    return dict(sorted(bins.items()))


def _index(key: str) -> int:
    if int(key) > 4000:
        raise ValueError(f"a bin has the index {key}")
    return int(key)


def _percentiles(table: object, unit: float) -> dict[float, float]:
    if not isinstance(table, Mapping):
        return {}
    percentiles = {}
    for key, value in table.items():
        percentile = number(key, "a percentile", 100)
        if percentile > 0:
            percentiles[percentile] = number(value, "a percentile", _GREATEST_NS) * unit / NS_PER_MS
    # All zero: nothing was recorded.
    return percentiles if any(percentiles.values()) else {}


ENGINE = "libaio"
FLAG = (
    "fio's libaio engine counts the time of a write into the sync after it: the mean is without it, and "
    "percentiles of syncs are left out"
)


def taken_alone(
    directions: Mapping[str, Direction],
    writes: Sequence[Mapping[str, Any]],
    load: Load,
    engine: str,
    flags: list[str],
) -> dict[str, Direction]:
    """Return the directions of a job with the writes' time taken out of its syncs, where it is in them.

    A release that times its syncs well needs no list: at depth 1 writes and syncs follow each other, so they
    cannot have taken longer than the job did (Little's law), and where they seem to, writes count twice.
    Where a write completes in less than fio itself needs between two commits (some 15 us) it is not known.

    - `directions`: of the job, all its threads together.
    - `writes`: what fio's JSON has of the writes of each of its entries.
    - `load`: what was asked for.
    - `engine`: fio's ioengine.
    - `flags`: gets a sentence where syncs are changed.
    """
    write, sync = directions.get("write"), directions.get("sync")
    if engine != ENGINE or load.queue_depth != 1 or write is None or sync is None:
        return dict(directions)
    completion_ms = _completion_ms(writes)
    apart_ms = write.ios * write.lat_mean_ms + sync.ios * sync.lat_mean_ms
    # One commit of each thread may have begun before what was measured.
    had_ms = (load.threads or 1) * (write.runtime_ms + write.lat_mean_ms + sync.lat_mean_ms)
    if not (apart_ms > had_ms and completion_ms < sync.lat_mean_ms):
        return dict(directions)
    flags.append(FLAG)
    lat_mean_ms = sync.lat_mean_ms - completion_ms
    alone = Direction(sync.ios, sync.iops, sync.bw_bytes, sync.runtime_ms, lat_mean_ms)
    return {**directions, "sync": alone}


def _completion_ms(writes: Sequence[Mapping[str, Any]]) -> float:
    """Mean time of a write from its submission on, which a sync's holds too; NaN where none was recorded."""
    parts = [(samples, mean) for samples, mean in (mean_ns(part, "clat") for part in writes) if samples]
    pooled_ns, _ = pooled([mean for _, mean in parts], [0.0] * len(parts), [samples for samples, _ in parts])
    return pooled_ns / NS_PER_MS
