"""The machines of a fleet joined to one measurement: the fleet's trial. Compute only, no I/O.

IOPS are those of all machines within the time in which all of them measured; mean latencies are weighted by
I/Os; percentiles are of the machines' histograms together. VMFleet itself (`ReduceRowResultToSummary`) adds
up the IOPS of each machine's own time and takes the mean of the machines' percentiles, and a mean of p99s is
no p99: `stats.fleet` shows it beside.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from diskbook.clusters.vmfleet import line
from diskbook.facts.units import NS_PER_MS, percent, utc_text
from diskbook.tools import record
from diskbook.tools.diskspd.xml import bins_of
from diskbook.tools.record import Direction, Floats, Series

LEAST_SHARE = 0.5
"""A fleet whose machines shared less of their time than this did not measure one load."""
FLAGGED_SHARE = 0.95


@dataclass(frozen=True)
class Window:
    """From the last machine's start to the first one's end, in s after the first start; share of the run."""

    start_s: float
    end_s: float
    share: float

    @property
    def length_s(self) -> float:
        """How long it is; 0 where there is none."""
        return max(0.0, self.end_s - self.start_s)


def common(started_s: Sequence[float], runtime_s: Sequence[float]) -> Window:
    """Return the time in which all machines measured.

    - `started_s`: when each began to measure.
    - `runtime_s`: how long each measured; the share is of the longest.
    """
    start = max(started_s)
    end = min(begin + length for begin, length in zip(started_s, runtime_s, strict=True))
    longest = max(runtime_s)
    return Window(start, end, max(0.0, end - start) / longest if longest > 0 else 0.0)


@dataclass(frozen=True)
class Course:
    """I/Os of one machine and direction, and the time they took in all, cumulated over time.

    `grain_s` is the interval that its series has; 0 where it has none.
    """

    second: Floats
    ios: Floats
    wait_ms: Floats
    grain_s: float

    def done(self, moments: Floats) -> tuple[Floats, Floats]:
        """Return I/Os and their waits up to each moment."""
        return np.interp(moments, self.second, self.ios), np.interp(moments, self.second, self.wait_ms)


def course(part: Direction, series: Series | None, started_s: float) -> Course:
    """Spread the I/Os of a machine over its time, as its series (-D) tells; evenly without one.

    The counts decide how many there were, the series only when: its intervals are scaled to the count. What
    comes after the last whole interval is taken at the mean rate.
    """
    runtime = part.runtime_ms / 1000
    ends, rates = (series.second, series.iops) if series is not None else (np.array([]), np.array([]))
    inside = ends < runtime
    ends, rates = np.append(ends[inside], runtime), np.append(rates[inside], part.iops)
    # An interval that ends with the measurement is whole: its own rate, not the mean.
    if series is not None and inside.sum() < len(series.iops):
        rates[-1] = series.iops[inside.sum()]
    ios = rates * np.diff(ends, prepend=0.0)
    if ios.max() > 0:
        shares = ios / ios.max()  # first: of numbers next to nothing the sum has no reciprocal
        ios = shares * (part.ios / shares.sum())
    else:
        ios = part.ios * np.diff(ends, prepend=0.0) / runtime
    latency = np.full(len(ends), part.lat_mean_ms)
    if series is not None:
        means = series.lat_mean_ms[: len(ends)]
        latency[: len(means)] = np.where(np.isnan(means), part.lat_mean_ms, means)
    grain = float(np.median(np.diff(series.second, prepend=0.0))) if series is not None else 0.0
    begun = [0.0]
    return Course(
        started_s + np.concatenate((begun, ends)),
        np.concatenate((begun, np.cumsum(ios))),
        np.concatenate((begun, np.cumsum(ios * latency))),
        grain,
    )


def ios_within(courses: Sequence[Course], window: Window) -> float:
    """Add up the I/Os of all machines within the window."""
    moments = np.array([window.start_s, window.end_s])
    return float(sum(np.diff(item.done(moments)[0])[0] for item in courses))


def series_within(courses: Sequence[Course], window: Window) -> Series | None:
    """Add up the machines' series within the window, from its beginning on, in intervals of theirs.

    Latencies are means weighted by I/Os. None where a machine has no series.
    """
    if not courses or not all(item.grain_s > 0 for item in courses):
        return None
    grain = max(item.grain_s for item in courses)
    most = max(len(item.second) for item in courses)
    count = int(min(window.length_s / grain + 1e-9, most))
    if not count:
        return None
    ends: Floats = grain * np.arange(1, count + 1, dtype=np.float64)
    moments: Floats = window.start_s + np.append(0.0, ends)
    done = [item.done(moments) for item in courses]
    ios = np.diff(np.sum([part for part, _ in done], axis=0))
    waits = np.diff(np.sum([part for _, part in done], axis=0))
    latency = np.divide(waits, ios, out=np.full(count, np.nan), where=ios > 0)
    return Series(ends, ios / grain, latency)


_PERCENTILES = (*range(1, 100), 99.9, 99.99, 99.999, 99.9999, 99.99999, 100.0)
"""Those that DiskSpd tells, so that the fleet's histogram is as fine as its machines'."""
_LOAD = {
    "pattern": "pattern",
    "block_size_bytes": "block size",
    "write_pct": "share of writes",
    "threads": "threads",
    "queue_depth": "queue depth",
    "rate": "rate",
    "sync": "kind of sync",
    "ramp_s": "warm-up",
    "runtime_s": "run time",
}
NO_TIMES = "when each machine began is not told; all are taken to have begun at once"
TO_THE_SECOND = "when each machine began is known to the second, by its own clock"


@dataclass(frozen=True)
class Machine:
    """A machine of a fleet: where it was, what it measured, and when, where more than the XML tells it."""

    vm: str
    volume: str
    node: str
    measurement: record.Measurement
    version: str
    started: datetime | None = None


def machine(vm: str, parsed: record.Parsed, source: str) -> Machine:
    """Take what a machine's file holds; volume and node are those in its name.

    Raises UnusableError when it holds several measurements.
    """
    if len(parsed.measurements) > 1:
        raise record.UnusableError(source, f"it holds {len(parsed.measurements)} results; one was asked for")
    measurement = parsed.measurements[0]
    whole = replace(measurement, flags=(*parsed.flags, *measurement.flags))
    return Machine(vm, *line.place_of(vm), whole, parsed.version)


def join(
    machines: Sequence[Machine],
    source: str,
    *,
    runtime_s: float | None = None,
    instances: int | None = None,
) -> record.Measurement:
    """Join the results of all machines of a trial.

    - `machines`: all of them, each with one measurement.
    - `source`: name of the trial's output, for messages.
    - `runtime_s`: how long each was to measure; by default as its line says.
    - `instances`: how many there should be; by default as many as there are.

    Returns rates, counts and series within the common window, whose length is the run time. Histograms and
    means are of each machine's whole time, since DiskSpd tells them for no other. `instances` has each
    machine.

    Raises UnusableError when a machine is missing or was interrupted, when loads or versions differ, or when
    the machines measured at the same time for less than half of the run.
    """
    ordered = sorted(machines, key=lambda machine: machine.vm)
    _check_count(ordered, source, instances)
    _check_alike(ordered, source)
    for machine in ordered:
        _check_length(machine, source, runtime_s)
    started, flags = _starts(ordered)
    window = common(started, [_runtime_s(machine) for machine in ordered])
    flags = [*_of_all(ordered), *flags, *_check_window(window, source)]
    return _joined(ordered, started, window, flags, source)


def _check_count(machines: Sequence[Machine], source: str, instances: int | None) -> None:
    if not machines:
        raise record.UnusableError(source, "there is no result of a machine in it")
    twice = [vm for vm, count in Counter(machine.vm for machine in machines).items() if count > 1]
    if twice:
        raise record.UnusableError(source, f"there are several results of {twice[0]}")
    if instances is not None and len(machines) != instances:
        raise record.UnusableError(
            source, f"{len(machines)} machines have a result, {instances} were to measure"
        )


def _check_alike(machines: Sequence[Machine], source: str) -> None:
    """Machines that did different things are no fleet."""
    first = machines[0]
    for other in machines[1:]:
        for key, what in _LOAD.items():
            values = [getattr(machine.measurement.load, key) for machine in (first, other)]
            if values[0] != values[1]:
                why = f"{what} {values[0]} and {values[1]}"
                raise record.UnusableError(source, f"{first.vm} and {other.vm} ran different loads ({why})")
        if first.version != other.version:
            why = f"{first.version} and {other.version}"
            raise record.UnusableError(
                source, f"{first.vm} and {other.vm} have different versions of DiskSpd ({why})"
            )


def _check_length(machine: Machine, source: str, runtime_s: float | None) -> None:
    asked_s = machine.measurement.load.runtime_s if runtime_s is None else runtime_s
    measured_s = _runtime_s(machine)
    if asked_s is not None and measured_s < record.SHORTEST * asked_s:
        why = f"{machine.vm} measured for {measured_s:g} s of {asked_s:g} s; it was interrupted"
        raise record.UnusableError(source, why)


def _check_window(window: Window, source: str) -> list[str]:
    share = percent(window.share)
    if window.share < LEAST_SHARE:
        raise record.UnusableError(
            source, f"the machines measured at the same time for {share} of their run only; run them together"
        )
    if window.share < FLAGGED_SHARE:
        return [f"the machines measured at the same time for {share} of their run, and only that counts"]
    return []


def _runtime_s(machine: Machine) -> float:
    return machine.measurement.runtime_ms / 1000


def _starts(machines: Sequence[Machine]) -> tuple[list[float], list[str]]:
    """When each machine began, in s after the first; and what must be known of it.

    The time in DiskSpd's XML is of the whole call: with the same line for all it is as far from the beginning
    of the measurement for each of them.
    """
    exact = [machine.started for machine in machines]
    by_xml = [_moment(machine.measurement.started_utc) for machine in machines]
    times, flags = (exact, []) if all(exact) else (by_xml, [TO_THE_SECOND])
    known = [time for time in times if time is not None]
    if len(known) < len(machines):
        return [0.0] * len(machines), [NO_TIMES] if len(machines) > 1 else []
    return [(time - min(known)).total_seconds() for time in known], flags if len(machines) > 1 else []


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _of_all(machines: Sequence[Machine]) -> Iterable[str]:
    """What must be known of the machines' results, each once, with how many of them it holds for."""
    counts = Counter(flag for machine in machines for flag in dict.fromkeys(machine.measurement.flags))
    for flag, count in counts.items():
        yield flag if count == len(machines) else f"{flag} ({count} of {len(machines)} machines)"


