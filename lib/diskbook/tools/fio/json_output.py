"""Reader of fio's JSON and json+, versions 2 to 3.4x, as measurements. Reads text, touches no file.

fio writes, possibly after lines such as ``fio: connected to NBD server``::

    { "fio version" : "fio-3.33", ..., "jobs" : [ { "jobname" : "trial", "error" : 0,
      "read" : { "total_ios" : 2250, "iops" : 898.9, "lat_ns" : { "mean" : 1129987.3, "N" : 2250,
      "bins" : { "1056768" : 1, "1089536" : 19 } } }, ... } ] }

What an import meets besides is in `importing.fio.json_files`; the rules that a trial of a live run must
keep are in `trial`.

Jobs may be summed up as one (group_reporting). That entry has name and options of one of them alone.

The option itself is often not repeated (fio 3.33 leaves out options without a value), so what was done is
compared with what was asked for. Compute only, no I/O.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from diskbook.facts.units import utc_text
from diskbook.tools.fio import latency, latency as fio_latency, options as fio_options
from diskbook.tools.fio.documents import Document
from diskbook.tools.record import CACHED, SHORTEST, Direction, Load, Measurement, number

_STRAY = 0.01
"""Part of all I/Os that another direction must have."""
_OTHER_SIZE = 0.25
"""By how much bytes an I/O must differ from the block size; after a ramp they may by a tenth."""
_MORE = 1.3
_WHOLE = 0.1
_MOST_THREADS = 64
"""More are no sum of jobs but a latency of another unit."""
_NOT_TOLD = "other jobs were summed with it (group_reporting), and what each of them did is not told"


def check_groups(options: Mapping[str, Any], load: Load, directions: Mapping[str, Direction]) -> None:
    """Refuse a sum of unlike jobs.

    - `load`: what they ask for.
    - `directions`: what was done.

    Raises ValueError when something else was done; says what.
    """
    if not options:
        return
    reads_back = _reads_back(options)
    parts = {name: part for name, part in directions.items() if name in ("read", "write")}
    total = sum(part.ios for part in parts.values())
    asked = {0: "read", 100: "write"}.get(-1 if load.write_pct is None else load.write_pct)
    for name, part in parts.items():
        of_a_check = reads_back and name == "read" and load.write_pct == 100
        if asked and name != asked and part.ios > _STRAY * total and not of_a_check:
            raise ValueError(
                f"its options ask for {asked}s and {part.ios:,} {name}s are counted: {_NOT_TOLD}"
            )
        size = part.bw_bytes * part.runtime_ms / 1000 / part.ios if part.ios else math.nan
        block = load.block_size_bytes
        if block and abs(size / block - 1) > _OTHER_SIZE and not _in_flight(load, size / block, part.ios):
            raise ValueError(f"{name}s of {block:,} bytes were asked for, {size:,.0f} done: {_NOT_TOLD}")


def _reads_back(options: Mapping[str, Any]) -> bool:
    """Whether fio reads back what it wrote: by the value of `verify`, which may be 0, none or empty."""
    kind, done = (
        str(options.get(name, other)).strip() for name, other in (("verify", "0"), ("do_verify", "1"))
    )
    return kind.lower() not in ("", "0", "none") and done != "0"


def _in_flight(load: Load, size: float, ios: float) -> bool:
    """Whether more bytes than I/Os are explained by those in flight at the end of a ramp.

    fio counts them among the bytes, not among the I/Os (see `record.Direction`); `size` is in blocks.
    """
    return 0 < (size - 1) * ios <= 1.05 * (load.threads or 1) * (load.queue_depth or 1)


def with_others(load: Load, directions: Mapping[str, Direction], flags: list[str]) -> Load:
    """Count the threads of jobs that are summed with the one that is named, where all are busy.

    By Little's law no more can be in flight than the threads make room for.
    """
    in_flight = sum(
        part.iops * part.lat_mean_ms / 1000 for name, part in directions.items() if name != "sync"
    )
    depth = load.queue_depth
    asked = (load.threads or 1) * (depth or 1)
    if depth is None or not in_flight > _MORE * asked:
        return load
    more = f"{in_flight:,.0f} I/Os were in flight (IOPS x latency) where its options make {asked:,}"
    threads = round(in_flight / depth)
    if abs(in_flight / depth / threads - 1) > _WHOLE or threads > _MOST_THREADS:
        flags.append(f"{more}: other jobs may be summed with it (group_reporting)")
        return load
    flags.append(f"{more}: {threads} threads are taken for summed as one (group_reporting)")
    return replace(load, threads=threads)


def lacking(entries: int, options: Mapping[str, Any], load: Load, directions: Mapping[str, Direction]) -> str:
    """Say that clones of a job are missing; empty where all are there, or nothing shows that one is not.

    - `entries`: entries of the file that are clones of this job.
    - `options`, `load`, `directions`: what they ask for, and what was done.
    """
    clones, depth = load.threads or 1, load.queue_depth
    if entries > 1:
        few = "group_reporting" not in options and entries < clones
        return f"some clones are missing: {entries} of {clones} are in the file" if few else ""
    if clones < _MORE or not depth or load.rate is not None:
        return ""
    in_flight = sum(
        part.iops * part.lat_mean_ms / 1000 for name, part in directions.items() if name != "sync"
    )
    if abs(in_flight / depth - 1) > _WHOLE:
        return ""
    return f"some clones are missing: as many I/Os were in flight as 1 of {clones} clones has"


_LOGS = ("write_lat_log", "write_iops_log", "write_bw_log", "write_hist_log")
_ALL_CLIENTS = "All clients"
# What fio prints after the latencies of a direction; without it the direction was cut.
_LAST_KEY = "bw_min"
_EPOCH_S = 4_000_000_000


@dataclass(frozen=True)
class Job:
    """Entries of the output that are one job: clones, or one entry."""

    name: str
    host: str
    options: dict[str, Any]
    entries: list[Mapping[str, Any]]
    group: str


def joined(document: Document) -> Measurement:
    """Measure all jobs of a document as one: those of a live run began together and ended together.

    Raises ValueError when it cannot be used; says why.
    """
    return measurement_of(_together(document), document)


def _together(document: Document) -> Job:
    """All entries of a document as one job, with the name and the options of the first."""
    first = jobs_of(document)[0]
    return Job(first.name, first.host, first.options, entries_of(document), first.group)


def printed_s(document: Document) -> float:
    """When fio printed a document, in seconds since 1970; 0 where that is not told."""
    return number_or_0(document.content.get("timestamp"))


def number_or_0(value: object) -> float:
    """Take a number that only serves for orientation; 0 when it is none."""
    try:
        return number(value)
    except ValueError:
        return 0.0


def entries_of(document: Document) -> list[Mapping[str, Any]]:
    """Jobs; of client/server mode those of the clients, without their sum."""
    jobs = document.content.get("jobs") or document.content.get("client_stats") or []
    items = [item for item in jobs if isinstance(item, Mapping)] if isinstance(jobs, list) else []
    single = [item for item in items if item.get("jobname") != _ALL_CLIENTS]
    return single or items


def jobs_of(document: Document) -> list[Job]:
    """Put clones together: entries of one name, group and host."""
    shared = document.content.get("global options")
    shared = dict(shared) if isinstance(shared, Mapping) else {}
    jobs: dict[tuple[str, str, str], Job] = {}
    for entry in entries_of(document):
        own = entry.get("job options")
        options = {**shared, **(own if isinstance(own, Mapping) else {})}
        name, host = str(entry.get("jobname", ""))[:200], str(entry.get("hostname", ""))[:200]
        key = (name, str(entry.get("groupid", 0)), host)
        if key in jobs and jobs[key].options == options:
            jobs[key].entries.append(entry)
        else:
            serial = key if key not in jobs else (name, f"{key[1]}/{len(jobs)}", host)
            jobs[serial] = Job(name, host, options, [entry], key[1])
    return list(jobs.values())


def measurement_of(job: Job, document: Document) -> Measurement:
    """Read a job; ValueError says why it cannot be used."""
    flags: list[str] = []
    _check_whole(job, document.cut)
    directions = _directions(job.entries, document.cut, flags)
    load = _load(job, directions, flags)
    writes, engine = [_part(entry, "write") for entry in job.entries], str(job.options.get("ioengine", ""))
    directions = latency.taken_alone(directions, writes, load, engine, flags)
    if job.options and fio_options.cached(job.options):
        flags.append(CACHED)
    if str(job.options.get("log_max_value", "0")) not in ("0", "false"):
        flags.append("latencies of its logs are the largest of each interval (log_max_value), not means")
    runtime_s = max(part.runtime_ms for part in directions.values()) / 1000
    if load.runtime_s and runtime_s < SHORTEST * load.runtime_s:
        flags.append(f"measured for {runtime_s:g} s of {load.runtime_s:g} s")
    return Measurement(
        name=job.name,
        target=fio_options.target(job.options),
        load=load,
        directions=directions,
        started_utc=_started(job, document),
        flags=tuple(dict.fromkeys(flags)),
        host=job.host,
        logs={name: str(job.options[name])[:400] for name in _LOGS if job.options.get(name)},
        log_interval_s=_log_interval_s(job.options),
        usr_pct=_mean_pct(job.entries, "usr_cpu"),
        sys_pct=_mean_pct(job.entries, "sys_cpu"),
        rates=fio_options.rates(job.options, load),
        options={str(name)[:40]: str(value)[:100] for name, value in job.options.items()},
    )


def _load(job: Job, directions: Mapping[str, Direction], flags: list[str]) -> Load:
    """What was asked for; ValueError where its entry sums unlike jobs up."""
    load = fio_options.load(job.options, len(job.entries), _alone_pct(job.entries), flags)
    if words := lacking(len(job.entries), job.options, load, directions):
        flags.append(words)
    if len(job.entries) > 1:
        return load
    check_groups(job.options, load, directions)
    return with_others(load, directions, flags)


def _mean_pct(entries: list[Mapping[str, Any]], name: str) -> float:
    """Mean over a job's entries of a share of time that fio reports; NaN where one of them has none."""
    try:
        shares = [number(entry.get(name), name) for entry in entries]
    except ValueError:
        return math.nan
    return sum(shares) / len(shares) if shares else math.nan


