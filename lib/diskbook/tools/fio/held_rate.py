"""fio's log of every I/O of a held rate, against the schedule that fio kept. Compute only, no I/O.

fio holds a rate in each job and direction apart: the k-th I/O is due k gaps after the log's zero, which is
the end of the ramp (`usec_for_io` in backend.c; `rate_process=linear`, its default). A line of the log has
the ms, rounded down, in which an I/O ended, and its latency in ns, so that it was sent at time - latency.

Before fio sleeps until the next is due it waits for all that is in flight (`rate_ddir` in io_u.c), whatever
the depth, so with no stall at all an I/O is late by as much as those before it take (seen: 5.5 ms from the
intended start for 3.4 ms at half a cap). That is fio's doing, not the disk's: what is late by no more than
the slowest hundredth of the I/Os takes counts as sent in time. `io_submit_mode=offload` would not wait, adds
to every latency, and is not reliable with asynchronous engines (fio's HOWTO).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from diskbook.base.units import NS_PER_MS
from diskbook.tables import rate_windows
from diskbook.tools.fio.latency import index_value
from diskbook.tools.fio.log import Ints, Rows
from diskbook.tools.fio.log_latency import DIRECTIONS, bin_index
from diskbook.tools.record import Floats, Intended, Measurement, Series

LATE_MS = 2.0
"""What is sent less late than this was sent in time: the log's times are whole ms, and a system wakes up a
process up to about 1 ms late (wrk2's README says the same of itself)."""
HELD_BACK = 0.99
"""Part of a job's own latencies below which fio itself may have held back the next I/O for so long."""
_RESOLUTION_MS = 1.0
_BINS = 4096
_LAST_HALF = 0.5


@dataclass(frozen=True)
class _Stream:
    """I/Os of one job and direction, in the order sent; `waited_ms` is of those due that were never sent."""

    due_ms: Floats
    late_ms: Floats
    own_ms: Floats
    unsent_ms: Floats
    waited_ms: Floats


def with_schedule(measurement: Measurement, rows: Rows, series_s: float) -> Measurement:
    """Add latencies from the intended start, windows of the rate, and series.

    Only series where the log does not tell the jobs apart: the latencies then are lower bounds.
    """
    measurement = replace(measurement, series=series_of(rows, series_s))
    jobs = _jobs(rows, measurement.load.threads or 1)
    if jobs is None:
        return measurement
    codes = {name: code for code, name in DIRECTIONS.items()}
    streams = {
        name: [_stream(job, codes[name], rate, measurement.runtime_ms) for job in jobs]
        for name, rate in measurement.rates.items()
    }
    directions = {
        name: replace(part, intended=_intended(streams[name])) if _known(streams.get(name)) else part
        for name, part in measurement.directions.items()
    }
    worst, low_share = _windows(
        [item for parts in streams.values() for item in parts], measurement.runtime_ms
    )
    return replace(
        measurement, directions=directions, rate_window_worst=worst, rate_windows_low_share=low_share
    )


def series_of(rows: Rows, interval_s: float) -> dict[str, Series]:
    """Rates and mean latencies by interval, from single I/Os; an interval in which none ended has rate 0.

    A rest shorter than half an interval at the end is left out.
    """
    number = int(rows.time_ms.max(initial=0) / (1000 * interval_s) + _LAST_HALF)
    if number < 2:
        return {}
    place = (rows.time_ms / (1000 * interval_s)).astype(np.int64)
    second: Floats = np.arange(1.0, number + 1) * interval_s
    series = {}
    for code, name in DIRECTIONS.items():
        chosen = (rows.direction == code) & (place < number)
        if not chosen.any():
            continue
        count = np.bincount(place[chosen], minlength=number)
        total = np.bincount(place[chosen], rows.value[chosen].astype(np.float64), minlength=number)
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan) / NS_PER_MS
        series[name] = Series(second, count / interval_s, mean)
    return series