def _joined(
    machines: Sequence[Machine], started: Sequence[float], window: Window, flags: Sequence[str], source: str
) -> record.Measurement:
    names = [
        name for name in ("read", "write") if any(name in item.measurement.directions for item in machines)
    ]
    directions, series = {}, {}
    for name in names:
        parts = [(item.measurement, begun) for item, begun in zip(machines, started, strict=True)]
        courses = [
            course(result.directions[name], result.series.get(name), begun)
            for result, begun in parts
            if name in result.directions
        ]
        whole = [result.directions[name] for result, _ in parts if name in result.directions]
        directions[name] = _direction(whole, ios_within(courses, window), window.length_s)
        if (together := series_within(courses, window)) is not None:
            series[name] = together
    if not any(part.ios for part in directions.values()):
        raise record.UnusableError(source, "no I/O was done while all machines measured")
    return record.Measurement(
        name=f"fleet of {len(machines)}",
        target=_target(machines),
        load=_load(machines),
        directions=directions,
        series=series,
        started_utc=_started_utc(machines),
        flags=tuple(dict.fromkeys(flags)),
        instances=_instances(machines, started),
        usr_pct=float(np.mean([item.measurement.usr_pct for item in machines])),
        sys_pct=float(np.mean([item.measurement.sys_pct for item in machines])),
        busiest_core_pct=float(np.max([item.measurement.busiest_core_pct for item in machines])),
    )


