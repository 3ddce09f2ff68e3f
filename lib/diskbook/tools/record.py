"""The record that all parsers make: what a measuring tool reported, whichever tool and format.

Latencies are in ms, times in s or ms, bins in ns, rates per second. Compute only, no I/O.

Some remarks on a measurement mean that its load was held back.

Remarks (flags) are sentences for people. Two kinds of them decide how a measurement is judged, and are told
here by how they begin, or by a phrase of theirs; a test holds every one against the readers' sources.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from diskbook.design.model import ToolName
from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.nan_equal import NanEqual

Floats = npt.NDArray[np.float64]
SHORTEST = 0.9
"""A trial that ran for less than this part of what was asked was interrupted; tools report no error then."""
CACHED = "the system's file cache was on: this may measure memory and not the disk"


class UnusableError(DiskbookError):
    """A file, or a part of it, cannot be used: names the file, where it can the line, and why."""

    def __init__(self, source: str, reason: str, line: int | None = None, cause: str = "") -> None:
        """Take what is wrong with the file, and what the tool itself gave as the cause, where it did.

        The sentence names the cause alone. What is wrong with the file follows from it and is kept as a note.
        """
        place = f"{source}, line {line}" if line else source
        self.reason = " ".join((cause or reason).split())[:400]  # it may quote a damaged file
        super().__init__(f"{place}: {self.reason}")
        self.source, self.line = source, line
        if cause:
            self.add_note(reason)


def failed_with(tool: str, words: str) -> str:
    """Say that a tool failed, in its own words; those that a stand-in passes on are not wrapped again."""
    own = re.sub(rf"^({tool}|error)\s*:\s*", "", words.strip(), flags=re.IGNORECASE)
    passed_on = re.search(r'failed with "(?P<words>[^"]+)"', own)
    own = passed_on["words"] if passed_on else own
    return f'{tool} failed with "{own[:300]}"' if own else ""


@dataclass(frozen=True, eq=False)
class Intended(NanEqual):
    """Latency of a held rate from when each I/O was due; see `tables.held_rate`. `bins` as of `Direction`.

    The least are without what the generator's own queue may have added (`tools.fio.held_rate`). `p99_rise` is
    the 99.5th percentile over the 98.5th: large where the 99th lies between ordinary I/Os and stalls.
    """

    lat_mean_ms: float = math.nan
    lat_p50_ms: float = math.nan
    lat_p99_ms: float = math.nan
    lat_p999_ms: float = math.nan
    mean_least_ms: float = math.nan
    p99_least_ms: float = math.nan
    p99_rise: float = math.nan
    bins: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Direction(NanEqual):
    """Totals and latency of one kind of I/O (read, write, sync), all threads together.

    `bins` maps latency in ns to a count, `percentiles_ms` a percentage (0..100) to a latency. What the tool
    did not record or tell is NaN. `iops` and `bw_bytes` are per second. After a ramp fio
    counts I/Os that were in flight at its end among the bytes and latencies, but not among `ios` and `iops`;
    it divides both by the time until its queue is empty. On a cap `bw_bytes` is right, and `iops` is low by
    latency / runtime: 2.5 % with 256 outstanding, 2 s and 5,100 IOPS.
    """

    ios: float
    iops: float
    bw_bytes: float
    runtime_ms: float
    lat_mean_ms: float = math.nan
    lat_stddev_ms: float = math.nan
    lat_min_ms: float = math.nan
    lat_max_ms: float = math.nan
    lat_p50_ms: float = math.nan
    lat_p99_ms: float = math.nan
    lat_p999_ms: float = math.nan
    bins: dict[int, int] = field(default_factory=dict)
    percentiles_ms: dict[float, float] = field(default_factory=dict)
    intended: Intended = Intended()


@dataclass(frozen=True, eq=False)
class Series(NanEqual):
    """IOPS of all jobs and mean latency in ms, interval by interval; `second` is the end of each, from 0."""

    second: Floats
    iops: Floats
    lat_mean_ms: Floats


@dataclass(frozen=True)
class Load:
    """What a tool was asked to do, as far as its output tells; None where it does not.

    `threads` times `queue_depth` is the number of I/Os in flight, of each of `instances` machines where a
    fleet was measured; `rate` is the total in IOPS.
    """

    pattern: Literal["random", "sequential"] | None = None
    block_size_bytes: int | None = None
    write_pct: int | None = None
    threads: int | None = None
    queue_depth: int | None = None
    rate: float | None = None
    sync: Literal["fdatasync", "dsync"] | None = None
    size_bytes: int | None = None
    ramp_s: float | None = None
    runtime_s: float | None = None
    instances: int | None = None


@dataclass(frozen=True)
class Instance:
    """What one machine of a fleet did in a trial; the trial, not the machine, is the unit of all ratios.

    `started_s` is when it began to measure, after the first of them did; `directions` are its own totals,
    over its own `runtime_s`.
    """

    vm: str
    volume: str
    node: str
    started_s: float
    runtime_s: float
    directions: dict[str, Direction]

    def __post_init__(self) -> None:
        _show(self, "vm", "volume", "node")


@dataclass(frozen=True, eq=False)
class Measurement(NanEqual):
    """One load, measured once.

    - `name`: what the tool calls it: job, time span.
    - `target`: file or device, as the tool names it; several are joined with " + "; empty when not told.
    - `load`: what was asked for.
    - `directions`: those of read, write and sync in which something was done.
    - `series`: by direction (read, write); empty when none was kept.
    - `started_utc`: ISO 8601, or None when not told.
    - `flags`: what a reader of the numbers must know, one sentence each, without a full stop.
    - `host`: machine that measured, where several did.
    - `logs`: kind of log (write_lat_log ...) to the beginning of the names of its files, where the job wrote
      any.
    - `log_interval_s`: interval that the logs are averaged over; None when every I/O has a line.
    - `version`: tool and version as the tables of a run name them; None where the file tells it for all
      measurements in it (`Parsed.version`), or nobody does.
    - `instances`: what each machine did, where a fleet was measured at once; empty elsewhere.
    - `usr_pct`, `sys_pct`: time in user and kernel mode as the tool reports it: of fio its own threads', a
      mean of them in percent of one core; of DiskSpd all cores' together. NaN where it reports none.
    - `busiest_core_pct`: of the machine over the measured time, where the tool reports its cores; NaN
      elsewhere.
    - `rates`: IOPS that each thread was held at, by direction; empty where none was, or not by constant gaps.
    - `options`: what its tool was told besides, as far as its output repeats it; values as written.
    - `rate_window_worst`, `rate_windows_low_share`: see `design.held_rate.rate_windows`; NaN where no rate
      was held, or nobody logged each I/O.
    """

    name: str
    target: str
    load: Load
    directions: dict[str, Direction]
    series: dict[str, Series] = field(default_factory=dict)
    started_utc: str | None = None
    flags: tuple[str, ...] = ()
    host: str = ""
    logs: dict[str, str] = field(default_factory=dict)
    log_interval_s: float | None = None
    version: str | None = None
    instances: tuple[Instance, ...] = ()
    usr_pct: float = math.nan
    sys_pct: float = math.nan
    busiest_core_pct: float = math.nan
    rates: dict[str, float] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    rate_window_worst: float = math.nan
    rate_windows_low_share: float = math.nan

    def __post_init__(self) -> None:
        _show(self, "name", "target", "host", "version", "flags")

    @property
    def ios(self) -> float:
        """Reads and writes together."""
        return sum(part.ios for name, part in self.directions.items() if name != "sync")

    @property
    def runtime_ms(self) -> float:
        """Longest time of any direction; 0 when nothing was done."""
        return max((part.runtime_ms for part in self.directions.values()), default=0.0)


@dataclass(frozen=True)
class Parsed:
    """All measurements of one file. `flags` holds what concerns the file, or parts that could not be used."""

    tool: ToolName
    version: str
    format: str
    measurements: tuple[Measurement, ...]
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _show(self, "version", "flags")


def _show(record: object, *names: str) -> None:
    """Make what a tool wrote into these texts visible: they get into tables, pages and figures."""
    for name in names:
        value = getattr(record, name)
        shown = tuple(map(visible, value)) if isinstance(value, tuple) else value and visible(value)
        object.__setattr__(record, name, shown)


def number(value: object, what: str = "a number", greatest: float = 1e18) -> float:
    """Take a value as a finite number from 0 on.

    Raises ValueError for anything else, so that no NaN, infinity or negative count gets in; says what was
    found.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{what} is not a number")
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{what} is not a number: {str(value)[:40]!r}") from None
    if not 0 <= parsed <= greatest:
        raise ValueError(f"{what} is out of range: {str(value)[:40]!r}")
    return parsed


