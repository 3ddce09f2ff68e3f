"""Strict reader of what fio left of a trial of a live run: one call, whole, without an error. No I/O here.

Numbers are read as everywhere (`json_output`, `log`); here is what is refused, with fio's own message.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from diskbook.tools.fio import held_rate, json_output, log
from diskbook.tools.fio.documents import Document, documents
from diskbook.tools.record import SHORTEST, Measurement, Series, UnusableError, failed_with

_NEEDED = {"read": ("total_ios", "runtime", "iops"), "write": ("total_ios", "runtime", "iops"), "sync": ()}
_NEEDED_OF_LATENCY = ("N", "mean", "stddev", "min", "max")
_NO_IO_URING = re.compile(r"io_uring.*error=(?P<why>[^\n]+)|engine io_uring not (?P<lacking>loadable)")
_LINE_WITH_BRACE = re.compile(r"^\{", re.MULTILINE)


def parse_output(
    text: str, source: str, *, messages: str = "", runtime_s: float | None = None
) -> Measurement:
    """Read fio's JSON output of one call, all its jobs together.

    - `text`: what fio wrote on standard output; of several documents (status-interval) the last counts.
    - `source`: name of the output, for messages.
    - `messages`: what it wrote on standard error, quoted when something is wrong.
    - `runtime_s`: how long it was to measure; when given, a result that is much shorter is refused.

    Raises UnusableError: no output, cut JSON, an error reported by fio, no I/O at all, or a trial cut short.
    """
    start = _LINE_WITH_BRACE.search(text)
    complaint = _complaint(f"{text[: start.start()] if start else text}\n{messages}")
    try:
        document = _document(text)
        _check(document.content)
        measurement = json_output.joined(document)
        if runtime_s is not None and measurement.runtime_ms < SHORTEST * runtime_s * 1000:
            measured_s = measurement.runtime_ms / 1000
            raise ValueError(f"fio measured for {measured_s:g} s of {runtime_s:g} s; it was interrupted")
    except ValueError as error:
        raise UnusableError(source, str(error), cause=complaint) from None
    return replace(measurement, version=document.content["fio version"])


def parse_logs(lat_text: str, iops_text: str, interval_s: float, source: str) -> dict[str, Series]:
    """Read the latency and IOPS logs of a trial (per_job_logs=0, log_avg_msec set) as series.

    - `lat_text`, `iops_text`: the two logs; empty where fio left none.
    - `interval_s`: log_avg_msec / 1000.
    - `source`: name of the trial's output, for messages.

    Returns see `log.series_of`.

    Raises UnusableError when a line is not a log line, or cut short.
    """
    latency, iops = _rows(lat_text, source, "latency log"), _rows(iops_text, source, "IOPS log")
    return log.series_of(latency, iops, interval_s)


def add_log(measurement: Measurement, lat_text: str, interval_s: float, source: str) -> Measurement:
    """Add what the log of every I/O of a held rate says: series, and latencies from the intended start.

    - `measurement`: of the same call.
    - `lat_text`: the log of latencies (per_job_logs=0, log_avg_msec=0); empty where fio left none.
    - `interval_s`: of the series.
    - `source`: name of the trial's output, for messages.

    Raises UnusableError when a line is not a log line, or cut short.
    """
    rows = _rows(lat_text, source, "latency log")
    if not len(rows.time_ms) or rows.averaged:
        return measurement
    return held_rate.with_schedule(measurement, rows, interval_s)


def _rows(text: str, source: str, name: str) -> log.Rows:
    if not text.strip():
        return log.no_rows()
    try:
        rows, flags = log.read_rows(text.encode(), name)
        place = "" if not flags else "at its end"
    except UnusableError as error:
        rows, place = log.no_rows(), f"in line {error.line}" if error.line else "somewhere"
    if place:
        reason = f"{name} has a line that is not 'time, value, direction, ...' ({place})"
        raise UnusableError(source, reason)
    return rows


def _document(text: str) -> Document:
    """Return the last document; ValueError when there is none, or one is damaged."""
    try:
        return documents(text, "fio", all_whole=True)[-1]
    except UnusableError as error:
        raise ValueError(_damage(error.line) if error.line else _without_document(text)) from None


def _damage(line: int) -> str:
    return f"fio's JSON is cut or damaged at line {line}"


def _without_document(text: str) -> str:
    """Say what there is instead of fio's JSON."""
    start = _LINE_WITH_BRACE.search(text)
    if not start:
        return "no JSON in fio's output" if text.strip() else "fio wrote no output"
    try:
        json.JSONDecoder().raw_decode(text, start.start())
    except (ValueError, RecursionError) as error:
        return _damage(getattr(error, "lineno", text.count("\n", 0, start.start()) + 1))
    return "this is JSON, but not of fio"


def _check(content: Mapping[str, Any]) -> None:
    """Refuse, by a ValueError, what an import may use and a trial may not."""
    version = str(content["fio version"])
    if not version.startswith("fio-"):
        raise ValueError("this is JSON, but not of fio")
    if version.startswith(("fio-1", "fio-2")):
        raise ValueError(f"written by {version}, whose units differ; use fio 3 or later")
    jobs = content.get("jobs")
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, Mapping) for job in jobs):
        raise ValueError("fio's JSON lists no jobs; output of fio's client mode is not supported")
    errors = [job["error"] for job in jobs if job.get("error")]
    if errors:
        raise ValueError(f"fio ended with error {errors[0]}")
    for missing in (_missing(job[name], name) for job in jobs for name in _NEEDED if name in job):
        if missing:
            raise ValueError(f"fio's JSON has no usable '{missing}'; is it output of fio 3?")


def _missing(part: object, name: str) -> str | None:
    """Name the first number that a direction (read, write, sync) of a job lacks; None when all are there."""
    if not isinstance(part, Mapping):
        return name
    latency = part.get("lat_ns")
    if not isinstance(latency, Mapping):
        return "lat_ns"
    lacking = [key for key in _NEEDED[name] if key not in part]
    return next(iter([*lacking, *(key for key in _NEEDED_OF_LATENCY if key not in latency)]), None)


def _complaint(text: str) -> str:
    """What went wrong in fio's own words; empty where it told nothing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("fio:") and "connected to" not in line]
    telling = [line for line in lines if line.startswith("verify:")] + own
    refused = next((match for line in own if (match := _NO_IO_URING.search(line))), None)
    if refused:
        why = "this fio was built without it" if refused["lacking"] else refused["why"].strip()
        remedy = 'set ioengine = "libaio", or allow it (sysctl kernel.io_uring_disabled=0, or the container)'
        return f"the machine does not let fio use io_uring ({why[:100]}): {remedy}"
    return failed_with("fio", telling[0]) if telling else ""
