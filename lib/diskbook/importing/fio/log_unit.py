"""Unit of the latencies in fio's logs: nanoseconds since fio 3, microseconds before; no line says which.

It is told by the version of the files next to the logs, else by what the job itself says of its latency,
else by what is possible: no latency is longer than the job, and IOPS x latency (Little's law) is the number
of I/Os in flight, at most what threads and depth make room for and not much less where a job does not
pause. A wrong unit is out by 1,000.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from diskbook.facts.units import NS_PER_MS, NS_PER_US
from diskbook.importing.fio import logs_of_a_job
from diskbook.importing.fio.logs_of_a_job import JobLogs, LogFile
from diskbook.tools.record import Direction, Measurement, UnusableError

NS = 1
_BUSY = 0.5
"""Part of the I/Os in flight that a job without pauses has at least, as `IOPS x latency`."""
_DEPTHS = tuple(2**power for power in range(11))
_NEAR = (0.93, 1.02)
"""Of a depth that was asked for: what `IOPS x latency` makes of it in a job that does not pause."""
_SHORT_US, _QUICK_US = 10.0, 100.0
"""No disk answers in less than the first; hardly any over a network in less than the second."""
_LONG_S, _DEEPEST = 1.0, 2048
"""Mean latency that only a deep queue before a slow disk makes, and more than a thread has in flight."""
_APART = math.sqrt(1000)
CANNOT_TELL = (
    "whether its latencies are nanoseconds (fio 3) or microseconds (fio 2) cannot be determined: put the "
    "job's JSON or text output beside it"
)


def of_versions(units: Iterable[int | None]) -> int | None:
    """Unit that all results beside a log agree on, in ns; None where they do not, or there are none."""
    known = {unit for unit in units if unit is not None}
    return known.pop() if len(known) == 1 else None


def of_a_result(measurement: Measurement, logs: JobLogs) -> int | None:
    """Unit that makes logs, read as ns, agree with the mean latency of the job's result; None without one."""
    own, logged = _mean_ms(measurement.directions), _logged_ms(logs)
    if not (own > 0 and logged > 0):
        return None
    return NS_PER_US if own > _APART * logged else NS


def by_littles_law(logs: JobLogs, clones: int) -> tuple[int, str] | None:
    """Unit by what is possible, and a sentence that says so; None where it cannot be determined.

    The logs are read as nanoseconds, from a file for each of the clones.
    """
    latency_ms = _logged_ms(logs)
    if not latency_ms > 0:
        return NS, ""
    as_ns = _iops(logs) * latency_ms / 1000 / clones
    as_us, us = 1000 * as_ns, latency_ms * NS_PER_MS / NS_PER_US
    seconds = latency_ms  # of the same number as microseconds
    if as_ns >= _BUSY or as_us > _DEEPEST:
        return NS, _sentence("nanoseconds (fio 3)", as_ns, "microseconds", as_us)
    at_a_depth = any(_NEAR[0] <= as_us / depth <= _NEAR[1] for depth in _DEPTHS)
    if seconds > _runtime_s(logs) or (seconds > _LONG_S and not at_a_depth):
        return (
            NS,
            f"latencies are taken for nanoseconds (fio 3): as microseconds they would be {seconds:,.2g} s",
        )
    if as_us >= _BUSY and (us < _SHORT_US or (us < _QUICK_US and at_a_depth)):
        return NS_PER_US, _sentence("microseconds (fio 2)", as_us, "nanoseconds", as_ns)
    return None


def read(
    logs: Mapping[str, Sequence[LogFile]],
    unit_ns: int | None,
    result: Measurement | None,
    *,
    interval_s: float | None = None,
    block_size: int | None = None,
) -> tuple[JobLogs, int]:
    """Read the logs of one job as `logs_of_a_job.read` does, in their unit, which is returned in ns.

    The unit is None where no version of what lies beside them tells it, the result where there is none.
    Raises UnusableError when they cannot be read, or their unit cannot be determined.
    """

    def logged(unit: int) -> JobLogs:
        old = unit == NS_PER_US
        return logs_of_a_job.read(logs, old=old, interval_s=interval_s, block_size=block_size)

    as_ns = logged(unit_ns or NS)
    latency = logs.get("lat") or logs.get("clat")
    if unit_ns is not None or not latency:
        return as_ns, unit_ns or NS
    by_result = of_a_result(result, as_ns) if result else None
    decided = (by_result, "") if by_result else by_littles_law(as_ns, len(latency))
    if decided is None:
        raise UnusableError(latency[0].name, CANNOT_TELL)
    unit, flag = decided
    right = as_ns if unit == NS else logged(unit)
    return (replace(right, flags=(*right.flags, flag)) if flag else right), unit


def _sentence(unit: str, in_flight: float, other: str, otherwise: float) -> str:
    return (
        f"latencies are taken for {unit}: IOPS x latency are {in_flight:.3g} I/Os in flight a thread then, "
        f"and {otherwise:.3g} as {other}"
    )


def _runtime_s(logs: JobLogs) -> float:
    directions = max((part.runtime_ms / 1000 for part in logs.directions.values()), default=0.0)
    series = max((float(part.second[-1]) for part in logs.series.values() if len(part.second)), default=0.0)
    return max(directions, series)


def _logged_ms(logs: JobLogs) -> float:
    """Mean latency of the logs, reads and writes together; NaN where none was logged."""
    if logs.directions:
        return _mean_ms(logs.directions)
    weights = [float((part.iops[part.iops > 0]).sum()) for part in logs.series.values()]
    sums = []
    for part in logs.series.values():
        known = (part.iops > 0) & ~(part.lat_mean_ms != part.lat_mean_ms)
        sums.append(float((part.iops * part.lat_mean_ms)[known].sum()))
    return sum(sums) / sum(weights) if sum(weights) else math.nan


def _mean_ms(directions: Mapping[str, Direction]) -> float:
    parts = [part for name, part in directions.items() if name != "sync" and not math.isnan(part.lat_mean_ms)]
    ios = sum(part.ios for part in parts)
    return sum(part.ios * part.lat_mean_ms for part in parts) / ios if ios else math.nan


def _iops(logs: JobLogs) -> float:
    if logs.directions:
        return sum(part.iops for part in logs.directions.values())
    return sum(float(part.iops.mean()) for part in logs.series.values() if len(part.iops))