def _jobs(rows: Rows, threads: int) -> list[Rows] | None:
    """Lines of each job, which follow one another: time falls where the next begins. None if it does not."""
    cuts = np.flatnonzero(np.diff(rows.time_ms) < 0) + 1
    if len(cuts) != threads - 1:
        return None
    ends = [0, *cuts.tolist(), len(rows.time_ms)]
    return [Rows(*(column[start:end] for column in _columns(rows))) for start, end in pairwise(ends)]


def _columns(rows: Rows) -> tuple[Ints, Ints, Ints, Ints]:
    return rows.time_ms, rows.value, rows.direction, rows.size_bytes


def _stream(job: Rows, code: int, rate: float, runtime_ms: float) -> _Stream:
    """Hold the I/Os of a job and direction against their schedule."""
    chosen = job.direction == code
    own_ms: Floats = job.value[chosen].astype(np.float64) / NS_PER_MS
    all_sent_ms: Floats = job.time_ms[chosen].astype(np.float64) - own_ms
    order = np.argsort(all_sent_ms, kind="stable")
    # What was sent in the ramp and ended after it has no place in the schedule; in the last ms of the ramp
    # only the schedule tells: all I/Os after it seem to be a gap early.
    order = order[all_sent_ms[order] > -_RESOLUTION_MS]
    gap = 1000.0 / rate
    of_ramp = math.floor((-_began(all_sent_ms[order], gap) - _RESOLUTION_MS) / gap + 0.5)
    order = order[max(0, of_ramp) :]
    sent_ms, own_ms = all_sent_ms[order], own_ms[order]
    began = _began(sent_ms, gap)
    due_ms: Floats = began + gap * np.arange(float(len(sent_ms)))
    behind_ms = sent_ms - due_ms
    usual_ms = max(LATE_MS, float(np.quantile(own_ms, HELD_BACK)) if len(own_ms) else 0.0)
    late_ms: Floats = np.where(behind_ms < usual_ms, 0.0, behind_ms)
    ended = max(float(job.time_ms.max(initial=0)), runtime_ms)
    unsent_ms: Floats = np.arange(began + gap * len(sent_ms), runtime_ms, gap)
    waited_ms: Floats = ended - unsent_ms
    unsent = waited_ms > usual_ms
    return _Stream(due_ms, late_ms, own_ms, unsent_ms[unsent], waited_ms[unsent])


def _began(sent_ms: Floats, gap: float) -> float:
    """When the schedule began: the lower envelope of all I/Os, and not after the log's zero."""
    return float(min((sent_ms - gap * np.arange(len(sent_ms))).min(initial=0.0), 0.0))


def _known(streams: Sequence[_Stream] | None) -> bool:
    return bool(streams) and any(len(item.own_ms) for item in streams or ())


def _intended(streams: Sequence[_Stream]) -> Intended:
    """Latencies from the intended start, all jobs together.

    An I/O that was due and not sent before the end has waited at least until then, and counts with that.
    """
    parts = [part for item in streams for part in (item.own_ms + item.late_ms, item.waited_ms)]
    lat_ms = np.sort(np.concatenate(parts))
    # The rank that fio's own percentiles have.
    p50, p99, p999 = (lat_ms[max(1, math.ceil(q * len(lat_ms) - 1e-9)) - 1] for q in (0.5, 0.99, 0.999))
    counts = np.bincount(bin_index(np.rint(lat_ms * NS_PER_MS).astype(np.int64)), minlength=_BINS)
    bins = {index_value(int(index)): int(counts[index]) for index in np.flatnonzero(counts)}
    return Intended(float(lat_ms.mean()), float(p50), float(p99), float(p999), bins)


def _windows(streams: Sequence[_Stream], runtime_ms: float) -> tuple[float, float]:
    """Judge the windows of all jobs and directions together."""
    due = [part for item in streams for part in (item.due_ms, item.unsent_ms)]
    sent = [item.due_ms + item.late_ms for item in streams]
    if not due:
        return math.nan, math.nan
    return rate_windows.windows(np.concatenate(due) / 1000, np.concatenate(sent) / 1000, runtime_ms / 1000)