def one_version(versions: Iterable[str], source: str, what: str) -> str:
    """Return the version that all parts of a file have; "unknown" where none is told.

    Raises UnusableError where there are several: `what` says of which parts.
    """
    known = sorted(set(versions) - {""})
    if len(known) > 1:
        raise UnusableError(source, f"it holds {what} ({', '.join(known)})")
    return known[0] if known else "unknown"


def ranks(percentiles: Mapping[float, float]) -> dict[str, Any]:
    """Percentiles as fields of a `Direction`: those that tables have a column for, and all of them."""
    columns = {"lat_p50_ms": 50.0, "lat_p99_ms": 99.0, "lat_p999_ms": 99.9}
    known = {name: percentiles.get(rank, math.nan) for name, rank in columns.items()}
    return {**known, "percentiles_ms": dict(percentiles)}


def percentile_ns(bins: Mapping[int, int], *quantiles: float) -> list[float]:
    """Latency in ns at or below which each of these parts (0..1) of the I/Os lies; NaN without bins."""
    if not bins:
        return [math.nan] * len(quantiles)
    values = np.fromiter(bins.keys(), dtype=np.int64, count=len(bins))
    counts = np.fromiter(bins.values(), dtype=np.int64, count=len(bins))
    order = np.argsort(values)
    cumulative = np.cumsum(counts[order])
    # The same rank as fio: the first bin up to which at least ceil(quantile * n) I/Os lie.
    ranks = [max(1, math.ceil(quantile * int(cumulative[-1]) - 1e-9)) for quantile in quantiles]
    return values[order][np.searchsorted(cumulative, ranks)].astype(float).tolist()


