"""Reader of PerfKitBenchmarker's newline-delimited JSON. Reads text, touches no file.

A line is a sample; those of one run of fio or DiskSpd share their labels::

    {"metric": "rand_4k_read:read:iops", "value": 5021.4, "unit": "", "test": "fio", "run_uri": "ab12",
     "timestamp": 1.7e9, "labels": "|bs:4k|,|iodepth:1|,|numjobs:1|,|filename:/dev/sdc|"}

fio's latencies are in microseconds and of completion unless `latency_measure` says otherwise; bandwidths are
KiB/s and MiB/s, whatever their unit says.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from diskbook.facts.units import MIB, US_PER_MS, utc_text
from diskbook.tools import record
from diskbook.tools.fio import options as fio_options
from diskbook.tools.record import Direction, Load, Measurement, Parsed, UnusableError, number

_MODES = ("read", "write")
_DISKSPD = ("total_iops", "read_iops", "write_iops")
# Labels that make two samples different loads or places.
_LOAD_LABELS = (
    *("fio_job", "bs", "blocksize", "rw", "readwrite", "iodepth", "numjobs", "rwmixread", "rwmixwrite"),
    *("rate_iops", "filename", "directory", "BlockSize", "WriteRatio", "RequestCount", "outstanding_io"),
    *("ThreadsPerFile", "threads_per_file", "diskspd_access_pattern"),
)


@dataclass
class _Group:
    """Samples of one run of a tool: metric to value."""

    tool: Literal["fio", "diskspd"]
    name: str
    labels: dict[str, str]
    sample: Mapping[str, Any]
    values: dict[str, float] = field(default_factory=dict)


def is_samples(text: str) -> bool:
    """Whether the first line that is not empty looks like a sample."""
    first = text.lstrip()[:4000].split("\n", 1)[0]
    return first.startswith("{") and '"metric"' in first and '"value"' in first


def parse(text: str, source: str) -> Parsed:
    """Read all samples of fio and DiskSpd in a file; those of other benchmarks are passed over.

    Raises UnusableError when no run of a tool can be put together from them.
    """
    flags: list[str] = []
    groups = _groups(text, flags)
    tools = sorted({group.tool for group in groups})
    if len(tools) > 1:
        raise UnusableError(source, "it holds samples of fio and of DiskSpd; split it")
    measurements, versions = [], set()
    for group in groups:
        try:
            measurements.append(_measurement(group))
            versions.add(_version(group))
        except ValueError as error:
            flags.append(f"{error} ('{group.name}')")
    if not measurements:
        why = "; ".join(flags[:3]) or "no sample of fio or DiskSpd is in it"
        raise UnusableError(source, why)
    version = record.one_version(versions, source, "samples of several versions")
    return Parsed(groups[0].tool, version, "PerfKitBenchmarker samples", tuple(measurements), tuple(flags))


def labels_of(text: object) -> dict[str, str]:
    """Labels as they are written, "|key:value|,|key:value|", or as an object."""
    if isinstance(text, Mapping):
        return {str(key): str(value) for key, value in text.items()}
    pairs = (part.partition(":") for part in str(text or "").strip("|").split("|,|"))
    return {key: value for key, colon, value in pairs if colon}


def _groups(text: str, flags: list[str]) -> list[_Group]:
    """Samples that belong together, in order. A metric that comes again begins another run."""
    open_groups: dict[tuple[str, ...], _Group] = {}
    groups: list[_Group] = []
    bad: list[int] = []
    for line_number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        line_sample = _sample(line)
        if line_sample is None:
            bad.append(line_number)
            continue
        sample, labels = line_sample
        placed = _place(str(sample["metric"]))
        if placed is None:
            continue
        tool, name, metric = placed
        key = (str(sample.get("run_uri")), name, *(labels.get(label, "") for label in _LOAD_LABELS))
        group = open_groups.get(key)
        if group is None or metric in group.values:
            group = _Group(tool, name, labels, sample)
            open_groups[key] = group
            groups.append(group)
        group.labels = {**labels, **group.labels}
        group.values[metric] = float(sample["value"])
    if bad:
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        flags.append(f"line {bad[0]}{more}: no sample, left out")
    return groups


def _sample(line: str) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Read a line; None when it is no sample with a number."""
    try:
        sample = json.loads(line)
        number(sample["value"])
        str(sample["metric"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return sample, labels_of(sample.get("labels", sample.get("metadata")))


def _place(metric: str) -> tuple[Literal["fio", "diskspd"], str, str] | None:
    """Tool, name of the run, and metric within it; None for what is not of a disk's load."""
    parts = metric.split(":")
    if len(parts) >= 3 and parts[-1] and (mode := _mode(parts)):
        position, name = mode
        return "fio", name, ":".join(parts[position:])
    if metric in _DISKSPD or any(word in metric for word in ("_latency", "_bandwidth")):
        return "diskspd", "diskspd", metric
    return None


def _mode(parts: list[str]) -> tuple[int, str] | None:
    for position in range(1, len(parts) - 1):
        if parts[position] in _MODES and parts[position + 1] in ("iops", "bandwidth", "latency"):
            return position, ":".join(parts[:position])
    return None


def _version(group: _Group) -> str:
    return group.labels.get("fio_version", "unknown").removeprefix("fio-")[:40] or "unknown"


def _measurement(group: _Group) -> Measurement:
    """Put a run together; ValueError says what is missing."""
    flags = ["from PerfKitBenchmarker's samples, not from the tool's own output"]
    read = _fio_direction if group.tool == "fio" else _diskspd_direction
    directions = {mode: part for mode in _MODES if (part := read(group, mode)) is not None}
    if not directions:
        raise ValueError("no IOPS of reads or writes are among its samples")
    if group.tool == "fio":
        options = {key: value for key, value in group.labels.items() if value}
        load = fio_options.load(options, 1, math.nan, flags)
        target = fio_options.target(options)
        if group.labels.get("latency_measure", "clat") == "clat":
            flags.append("latencies are completion latencies")
    else:
        load, target = _diskspd_load(group.labels), group.labels.get("Path", "")
    return Measurement(
        name=group.name,
        target=target,
        load=load,
        directions=directions,
        started_utc=_started(group.sample.get("timestamp")),
        flags=tuple(flags),
        host=str(group.sample.get("run_uri") or ""),
    )


def _fio_direction(group: _Group, mode: str) -> Direction | None:
    iops = group.values.get(f"{mode}:iops")
    if not iops:
        return None
    latency = {
        key.removeprefix(f"{mode}:latency:"): value / US_PER_MS
        for key, value in group.values.items()
        if key.startswith(f"{mode}:latency:")
    }
    mean = group.values.get(f"{mode}:latency", math.nan) / US_PER_MS
    percentiles = _percentiles(latency)
    seconds = fio_options.seconds(group.labels.get("runtime", "")) or math.nan
    return Direction(
        ios=round(iops * seconds) if seconds > 0 else math.nan,
        iops=iops,
        bw_bytes=group.values.get(f"{mode}:bandwidth", math.nan) * 1024,
        runtime_ms=1000 * seconds,
        lat_mean_ms=latency.get("mean", mean),
        lat_stddev_ms=latency.get("stddev", math.nan),
        lat_min_ms=latency.get("min", math.nan),
        lat_max_ms=latency.get("max", math.nan),
        **record.ranks(percentiles),
    )


def _percentiles(values: Mapping[str, float]) -> dict[float, float]:
    """Values named p50, p99.9 and so on."""
    percentiles = {}
    for name, value in values.items():
        if name.startswith("p"):
            try:
                percentiles[number(name[1:], "a percentile", 100)] = value
            except ValueError:
                continue
    return percentiles


def _diskspd_direction(group: _Group, mode: str) -> Direction | None:
    iops = group.values.get(f"{mode}_iops")
    if not iops:
        return None
    start = f"{mode}_latency_p"
    columns = {key[len(start) - 1 :]: value for key, value in group.values.items() if key.startswith(start)}
    percentiles = _percentiles(columns)
    seconds = _number(group.labels, "TestTimeSeconds") or math.nan
    return Direction(
        ios=_number(group.labels, f"{mode.capitalize()}Count") or iops * seconds,
        iops=iops,
        bw_bytes=group.values.get(f"{mode}_bandwidth", math.nan) * MIB,
        runtime_ms=1000 * seconds,
        lat_mean_ms=group.values.get(f"average_{mode}_latency", math.nan),
        lat_stddev_ms=group.values.get(f"{mode}_latency_stdev", math.nan),
        **record.ranks(percentiles),
    )


def _number(labels: Mapping[str, str], name: str) -> float:
    """Take a label as a number; 0 when it is none."""
    try:
        return number(labels.get(name, ""), name)
    except ValueError:
        return 0.0


def _diskspd_load(labels: Mapping[str, str]) -> Load:
    def whole(*names: str) -> int | None:
        values: Iterable[float] = (_number(labels, name) for name in names)
        return next((int(value) for value in values if 1 <= value <= 2**40), None)

    access = labels.get("diskspd_access_pattern", "")
    return Load(
        pattern="random" if "Random" in labels or access == "r" else "sequential" if access else None,
        block_size_bytes=whole("BlockSize"),
        write_pct=int(min(_number(labels, "WriteRatio"), 100)) if "WriteRatio" in labels else None,
        threads=whole("threads_per_file", "ThreadsPerFile"),
        queue_depth=whole("outstanding_io"),
        ramp_s=_number(labels, "Warmup"),
        runtime_s=_number(labels, "Duration") or None,
    )


def _started(timestamp: object) -> str | None:
    try:
        return utc_text(number(timestamp, "timestamp", 4e9))
    except ValueError:
        return None
