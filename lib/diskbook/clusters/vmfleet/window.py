"""The time in which all machines of a fleet measured at once, and what was done in it. Compute only."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
