"""DiskSpd's XML, in the shape of 2.0.21, made from what a real fio measured. Compute only, no I/O.

Shape from real output of 2.0.17 and 2.1 (one element a line, not indented before 2.1). What fio does not tell
is left out: least and greatest latency of an interval. Use of the processors is that of the computer that
emulates.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape

import numpy as np

from diskbook.design.diskspd_arguments import Arguments
from diskbook.facts.units import NS_PER_MS
from diskbook.tools.record import Direction, Measurement, Series, merge_bins, percentile_ns, pooled

RELEASE, RELEASE_DATE = "2.0.21", "2018/9/21"
_PERCENTILES = [
    *(str(percent) for percent in range(100)),
    *("99." + "9" * digits for digits in range(1, 8)),
    "100",
]
_WORDS = {"read": "Read", "write": "Write"}
_NOTHING = Direction(ios=0, iops=0.0, bw_bytes=0.0, runtime_ms=0.0)


@dataclass(frozen=True)
class Measured:
    """What one fio measured: all threads together, each alone, rates by interval, and how busy cores were."""

    total: Measurement
    threads: tuple[Measurement, ...]
    series: Mapping[str, Series]
    cores: Sequence[tuple[float, float]] = ()


def document(
    asked: Arguments, size_bytes: int, measured: Measured, ended: datetime, computer: str = "emulated"
) -> str:
    """Write the results of a call.

    - `asked`: its arguments; one target.
    - `size_bytes`: of the target.
    - `measured`: what fio measured instead.
    """
    lines = [
        "<Results>",
        *_system(measured.total.version or "fio", ended, computer),
        *_profile(asked, size_bytes),
        *_time_span(asked, size_bytes, measured),
        "</Results>",
    ]
    return "\n".join(lines) + "\n"


def version(fio_version: str) -> str:
    """Name the stand-in so that nobody takes it for DiskSpd."""
    return f"{RELEASE} (emulated by {fio_version})"


def _element(name: str, value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else escape(str(value))
    return f"<{name}>{text}</{name}>"


def _elements(values: Mapping[str, object]) -> Iterator[str]:
    return (_element(name, value) for name, value in values.items())


def _system(fio_version: str, ended: datetime, computer: str) -> Iterator[str]:
    yield "<System>"
    yield _element("ComputerName", computer)
    yield "<Tool>"
    yield _element("Version", version(fio_version))
    yield _element("VersionDate", RELEASE_DATE)
    yield "</Tool>"
    yield _element("RunTime", f"{ended.astimezone(UTC):%Y/%m/%d %H:%M:%S} UTC")
    yield "</System>"


def _profile(asked: Arguments, size_bytes: int) -> Iterator[str]:
    yield from ("<Profile>", _element("Progress", 0), _element("ResultFormat", "xml"))
    yield from (_element("Verbose", "-v" in asked.kept), "<TimeSpans>", "<TimeSpan>")
    yield from _elements(
        {
            "CompletionRoutines": "-x" in asked.kept,
            "MeasureLatency": asked.latency,
            "CalculateIopsStdDev": asked.iops_interval_ms is not None,
            "DisableAffinity": "-n" in asked.kept,
            "Duration": asked.duration_s,
            "Warmup": asked.warmup_s,
            "Cooldown": asked.cooldown_s,
            "ThreadCount": asked.total_threads or 0,
            "RequestCount": asked.outstanding_per_thread or 0,
            "IoBucketDuration": asked.iops_interval_ms or 1000,
            "RandSeed": asked.seed or 0,
        }
    )
    # A target that is named several times is loaded as often.
    targets = [line for _ in asked.targets for line in _target(asked, size_bytes)]
    yield from ("<Targets>", *targets, "</Targets>", "</TimeSpan>", "</TimeSpans>")
    yield "</Profile>"


def _target(asked: Arguments, size_bytes: int) -> Iterator[str]:
    # Long: an XML element, child by child, in DiskSpd's order.
    yield "<Target>"
    yield from _elements(
        {
            "Path": asked.targets[0],
            "BlockSize": asked.block_size,
            "BaseFileOffset": asked.base_offset,
            "SequentialScan": False,
            "RandomAccess": False,
            "TemporaryFile": False,
            "UseLargePages": "-l" in asked.kept,
            **({"DisableOSCache": True} if asked.cache == "off" else {}),
            **({"WriteThrough": True} if asked.write_through else {}),
        }
    )
    content = {"zero": "zero", "pattern": "sequential"}.get(asked.buffers, "random")
    yield f"<WriteBufferContent>\n{_element('Pattern', content)}\n</WriteBufferContent>"
    yield from _elements(
        {
            "ParallelAsyncIO": "-p" in asked.kept,
            "FileSize": size_bytes,
            ("Random" if asked.random_pct else "StrideSize"): asked.align or asked.block_size,
            "ThreadStride": asked.thread_stride or 0,
            "MaxFileSize": asked.max_offset or 0,
            "RequestCount": asked.outstanding,
            "WriteRatio": asked.write_pct,
            "Throughput": asked.rate or 0,
            "ThreadsPerFile": asked.threads_per_target or 1,
            "IOPriority": 3,
            "Weight": 1,
        }
    )
    yield "</Target>"


def _time_span(asked: Arguments, size_bytes: int, measured: Measured) -> Iterator[str]:
    yield "<TimeSpan>"
    yield _element("TestTimeSeconds", f"{measured.total.runtime_ms / 1000:.2f}")
    yield _element("ThreadCount", len(measured.threads))
    yield _element("RequestCount", asked.outstanding_per_thread or 0)
    yield _element("ProcCount", len(measured.cores))
    yield from _processors(measured.cores)
    if asked.latency:
        yield from _latency(measured.total.directions)
    if asked.iops_interval_ms is not None:
        yield from _iops(measured.series)
    for number, thread in enumerate(measured.threads):
        yield from _thread(number, thread, asked, size_bytes)
    yield "</TimeSpan>"


def _processors(cores: Sequence[tuple[float, float]]) -> Iterator[str]:
    if not cores:
        return
    yield "<CpuUtilization>"
    for number, of_core in enumerate(cores):
        yield from ("<CPU>", _element("Id", number), *_busy(*of_core), "</CPU>")
    user, kernel = (sum(part) / len(cores) for part in zip(*cores, strict=True))
    yield from ("<Average>", *_busy(user, kernel), "</Average>", "</CpuUtilization>")


def _busy(user: float, kernel: float) -> Iterator[str]:
    parts = {"Usage": user + kernel, "User": user, "Kernel": kernel, "Idle": 100 - user - kernel}
    return _elements({f"{name}Percent": f"{value:.2f}" for name, value in parts.items()})


def _latency(directions: Mapping[str, Direction]) -> Iterator[str]:
    parts = _both(directions)
    total = _together(parts.values())
    bins = {"Total": merge_bins([part.bins for part in parts.values()])}
    bins |= {_WORDS[name]: part.bins for name, part in parts.items()}
    yield "<Latency>"
    for name, part in parts.items():
        yield _element(f"Average{_WORDS[name]}Milliseconds", f"{part.lat_mean_ms:.3f}")
        yield _element(f"{_WORDS[name]}LatencyStdev", f"{part.lat_stddev_ms:.3f}")
    yield _element("AverageTotalMilliseconds", f"{total[0]:.3f}")
    yield _element("LatencyStdev", f"{total[1]:.3f}")
    order = [word for word in ("Read", "Write", "Total") if word in bins]
    columns = {word: percentile_ns(bins[word], *(float(p) / 100 for p in _PERCENTILES)) for word in order}
    for position, percentile in enumerate(_PERCENTILES):
        yield "<Bucket>"
        yield _element("Percentile", percentile)
        for word in order:
            yield _element(f"{word}Milliseconds", f"{columns[word][position] / NS_PER_MS:.3f}")
        yield "</Bucket>"
    yield "</Latency>"


def _both(directions: Mapping[str, Direction]) -> dict[str, Direction]:
    return {name: directions[name] for name in _WORDS if name in directions}


def _together(parts: Iterable[Direction]) -> tuple[float, float]:
    """Mean and standard deviation of reads and writes together, in ms."""
    listed = list(parts)
    return pooled(
        [part.lat_mean_ms for part in listed],
        [part.lat_stddev_ms for part in listed],
        [part.ios for part in listed],
    )


def _iops(series: Mapping[str, Series]) -> Iterator[str]:
    """Rates a second by interval, whole numbers as DiskSpd prints them."""
    yield "<Iops>"
    if series:
        ends = next(iter(series.values())).second
        rates = {name: _column(series.get(name), ends, "iops", 0.0) for name in _WORDS}
        latencies = {name: _column(series.get(name), ends, "lat_mean_ms", math.nan) for name in _WORDS}
        for name, word in _WORDS.items():
            yield _element(f"{word}IopsStdDev", f"{rates[name].std():.3f}")
        yield _element("IopsStdDev", f"{sum(rates.values()).std():.3f}")  # type: ignore[union-attr]
        for position, end in enumerate(ends):
            yield _interval(end, {name: float(rates[name][position]) for name in rates}, latencies, position)
    yield "</Iops>"


def _column(part: Series | None, ends: np.ndarray, name: str, default: float) -> np.ndarray:
    known = {} if part is None else dict(zip(part.second.tolist(), getattr(part, name).tolist(), strict=True))
    return np.array([known.get(end, default) for end in ends.tolist()])


def _interval(
    end: float, rates: Mapping[str, float], latencies: Mapping[str, np.ndarray], position: int
) -> str:
    counters = {"SampleMillisecond": f"{end * 1000:.0f}"}
    counters |= {_WORDS[name]: f"{rate:.0f}" for name, rate in rates.items()}
    counters["Total"] = f"{sum(rates.values()):.0f}"
    for name, values in latencies.items():
        if not math.isnan(values[position]):
            counters[f"{_WORDS[name]}AvgLatencyMilliseconds"] = f"{values[position]:.3f}"
    return "<Bucket " + " ".join(f'{key}="{value}"' for key, value in counters.items()) + "/>"


def _thread(number: int, thread: Measurement, asked: Arguments, size_bytes: int) -> Iterator[str]:
    parts = {name: thread.directions.get(name, _NOTHING) for name in _WORDS}
    counts = {name: part.ios for name, part in parts.items()}
    yield from ("<Thread>", _element("Id", number), "<Target>", _element("Path", asked.targets[0]))
    yield _element("BytesCount", sum(counts.values()) * asked.block_size)
    yield _element("FileSize", size_bytes)
    yield _element("IOCount", sum(counts.values()))
    for name, word in _WORDS.items():
        yield _element(f"{word}Bytes", counts[name] * asked.block_size)
        yield _element(f"{word}Count", counts[name])
    if asked.latency:
        yield from _thread_latency(_both(thread.directions))
    yield from ("</Target>", "</Thread>")


def _thread_latency(parts: Mapping[str, Direction]) -> Iterator[str]:
    for name, part in parts.items():
        yield _element(f"Average{_WORDS[name]}LatencyMilliseconds", f"{part.lat_mean_ms:.3f}")
        yield _element(f"{_WORDS[name]}LatencyStdev", f"{part.lat_stddev_ms:.3f}")
    mean, spread = _together(parts.values())
    yield _element("AverageLatencyMilliseconds", f"{mean:.3f}")
    yield _element("LatencyStdev", f"{spread:.3f}")
