"""What fio said: its JSON and its logs, as numbers. Reads text, touches no file.

fio writes, possibly after lines such as ``fio: connected to NBD server``::

    { "fio version" : "fio-3.33", ..., "jobs" : [ { "jobname" : "trial", "error" : 0,
      "read" : { "total_ios" : 2250, "iops" : 898.9, "lat_ns" : { "mean" : 1129987.3, "N" : 2250,
      "bins" : { "1056768" : 1, "1089536" : 19 } } }, ... } ] }
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from diskbook.base.errors import DiskbookError
from diskbook.base.units import NS_PER_MS
from diskbook.tools.record import Direction, merge_bins, percentile_ns, pooled

__all__ = ["NS_PER_MS", "Direction", "FioError", "FioResult", "merge_bins", "parse", "percentile_ns"]

DIRECTIONS = ("read", "write", "sync")
# A trial that ran for less than this part of what was asked was interrupted; fio reports no error then.
_SHORTEST = 0.9
_GREATEST = 1e18


class FioError(DiskbookError):
    """fio did not measure what it was asked to: names the output, what is wrong, and fio's own message."""


@dataclass(frozen=True)
class FioResult:
    """One call of fio. `directions` holds those of read, write and sync in which something was done."""

    version: str
    options: tuple[dict[str, str], ...]
    runtime_ms: float
    directions: dict[str, Direction]

    @property
    def ios(self) -> int:
        """Reads and writes together."""
        return int(sum(part.ios for name, part in self.directions.items() if name != "sync"))


def parse(text: str, source: str, *, messages: str = "", runtime_s: float | None = None) -> FioResult:
    """Read fio's JSON output.

    Parameters
    ----------
    text
        What fio wrote on standard output.
    source
        Name of the output, for messages.
    messages
        What it wrote on standard error, quoted when something is wrong.
    runtime_s
        How long it was to measure; when given, a result that is much shorter is refused.

    Raises
    ------
    FioError
        No output, cut JSON, an error reported by fio, no I/O at all, or a trial cut short.
    """
    head, document = _document(text, source, messages)
    told = _complaint(f"{head}\n{messages}")
    jobs = _jobs(document, source)
    failed = next((job for job in jobs if job.get("error")), None)
    if failed:
        raise FioError(f"{source}: fio ended with error {failed['error']}{told}")
    try:
        directions = {name: part for name in DIRECTIONS if (part := _direction(jobs, name)).ios > 0}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FioError(f"{source}: fio's JSON has no usable {error}; is it output of fio 3?") from None
    if not all(_plausible(part) for part in directions.values()):
        raise FioError(f"{source}: fio's JSON has numbers that are none (infinite, negative, too large)")
    if not directions:
        raise FioError(f"{source}: fio did no I/O{told}")
    runtime_ms = max(part.runtime_ms for part in directions.values())
    if runtime_s is not None and runtime_ms < _SHORTEST * runtime_s * 1000:
        raise FioError(
            f"{source}: fio measured for {runtime_ms / 1000:g} s of {runtime_s:g} s; it was interrupted{told}"
        )
    options = tuple({**document.get("global options", {}), **job.get("job options", {})} for job in jobs)
    return FioResult(document["fio version"], options, runtime_ms, directions)


def _document(text: str, source: str, messages: str) -> tuple[str, dict[str, Any]]:
    """Split into what precedes the JSON and the JSON; of several (cumulative) the last."""
    start = _next_document(text, 0)
    told = _complaint(f"{text[:start]}\n{messages}" if start >= 0 else f"{text}\n{messages}")
    if start < 0:
        what = "no JSON in fio's output" if text.strip() else "fio wrote no output"
        raise FioError(f"{source}: {what}{told}")
    head, document = text[:start], None
    while start >= 0:
        try:
            document, end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", text.count("\n", 0, start) + 1)
            raise FioError(f"{source}: fio's JSON is cut or damaged at line {line}{told}") from None
        start = _next_document(text, end)
    if not isinstance(document, dict) or not str(document.get("fio version", "")).startswith("fio-"):
        raise FioError(f"{source}: this is JSON, but not of fio")
    return head, document


