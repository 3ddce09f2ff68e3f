"""Reader of DiskSpd's XML (-Rxml), versions 2.0.12 to 2.2, as measurements. Reads text, touches no file.

`TimeSpan` occurs twice: in the Profile it says what was asked, below Results what was measured. A thread
lists its targets; an outstanding I/O is of a thread and target, or of a thread (-O). Latencies are there with
-L only, one-second counts with -D only. Version 2.2 writes ``Name="<unknown>"`` and bare ampersands.

Also reads the load that a time span of a DiskSpd profile asks for. Compute only, no I/O.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypeVar

import numpy as np

from diskbook.facts.units import NS_PER_MS
from diskbook.tools import xml_tree
from diskbook.tools.record import (
    CACHED,
    SHORTEST,
    Direction,
    Load,
    Measurement,
    Parsed,
    Series,
    UnusableError,
    failed_with,
    number,
)
from diskbook.tools.xml_tree import Node

T = TypeVar("T")
UNEVEN = "offsets were drawn from a distribution (-rd), not evenly"


@dataclass(frozen=True)
class _Target:
    """A target of the profile: what each of its threads does to it."""

    path: str
    block_size_bytes: int
    write_pct: int
    threads: int
    outstanding: int
    random: bool
    rate: float | None
    write_through: bool
    size_bytes: int | None
    cached: bool


def _target(node: Node) -> _Target:
    """What the profile asks of a target."""
    block = int(number(node.word("BlockSize"), "BlockSize", 2**40))
    throughput = node.first("Throughput")
    return _Target(
        path=node.word("Path"),
        block_size_bytes=block,
        write_pct=int(number(node.word("WriteRatio") or "0", "WriteRatio", 100)),
        threads=int(number(node.word("ThreadsPerFile") or "1", "ThreadsPerFile", 1e6)),
        outstanding=int(number(node.word("RequestCount") or "1", "RequestCount", 1e6)),
        random=node.first("Random") is not None,
        rate=_rate(throughput, block) if throughput else None,
        write_through="true" in (node.word("WriteThrough"), node.word("DisableAllCache")),
        size_bytes=int(number(node.word("FileSize"), "FileSize")) if node.word("FileSize") else None,
        cached=all(node.word(f"Disable{cache}Cache") != "true" for cache in ("OS", "All", "Local")),
    )


def _tell_ways(node: Node, flags: list[str]) -> None:
    """Say what the numbers of a target's load do not."""
    if node.word("RandomRatio"):
        flags.append(f"{node.word('RandomRatio')[:3]} % of the I/Os were random, the others in a row")
    if node.first("Distribution") is not None:
        flags.append(UNEVEN)
    if node.word("ThinkTime") not in ("", "0"):
        flags.append("pauses (-j) limited the rate")


def _rate(node: Node, block_size_bytes: int) -> float | None:
    """IOPS of a thread and target; bytes a millisecond before 2.1, either since."""
    rate = number(node.text.strip() or "0", "Throughput")
    if not rate or not block_size_bytes:
        return None
    return rate if node.attributes.get("unit", "").upper() == "IOPS" else rate * 1000 / block_size_bytes


def profile_load(profile: Node | None, flags: list[str]) -> tuple[Load, list[str]]:
    """Join the targets of a time span: outstanding I/Os and rates add up; what differs is left out and told.

    - `profile`: the profile's TimeSpan, or None when the file has none.
    - `flags`: sentences are added to it.

    Returns the load, and the paths of its targets.

    Raises ValueError when a number in it is none.
    """
    nodes = list(profile.all("Targets", "Target")) if profile else []
    targets = [_target(node) for node in nodes]
    if profile is None or not targets:
        flags.append("what was asked for is not in the file")
        return Load(), []
    threads, outstanding = _concurrency(targets, profile)
    if len(targets) > 1:
        flags.append(f"{len(targets)} targets were loaded at once and are added up")
    if any(item.cached for item in targets):
        flags.append(CACHED)
    _tell_ways(nodes[0], flags)
    rates = [item.rate for item in targets]
    total_threads = int(number(profile.word("ThreadCount") or "0", "ThreadCount", 1e6))
    of_target = [total_threads or item.threads for item in targets]
    joined = Load(
        pattern=_same(["random" if item.random else "sequential" for item in targets], "pattern", flags),
        block_size_bytes=_same([item.block_size_bytes for item in targets], "block size", flags),
        write_pct=_same([item.write_pct for item in targets], "write ratio", flags),
        threads=threads if outstanding % threads == 0 else 1,
        queue_depth=outstanding // threads if outstanding % threads == 0 else outstanding,
        rate=sum(rate * n for rate, n in zip(rates, of_target, strict=True) if rate) if all(rates) else None,
        sync="dsync" if all(item.write_through and item.write_pct for item in targets) else None,
        size_bytes=sum(item.size_bytes or 0 for item in targets) or None,
        ramp_s=number(profile.word("Warmup") or "0", "Warmup", 1e9),
        runtime_s=number(profile.word("Duration") or "0", "Duration", 1e9) or None,
    )
    return joined, [item.path for item in targets]