def _started_utc(machines: Sequence[Machine]) -> str | None:
    """When the first machine began to measure, else when its call was made."""
    exact = [item.started for item in machines if item.started]
    if len(exact) == len(machines):
        return utc_text(min(exact).timestamp())
    return min(
        (item.measurement.started_utc for item in machines if item.measurement.started_utc), default=None
    )


def _target(machines: Sequence[Machine]) -> str:
    volumes = dict.fromkeys(item.volume for item in machines if item.volume)
    return " + ".join(volumes) or machines[0].measurement.target


def _load(machines: Sequence[Machine]) -> record.Load:
    load, count = machines[0].measurement.load, len(machines)
    rate = None if load.rate is None else load.rate * count
    sizes = [item.measurement.load.size_bytes for item in machines]
    return replace(load, rate=rate, instances=count, size_bytes=max(filter(None, sizes), default=None))


def _instances(machines: Sequence[Machine], started: Sequence[float]) -> tuple[record.Instance, ...]:
    return tuple(
        record.Instance(
            item.vm, item.volume, item.node, begun, _runtime_s(item), dict(item.measurement.directions)
        )
        for item, begun in zip(machines, started, strict=True)
    )


def _direction(parts: Sequence[record.Direction], ios: float, length_s: float) -> record.Direction:
    """Reads or writes of all machines: `ios` of them within the window."""
    counts = [part.ios for part in parts]
    mean, spread = record.pooled(
        [part.lat_mean_ms for part in parts], [part.lat_stddev_ms for part in parts], counts
    )
    size = sum(part.bw_bytes * part.runtime_ms for part in parts) / 1000 / sum(counts)
    count = round(ios)
    percentiles = _percentiles(parts)
    return record.Direction(
        ios=count,
        iops=ios / length_s,
        bw_bytes=ios / length_s * size,
        runtime_ms=1000 * length_s,
        lat_mean_ms=mean,
        lat_stddev_ms=spread,
        lat_min_ms=float(np.min([part.lat_min_ms for part in parts])),
        lat_max_ms=float(np.max([part.lat_max_ms for part in parts])),
        lat_p50_ms=percentiles.get(50.0, math.nan),
        lat_p99_ms=percentiles.get(99.0, math.nan),
        lat_p999_ms=percentiles.get(99.9, math.nan),
        bins=bins_of(percentiles, count) if count else {},
        percentiles_ms=percentiles,
    )


def _percentiles(parts: Sequence[record.Direction]) -> dict[float, float]:
    """Percentiles of the machines' histograms together, in ms; none where a machine has no histogram."""
    if not all(part.bins for part in parts):
        return {}
    merged = record.merge_bins([part.bins for part in parts])
    values = record.percentile_ns(merged, *(percentile / 100 for percentile in _PERCENTILES))
    return {float(key): value / NS_PER_MS for key, value in zip(_PERCENTILES, values, strict=True)}