def _next_document(text: str, position: int) -> int:
    """Where the next line that starts with a brace begins, or -1."""
    if text.startswith("{", position):
        return position
    found = text.find("\n{", position)
    return found + 1 if found >= 0 else -1


def _jobs(document: dict[str, Any], source: str) -> list[dict[str, Any]]:
    if document["fio version"].startswith(("fio-1", "fio-2")):
        raise FioError(
            f"{source}: written by {document['fio version']}, whose units differ; use fio 3 or later"
        )
    jobs = document.get("jobs")
    if not isinstance(jobs, list) or not jobs:
        raise FioError(f"{source}: fio's JSON lists no jobs; output of fio's client mode is not supported")
    return jobs


def _complaint(text: str) -> str:
    """fio's own words about what went wrong, to be put after a message."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("fio:") and "connected to" not in line]
    telling = [line for line in lines if line.startswith("verify:")] + own
    return f"; fio says: {telling[0][:300]}" if telling else ""


def _direction(jobs: list[dict[str, Any]], name: str) -> Direction:
    parts = [job[name] for job in jobs if name in job]
    samples = [int(part["lat_ns"]["N"]) for part in parts]
    # With libaio fio counts syncs only among the latencies; elsewhere the latencies may be off (gtod_reduce).
    ios = sum(samples) if name == "sync" else sum(int(part["total_ios"]) for part in parts)
    runtime_ms = _runtime_ms(jobs, parts, name)
    bins = merge_bins([_bins(part["lat_ns"]) for part in parts])
    p50, p99, p999 = percentile_ns(bins, 0.5, 0.99, 0.999)
    latencies = [part["lat_ns"] for part in parts]
    mean, stddev = pooled([lat["mean"] for lat in latencies], [lat["stddev"] for lat in latencies], samples)
    active = [part["lat_ns"] for part, n in zip(parts, samples, strict=True) if n]
    return Direction(
        ios=ios,
        iops=_rate(parts, "iops") if name != "sync" else _per_second(ios, runtime_ms),
        bw_bytes=_rate(parts, "bw_bytes"),
        runtime_ms=runtime_ms,
        lat_mean_ms=mean / NS_PER_MS,
        lat_stddev_ms=stddev / NS_PER_MS,
        lat_min_ms=min((lat["min"] for lat in active), default=math.nan) / NS_PER_MS,
        lat_max_ms=max((lat["max"] for lat in active), default=math.nan) / NS_PER_MS,
        lat_p50_ms=p50 / NS_PER_MS,
        lat_p99_ms=p99 / NS_PER_MS,
        lat_p999_ms=p999 / NS_PER_MS,
        bins=bins,
    )


def _plausible(part: Direction) -> bool:
    """Whether every number is finite and not negative, or missing (NaN)."""
    numbers = [value for value in vars(part).values() if isinstance(value, int | float)]
    return all(
        0 <= value < _GREATEST or (isinstance(value, float) and math.isnan(value)) for value in numbers
    )


def _bins(latency: dict[str, Any]) -> dict[int, int]:
    return {int(value): count for value, count in latency.get("bins", {}).items()}


def _rate(parts: list[dict[str, Any]], key: str) -> float:
    return float(sum(part.get(key, 0) for part in parts))


def _per_second(ios: int, runtime_ms: float) -> float:
    return ios / runtime_ms * 1000 if runtime_ms else math.nan


def _runtime_ms(jobs: list[dict[str, Any]], parts: list[dict[str, Any]], name: str) -> float:
    """Longest time of any job. Syncs have none of their own: they ran as long as the writes."""
    if name == "sync":
        return float(max((job.get("write", {}).get("runtime", 0) for job in jobs), default=0))
    return float(max((part["runtime"] for part in parts), default=0))