def _concurrency(targets: list[_Target], profile: Node) -> tuple[int, int]:
    """Threads and outstanding I/Os of a time span, all targets together."""
    total = int(number(profile.word("ThreadCount") or "0", "ThreadCount", 1e6))
    a_thread = int(number(profile.word("RequestCount") or "0", "RequestCount", 1e6))
    threads = total or sum(item.threads for item in targets)
    if a_thread:
        return max(threads, 1), max(threads * a_thread, 1)
    if total:
        return total, max(total * sum(item.outstanding for item in targets), 1)
    return max(threads, 1), max(sum(item.threads * item.outstanding for item in targets), 1)


def _same(values: list[T], what: str, flags: list[str]) -> T | None:
    if len(set(values)) == 1:
        return values[0]
    flags.append(f"the targets differ in {what}")
    return None


BLOCK = "block"
USUAL = {
    **{"CompletionRoutines": "false", "DisableAffinity": "false", "BaseFileOffset": "0"},
    **{
        "SequentialScan": "false",
        "RandomAccess": "false",
        "TemporaryFile": "false",
        "UseLargePages": "false",
    },
    **{"ParallelAsyncIO": "false", "InterlockedSequential": "false"},
    **{"StrideSize": BLOCK, "Random": BLOCK, "MemoryMappedIo": "false"},
    **{"RandomRatio": "", "ThreadStride": "0", "MaxFileSize": "0", "BurstSize": "0", "ThinkTime": "0"},
    **{"IOPriority": "3", "Weight": "1", "Pattern": "sequential"},
}
"""Options that change what is measured and that no load tells, by their elements, as they are by default."""
_NAMES = {"Random": "alignment", "StrideSize": "stride", "Pattern": "buffer"}


def named(options: Mapping[str, str]) -> dict[str, str]:
    """Give options of a run the names that loads get: "BurstSize" is "burst-size"."""
    return {
        _NAMES.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()): options[name] for name in options
    }


def _options(profile: Node | None) -> dict[str, str]:
    """Options of a time span; those in which its targets differ are joined."""
    targets = list(profile.all("Targets", "Target")) if profile else []
    if profile is None or not targets:
        return {}
    options = dict(USUAL)
    for name, usual in USUAL.items():
        values = []
        for target in targets:
            places = (target.word(name), target.word("WriteBufferContent", name), profile.word(name))
            value = next(filter(None, places), usual)
            is_block = name in ("Random", "StrideSize") and value == target.word("BlockSize")
            values.append(BLOCK if is_block else value)
        options[name] = "+".join(dict.fromkeys(values))[:80]
    return named(options)


_WORDS = {"read": "Read", "write": "Write"}
_DOCUMENT = re.compile(r"<Results[\s>]")
_FROM_PERCENTILES = "the latency distribution is rebuilt from DiskSpd's percentiles"
NO_LATENCY = "no latencies were measured (-L was not given)"