def _directions(entries: list[Mapping[str, Any]], cut: bool, flags: list[str]) -> dict[str, Direction]:
    directions = {
        name: part
        for name in ("read", "write", "sync")
        if (part := _direction(entries, name, cut, flags)) is not None
    }
    if not directions.keys() & {"read", "write"}:
        raise ValueError("the file is cut within it" if cut else _without_io(entries))
    if any(number_or_0(_part(entry, "trim").get("total_ios")) for entry in entries):
        flags.append("trims are left out")
    return directions


def _check_whole(job: Job, cut: bool) -> None:
    """Refuse a job that failed, and some clones of a file that was cut: their sum would pass for a total."""
    failed = [entry.get("error") for entry in job.entries if entry.get("error")]
    if failed:
        raise ValueError(f"fio ended it with error {failed[0]}{_error_words(failed[0])}")
    clones = fio_options.whole(job.options, "numjobs", 1) or 1
    if cut and "group_reporting" not in job.options and len(job.entries) < clones:
        raise ValueError(f"the file is cut, and holds {len(job.entries)} of its {clones} clones")


def _without_io(entries: list[Mapping[str, Any]]) -> str:
    """Say why a job has neither reads nor writes."""
    if any(number_or_0(_part(entry, "mixed").get("total_ios")) for entry in entries):
        return "reads and writes are reported as one (unified_rw_reporting) and cannot be distinguished"
    trims = any(number_or_0(_part(entry, "trim").get("total_ios")) for entry in entries)
    return "it only trims, which is not read" if trims else "fio did no I/O"


