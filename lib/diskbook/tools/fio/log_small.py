"""fio's latency and IOPS logs (per_job_logs=0, log_avg_msec set), as one series a direction.

A line is end of the interval in ms since the ramp, value (ns or IOPS of one job), direction (0 read,
1 write), block size, and a fifth column that differs between versions::

    500, 2160107, 1, 4096, 0

The jobs' lines follow one another: time falls where the next job begins.
"""

from __future__ import annotations

import math

import numpy as np

from diskbook.base.units import NS_PER_MS
from diskbook.tools.record import Series, UnusableError

__all__ = ["Series", "parse_logs"]

_DIRECTIONS = {0: "read", 1: "write"}


_Values = dict[int, dict[tuple[int, int], float]]
"""Direction -> (interval, job) -> value."""


def parse_logs(lat_text: str, iops_text: str, interval_s: float, source: str) -> dict[str, Series]:
    """Read a trial's latency and IOPS logs.

    Latency is the mean over jobs, weighted by each job's IOPS in that interval. A rest shorter than half an
    interval at the end is left out.

    Parameters
    ----------
    lat_text, iops_text
        The two logs.
    interval_s
        log_avg_msec / 1000.
    source
        Name of the trial's output, for messages.

    Returns
    -------
    dict
        Series by direction (read, write); empty for a trial shorter than two intervals.

    Raises
    ------
    UnusableError
        When a line is not a log line.
    """
    lat = _read(lat_text, interval_s, source, "latency log")
    iops = _read(iops_text, interval_s, source, "IOPS log")
    if max((interval for part in iops.values() for interval, _ in part), default=0) < 2:
        return {}  # with one interval a job, the jobs cannot be told apart
    return {
        name: _series(lat.get(code, {}), iops[code], interval_s)
        for code, name in _DIRECTIONS.items()
        if code in iops
    }


def _read(text: str, interval_s: float, source: str, log: str) -> _Values:
    """Sort the lines by direction, interval and job.

    Of several entries of a job in an interval the first counts: another one is a rest at the end.
    """
    values: _Values = {}
    job = last = 0
    try:
        for line in text.splitlines():
            time_ms, value, direction, *_ = line.split(",", 3)
            interval = round(float(time_ms) / (interval_s * 1000))
            job += interval < last
            last = interval
            if interval:
                values.setdefault(int(direction), {}).setdefault((interval, job), float(value))
    except (ValueError, OverflowError):
        raise UnusableError(source, f"{log} has a line that is not 'time, value, direction, ...'") from None
    return values


def _series(
    lat: dict[tuple[int, int], float], iops: dict[tuple[int, int], float], interval_s: float
) -> Series:
    total: dict[int, float] = {}
    weighted: dict[int, float] = {}
    weight: dict[int, float] = {}
    for (interval, job), rate in iops.items():
        total[interval] = total.get(interval, 0.0) + rate
        if (interval, job) in lat:
            weight[interval] = weight.get(interval, 0.0) + rate
            weighted[interval] = weighted.get(interval, 0.0) + rate * lat[interval, job]
    order = sorted(total)
    mean = [weighted[k] / weight[k] / NS_PER_MS if weight.get(k) else math.nan for k in order]
    return Series(np.array(order) * interval_s, np.array([total[k] for k in order]), np.array(mean))