def parse(text: str, source: str) -> Parsed:
    """Read the XML of one or several runs of DiskSpd, with whatever stands before it.

    - `source`: its name, for messages.

    Returns a measurement a time span. The file's flags name the time spans that could not be used.

    Raises UnusableError when nothing in it can be used; names the line where it can.
    """
    flags: list[str] = []
    versions: set[str] = set()
    measurements: list[Measurement] = []
    failed: list[tuple[str, int | None]] = []
    documents = _documents(text, source, flags)
    for document, lines_before in documents:
        version, usable, more, unusable = _document(document, source, lines_before)
        versions.add(version)
        measurements += usable
        flags += more
        failed += unusable
    if not measurements:
        why, where = failed[0] if failed else ("it holds no time span with results", None)
        raise UnusableError(source, why, where)
    if len(documents) > 1:
        flags.append(f"the file holds {len(documents)} runs")
    flags += [f"line {where}: {why}" for why, where in failed]
    if len(versions) > 1:
        raise UnusableError(source, f"it holds runs of different versions ({', '.join(sorted(versions))})")
    kept = tuple(dict.fromkeys(flags))
    return Parsed("diskspd", versions.pop(), "DiskSpd XML", tuple(measurements), kept)


def _documents(text: str, source: str, flags: list[str]) -> list[tuple[str, int]]:
    """Cut a text at each <Results>, with the number of lines before; the same one twice counts once."""
    starts = [match.start() for match in _DOCUMENT.finditer(text)]
    if not starts:
        raise UnusableError(source, "there is no <Results> of DiskSpd in it")
    documents: dict[str, tuple[str, int]] = {}
    for start, end in pairwise([*starts, len(text)]):
        content = text[start:end].partition("</Results>")[0].strip()
        if content in documents:
            flags.append("the same document is there twice and counts once")
        else:
            documents[content] = (text[start:end], text.count("\n", 0, start))
    return list(documents.values())


def _document(
    text: str, source: str, lines_before: int
) -> tuple[str, list[Measurement], list[str], list[tuple[str, int | None]]]:
    """Version, measurements, flags, and what could not be used (why, line) of one <Results>."""
    end = text.rfind("</Results>")
    tree = _tree(text if end < 0 else text[: end + len("</Results>")], source, lines_before)
    if tree.root is None:
        raise UnusableError(source, tree.broken_why, lines_before + (tree.broken_line or 1))
    root, flags = tree.root, []
    if tree.mended:
        flags.append("not well-formed XML (a known fault of DiskSpd), mended for reading")
    if tree.broken_line:
        flags.append(f"cut or damaged at line {lines_before + tree.broken_line} ({tree.broken_why})")
    asked = list(root.all("Profile", "TimeSpans", "TimeSpan"))
    started = _time(root.word("System", "RunTime"))
    measurements: list[Measurement] = []
    failed: list[tuple[str, int | None]] = []
    for position, span in enumerate(root.all("TimeSpan")):
        profile = asked[position] if position < len(asked) else None
        try:
            measurement = _measurement(span, profile, position + 1)
        except ValueError as error:
            failed.append((f"time span {position + 1} cannot be used: {error}", lines_before + span.line))
            continue
        measurements.append(
            replace(measurement, started_utc=started, host=root.word("System", "ComputerName"))
        )
    if not measurements and not failed and tree.broken_line:
        failed.append(
            (f"it breaks off before any result ({tree.broken_why})", lines_before + tree.broken_line)
        )
    return root.word("System", "Tool", "Version") or "unknown", measurements, flags, failed


def _tree(text: str, source: str, lines_before: int) -> xml_tree.Tree:
    try:
        return xml_tree.read(text)
    except xml_tree.Refused as error:
        raise UnusableError(source, str(error), lines_before + 1) from None


def _measurement(span: Node, profile: Node | None, position: int) -> Measurement:
    """One time span; ValueError says why it cannot be used."""
    error = span.word("Error")
    if error:
        raise ValueError(failed_with("DiskSpd", error))
    seconds = number(span.word("TestTimeSeconds"), "TestTimeSeconds", 1e9)
    if seconds <= 0:
        raise ValueError("it measured for no time at all")
    threads = _threads(span)
    flags = [] if span.closed else ["it breaks off within this time span, after all counts"]
    directions = _directions(span, threads, seconds, flags)
    load, paths = profile_load(profile, flags)
    paths = paths or [node.word("Path") for node in _targets(threads)]
    _tell_idle(threads, flags)
    usr_pct, sys_pct, busiest_core_pct = _cores(span)
    return Measurement(
        name=f"time span {position}",
        target=" + ".join(dict.fromkeys(filter(None, paths))),
        load=load,
        directions=directions,
        series=_series(span, seconds),
        flags=tuple(flags),
        options=_options(profile),
        usr_pct=usr_pct,
        sys_pct=sys_pct,
        busiest_core_pct=busiest_core_pct,
    )


