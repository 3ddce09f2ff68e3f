"""Series of fio's averaged logs: IOPS of all jobs and their mean latency by interval. Compute only, no I/O.

The jobs' lines follow one another: time falls where the next job begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diskbook.facts.units import NS_PER_MS
from diskbook.tools.fio.log import Ints, Rows
from diskbook.tools.record import Floats, Series

_DIRECTIONS = {0: "read", 1: "write"}
_CODES = 4  # of directions, that a line may have


@dataclass(frozen=True)
class _Averages:
    """What each job averaged in each interval, in the order of the log."""

    interval: Ints
    job: Ints
    direction: Ints
    value: Floats

    def at(self, index: np.ndarray) -> _Averages:
        return _Averages(self.interval[index], self.job[index], self.direction[index], self.value[index])


def series_of(latency: Rows, iops: Rows, interval_s: float, unit_iops: float = 1.0) -> dict[str, Series]:
    """Add the jobs of averaged logs up, interval by interval.

    Latency is the mean over jobs, weighted by each job's IOPS in that interval. A rest shorter than half an
    interval at the end is left out.

    Parameters
    ----------
    latency, iops
        The two logs; that of the latency may be empty.
    interval_s
        log_avg_msec / 1000.
    unit_iops
        IOPS that a value of the second log stands for, where it is one of bandwidth.

    Returns
    -------
    dict
        Series by direction (read, write); empty for a trial shorter than two intervals.
    """
    rates, means = _averages(iops, interval_s, unit_iops), _averages(latency, interval_s, 1.0)
    if rates.interval.max(initial=0) < 2:
        return {}  # with one interval a job, the jobs cannot be told apart
    return {
        name: _series(rates.at(rates.direction == code), means.at(means.direction == code), interval_s)
        for code, name in _DIRECTIONS.items()
        if code in rates.direction
    }


def _averages(rows: Rows, interval_s: float, unit: float) -> _Averages:
    """Sort the lines by interval and job.

    Of several entries of a job in an interval the first counts: another one is a rest at the end.
    """
    ended = rows.time_ms / (interval_s * 1000)
    job = np.cumsum(np.diff(ended, prepend=0) < -0.5, dtype=np.int64)
    interval = np.rint(ended - _late(ended, job)).astype(np.int64)
    averages = _Averages(interval, job, rows.direction, np.asarray(rows.value * unit, np.float64))
    _, first = np.unique(_keys(interval, job) * _CODES + rows.direction, return_index=True)
    first = np.sort(first)
    return averages.at(first[interval[first] > 0])


def _late(ended: Floats, job: Ints) -> Floats:
    """By how much of an interval the lines of each job come late, from -0.25 to 0.75 (circular mean).

    A job that began half an interval late would else have intervals with two of its lines, and with none.
    """
    turn = np.exp(2j * np.pi * ended)
    of_job = np.bincount(job, turn.real) + 1j * np.bincount(job, turn.imag)
    late: Floats = (np.angle(of_job) / (2 * np.pi) + 0.25) % 1.0 - 0.25
    return late[job]


def _keys(interval: Ints, job: Ints) -> Ints:
    """Number for each pair of interval and job, small enough for any log."""
    _, place = np.unique(interval, return_inverse=True)
    return np.asarray(place * (job.max(initial=0) + 1) + job, np.int64)


def _series(rates: _Averages, means: _Averages, interval_s: float) -> Series:
    intervals, place = np.unique(rates.interval, return_inverse=True)
    latency_ns = _latency_of(rates, means)
    known = ~np.isnan(latency_ns)
    at, n = place[known], len(intervals)
    weight = np.bincount(at, rates.value[known], minlength=n)
    weighted = np.bincount(at, rates.value[known] * latency_ns[known], minlength=n)
    with np.errstate(all="ignore"):
        mean = weighted / np.where(weight > 0, weight, np.nan) / NS_PER_MS
    total = np.bincount(place, rates.value, minlength=n)
    return Series(np.asarray(intervals * interval_s, np.float64), np.asarray(total, np.float64), mean)


def _latency_of(rates: _Averages, means: _Averages) -> Floats:
    """Mean latency, in ns, of the interval and job of each rate; NaN where none was logged."""
    latency_ns = np.full(len(rates.value), np.nan)
    keys = _keys(np.append(rates.interval, means.interval), np.append(rates.job, means.job))
    of_rates, of_means = np.split(keys, [len(rates.value)])
    _, here, there = np.intersect1d(of_rates, of_means, assume_unique=True, return_indices=True)
    latency_ns[here] = means.value[there]
    return latency_ns
