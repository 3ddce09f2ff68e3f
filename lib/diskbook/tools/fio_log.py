"""fio's latency and IOPS logs (per_job_logs=0, log_avg_msec set), as one series a direction.

A line is end of the interval in ms since the ramp, value (ns or IOPS of one job), direction (0 read,
1 write), block size, and a fifth column that differs between versions::

    500, 2160107, 1, 4096, 0

The jobs' lines follow one another: time falls where the next job begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from diskbook.tools.fio_parse import NS_PER_MS, FioError

_DIRECTIONS = {0: "read", 1: "write"}
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """IOPS of all jobs and mean latency in ms, interval by interval; `second` is the end of each, from 0."""

    second: Floats
    iops: Floats
    lat_mean_ms: Floats


@dataclass(frozen=True)
class _Log:
    job: npt.NDArray[np.int64]
    interval: npt.NDArray[np.int64]
    value: Floats
    direction: npt.NDArray[np.int64]


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
    FioError
        When a line is not a log line.
    """
    lat = _read(lat_text, interval_s, f"{source}: latency log")
    iops = _read(iops_text, interval_s, f"{source}: IOPS log")
    if iops.interval.size == 0 or iops.interval.max() < 2:
        return {}  # with one interval a job, the jobs cannot be told apart
    found = {name: _series(lat, iops, code, interval_s) for code, name in _DIRECTIONS.items()}
    return {name: series for name, series in found.items() if series.second.size}


def _read(text: str, interval_s: float, source: str) -> _Log:
    """Parse the lines; of several entries of one job in one interval keep the first (the last is a rest)."""
    try:
        rows = [line.split(",", 3)[:3] for line in text.splitlines() if line.strip()]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    except ValueError:
        raise FioError(f"{source} has a line that is not 'time, value, direction, ...'") from None
    time_ms, value, direction = table[:, 0], table[:, 1], table[:, 2].astype(np.int64)
    interval = np.rint(time_ms / (interval_s * 1000)).astype(np.int64)
    job = np.cumsum(np.diff(interval, prepend=interval[:1]) < 0, dtype=np.int64)
    keys = np.column_stack([job, interval, direction])
    _, first = np.unique(keys, axis=0, return_index=True)
    keep = np.sort(first[interval[first] > 0])
    return _Log(job[keep], interval[keep], value[keep], direction[keep])


def _series(lat: _Log, iops: _Log, direction: int, interval_s: float) -> Series:
    lat_grid, iops_grid = _grid(lat, direction), _grid(iops, direction)
    jobs = max(len(lat_grid), len(iops_grid))
    intervals = max(lat_grid.shape[1], iops_grid.shape[1])
    lat_grid, iops_grid = _padded(lat_grid, jobs, intervals), _padded(iops_grid, jobs, intervals)
    total: Floats = np.nansum(iops_grid, axis=0)
    weight = np.where(np.isnan(lat_grid) | np.isnan(iops_grid), 0.0, iops_grid)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.nansum(lat_grid * weight, axis=0) / weight.sum(axis=0)
    seen = np.flatnonzero(~np.isnan(iops_grid).all(axis=0))
    second = (seen.astype(np.float64) + 1) * interval_s
    return Series(second, total[seen], mean[seen] / NS_PER_MS)


def _grid(log: _Log, direction: int) -> Floats:
    """Values by job and interval, NaN where there is none."""
    mine = log.direction == direction
    if not mine.any():
        return np.full((0, 0), np.nan)
    grid = np.full((log.job[mine].max() + 1, log.interval[mine].max()), np.nan)
    grid[log.job[mine], log.interval[mine] - 1] = log.value[mine]
    return grid


def _padded(grid: Floats, jobs: int, intervals: int) -> Floats:
    return np.pad(grid, ((0, jobs - grid.shape[0]), (0, intervals - grid.shape[1])), constant_values=np.nan)