def _cores(span: Node) -> tuple[float, float, float]:
    """User and kernel time of all cores together, and the busiest core, in percent; NaN where cut."""
    cores = span.first("CpuUtilization")
    if cores is None or not cores.closed:
        return math.nan, math.nan, math.nan
    try:
        busy = [number(core.word("UsagePercent"), "UsagePercent") for core in cores.all("CPU")]
        usr, kernel = (number(cores.word("Average", word), word) for word in ("UserPercent", "KernelPercent"))
    except ValueError:
        return math.nan, math.nan, math.nan
    return usr, kernel, max(busy, default=math.nan)


def _threads(span: Node) -> list[Node]:
    """Threads of a time span, all of them; a sum over some would pass for a smaller total."""
    threads = list(span.all("Thread"))
    if not threads:
        raise ValueError("no thread's counts are in it")
    stated = span.word("ThreadCount")
    expected = int(number(stated, "ThreadCount", 1e6)) if stated else len(threads)
    if len(threads) != expected or not all(node.closed for node in threads):
        raise ValueError(f"the counts of {expected} threads are wanted, but it breaks off before their end")
    return threads


def _targets(threads: Iterable[Node]) -> list[Node]:
    return [target for thread in threads for target in thread.all("Target")]


def _tell_idle(threads: list[Node], flags: list[str]) -> None:
    """Say which targets got no I/O: DiskSpd's outstanding I/Os are counted for them all the same."""
    ios: dict[str, float] = {}
    for node in _targets(threads):
        ios[node.word("Path")] = ios.get(node.word("Path"), 0) + number(node.word("IOCount"), "IOCount")
    idle = [path for path, count in ios.items() if not count]
    if idle and len(idle) < len(ios):
        flags.append(f"no I/O went to {' + '.join(idle)}")


def _directions(span: Node, threads: list[Node], seconds: float, flags: list[str]) -> dict[str, Direction]:
    latency = span.first("Latency")
    if latency is None:
        flags.append(NO_LATENCY)
    elif not latency.closed:
        flags.append("the latencies are cut off and left out")
        latency = None
    directions = {}
    for name, word in _WORDS.items():
        targets = _targets(threads)
        ios = sum(int(number(node.word(f"{word}Count"), f"{word}Count")) for node in targets)
        size = sum(number(node.word(f"{word}Bytes"), f"{word}Bytes") for node in targets)
        if ios:
            directions[name] = _direction(ios, size, seconds, latency, word, flags)
    if not directions:
        raise ValueError("no I/O was done")
    return directions


def _direction(
    ios: int, size: float, seconds: float, latency: Node | None, word: str, flags: list[str]
) -> Direction:
    percentiles = _percentiles(latency, word) if latency else {}
    if percentiles and _FROM_PERCENTILES not in flags:
        flags.append(_FROM_PERCENTILES)
    mean = latency.word(f"Average{word}Milliseconds") if latency else ""
    spread = latency.word(f"{word}LatencyStdev") if latency else ""
    return Direction(
        ios=ios,
        iops=ios / seconds,
        bw_bytes=size / seconds,
        runtime_ms=1000 * seconds,
        lat_mean_ms=_latency_ms(mean),
        lat_stddev_ms=_latency_ms(spread),
        lat_min_ms=percentiles.get(0.0, math.nan),
        lat_max_ms=percentiles.get(100.0, math.nan),
        lat_p50_ms=percentiles.get(50.0, math.nan),
        lat_p99_ms=percentiles.get(99.0, math.nan),
        lat_p999_ms=percentiles.get(99.9, math.nan),
        bins=bins_of(percentiles, ios),
        percentiles_ms=percentiles,
    )


def _latency_ms(text: str) -> float:
    return number(text, "a latency", 1e9) if text else math.nan