def _error_words(error: object) -> str:
    return f" ({os.strerror(error)})" if isinstance(error, int) and 0 < error < 200 else ""


def _log_interval_s(options: Mapping[str, Any]) -> float | None:
    interval_ms = fio_options.whole(options, "log_avg_msec", None, 10**9)
    return interval_ms / 1000 if interval_ms else None


def _part(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = entry.get(name)
    return part if isinstance(part, Mapping) else {}


def _direction(entries: list[Mapping[str, Any]], name: str, cut: bool, flags: list[str]) -> Direction | None:
    """Join one direction of a job's clones; None when nothing was done in it."""
    parts = [part for entry in entries if (part := _part(entry, name))]
    broken = len(parts) < len(entries) or any(_LAST_KEY not in part for part in parts)
    if cut and name != "sync" and broken:
        flags.append(f"{name}s are cut off and left out")
        return None
    counts = [_count(part, name, flags) for part in parts]
    latencies = [fio_latency.read(part, ios) for part, ios in zip(parts, counts, strict=True)]
    known = [item for item in latencies if item]
    if name == "sync":
        # With libaio fio counts syncs only among the latencies.
        counts = [item.samples for item in known]
    if not sum(counts):
        return None
    runtime_ms = _runtime_ms(entries, parts, name)
    iops = sum(number(part.get("iops", 0), "iops") for part in parts)
    if name == "sync":
        iops = sum(counts) / runtime_ms * 1000 if runtime_ms else math.nan
    if not known and name != "sync":
        flags.append("no latencies were recorded")
    return Direction(
        ios=sum(counts),
        iops=iops,
        bw_bytes=sum(_bytes(part) for part in parts) / runtime_ms * 1000 if runtime_ms else math.nan,
        runtime_ms=runtime_ms,
        **fio_latency.join(known, flags),
    )


def _count(part: Mapping[str, Any], name: str, flags: list[str]) -> int:
    """I/Os done; before fio 2.2 they are not told, but follow from IOPS and time."""
    if "total_ios" in part or name == "sync":
        return int(number(part.get("total_ios", 0), "total_ios"))
    rate, runtime_ms = number(part.get("iops", 0), "iops"), number(part.get("runtime", 0), "runtime")
    if rate and runtime_ms:
        flags.append("the number of I/Os is IOPS x time: this fio does not tell it")
    return round(rate * runtime_ms / 1000)


def _runtime_ms(entries: list[Mapping[str, Any]], parts: list[Mapping[str, Any]], name: str) -> float:
    """Longest time of any clone. Syncs have none of their own: they ran as long as the writes."""
    measured = [_part(entry, "write") for entry in entries] if name == "sync" else parts
    return max((number(part.get("runtime", 0), "runtime") for part in measured), default=0.0)


def _bytes(part: Mapping[str, Any]) -> float:
    """Bytes done. Before fio 3 `io_bytes` counts KiB, and there is no `io_kbytes` beside it."""
    return number(part.get("io_bytes", 0), "io_bytes") * (1 if "io_kbytes" in part else 1024)


def _alone_pct(entries: list[Mapping[str, Any]]) -> float:
    levels = [_part(entry, "iodepth_level") for entry in entries]
    shares = [number_or_0(level["1"]) for level in levels if "1" in level]
    return min(shares, default=math.nan)


def _started(job: Job, document: Document) -> str | None:
    """When the job began: told in ms by new versions, else when fio printed, less the time it took."""
    started_s = number_or_0(job.entries[0].get("job_start")) / 1000
    printed = printed_s(document)
    begun = started_s or (printed - number_or_0(job.entries[0].get("elapsed")) if printed else 0.0)
    if not 0 < begun < _EPOCH_S:
        return None
    return utc_text(begun)