def merge_bins(parts: Sequence[Mapping[int, int]]) -> dict[int, int]:
    """Add histograms up; exact where their edges are the same, as fio's are."""
    if len(parts) == 1:
        return dict(sorted(parts[0].items()))
    merged: dict[int, int] = {}
    for part in parts:
        for value, count in part.items():
            merged[value] = merged.get(value, 0) + count
    return dict(sorted(merged.items()))


def pooled(means: Sequence[float], stddevs: Sequence[float], counts: Sequence[float]) -> tuple[float, float]:
    """Pool the means and standard deviations of several samples; NaN if there are no samples."""
    total = sum(counts)
    if not total:
        return math.nan, math.nan
    mean = sum(mean_of_clone * n for mean_of_clone, n in zip(means, counts, strict=True)) / total
    squares = sum(
        spread**2 * max(n - 1, 0) + n * (mean_of_clone - mean) ** 2
        for mean_of_clone, spread, n in zip(means, stddevs, counts, strict=True)
    )
    return mean, math.sqrt(squares / max(total - 1, 1))


PACED = (
    "the rate was limited",
    "pauses (-j) limited the rate",
    "the depth was steered by a target of latency",
    "it synced after every",
)
"""Fewer I/Os than asked for may have been in flight: pauses, a rate, syncs, or a target of latency."""
ABOUT_DEPTH = "the depth is between"
"""The depth is known within a factor of two."""
DOUBTFUL = (
    CACHED,
    "the file contradicts itself",
    "no I/O went to",
    "some are missing",
    "some clones are missing",
    "other jobs may be summed with it",
    "the text is cut after",
    "the latencies are cut off",
    "s are cut off and left out",
    "it breaks off within this time span",
    "a percentile lies above the largest latency",
)
"""The numbers may not be those of what they name."""


def is_paced(remarks: Iterable[str]) -> bool:
    """Whether something besides the depth held a load back, so that fewer I/Os are in flight than asked."""
    return any(remark.startswith(PACED) for remark in remarks)


def doubtful(remarks: Iterable[str]) -> tuple[str, ...]:
    """Remarks that say that a number may not be that of what it names."""
    return tuple(remark for remark in remarks if any(phrase in remark for phrase in DOUBTFUL))