def _percentiles(latency: Node, word: str) -> dict[float, float]:
    percentiles = {}
    for bucket in latency.all("Bucket"):
        value = bucket.word(f"{word}Milliseconds")
        if value:
            percentile = number(bucket.word("Percentile"), "Percentile", 100)
            percentiles[percentile] = number(value, f"{word}Milliseconds", 1e9)
    return percentiles


def bins_of(percentiles_ms: dict[float, float], ios: int) -> dict[int, int]:
    """Make a histogram of percentiles: each part of the I/Os at the percentile that it ends with.

    Exact at the percentiles options, no better than their distance between them (1 % up to the 99th).
    """
    bins: dict[int, int] = {}
    done = 0
    for percentile, value_ms in sorted(percentiles_ms.items()):
        upto = math.ceil(ios * percentile / 100 - 1e-9)
        if upto > done:
            value_ns = round(value_ms * NS_PER_MS)
            bins[value_ns] = bins.get(value_ns, 0) + upto - done
            done = upto
    return dict(sorted(bins.items())) if done == ios else {}


def _series(span: Node, seconds: float) -> dict[str, Series]:
    """One value an interval (-D), of those that lie within the measured time.

    DiskSpd gives rates a second, whatever the interval (seen with -D500).
    """
    buckets = [item for item in span.all("Iops", "Bucket") if item.closed]
    if not buckets:
        return {}
    ends = [
        number(item.attributes.get("SampleMillisecond"), "SampleMillisecond", 1e12) / 1000 for item in buckets
    ]
    if (np.diff([0.0, *ends]) <= 0).any():
        raise ValueError("the times of its one-second counts do not rise")
    within = np.array(ends) <= seconds * 1.001
    return {
        name: Series(np.array(ends)[within], counts[within], latencies[within])
        for name, word in _WORDS.items()
        if (counts := _column(buckets, word)).any()
        for latencies in [_column(buckets, f"{word}AvgLatencyMilliseconds", math.nan)]
    }


def _column(buckets: Sequence[Node], name: str, default: float = 0.0) -> np.ndarray:
    values = [item.attributes.get(name) for item in buckets]
    return np.array([default if value is None else number(value, name) for value in values])


def _time(text: str) -> str | None:
    """ISO 8601 of "2026/11/20 08:57:35 UTC" (or GMT)."""
    try:
        moment = datetime.strptime(text.rsplit(" ", 1)[0], "%Y/%m/%d %H:%M:%S")
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC).isoformat(timespec="seconds")


def version(number: str) -> str:
    """Name tool and version as a run's tables do."""
    return f"diskspd {number}"


def parse_output(text: Mapping[str, str], source: str, runtime_s: float | None = None) -> Measurement:
    """Read what DiskSpd left.

    - `text`: its streams: `stdout` with the XML, `stderr`.
    - `source`: name of the output, for messages.
    - `runtime_s`: how long it was to measure; when given, a result that is much shorter is refused.

    Raises UnusableError with DiskSpd's own message where it has one.
    """
    complaint = _complaint(text)
    try:
        parsed = parse(text.get("stdout", ""), source)
    except UnusableError as error:
        raise UnusableError(source, error.reason, error.line, complaint) from None
    if len(parsed.measurements) > 1:
        raise UnusableError(source, f"it holds {len(parsed.measurements)} results; one was asked for")
    measurement = parsed.measurements[0]
    measured_s = measurement.runtime_ms / 1000
    if runtime_s is not None and measured_s < SHORTEST * runtime_s:
        short = f"DiskSpd measured for {measured_s:g} s of {runtime_s:g} s; it was interrupted"
        raise UnusableError(source, short, cause=complaint)
    return replace(measurement, version=version(parsed.version))


def _complaint(text: Mapping[str, str]) -> str:
    """What went wrong in DiskSpd's own words, of either stream; empty where it told nothing."""
    lines = [line.strip() for stream in ("stderr", "stdout") for line in text.get(stream, "").splitlines()]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    telling = errors or [line for line in lines if line.upper().startswith("WARNING")]
    return failed_with("DiskSpd", telling[0]) if telling else ""
