"""Reader of fio's output for people (its default), versions 1.5 to 3.4x, as measurements. Text in, no I/O.

What its lines say is in `normal_text`; here clones, groups and what was asked for are put together. IOPS are
the I/Os issued over the time, as fio itself computes them: what it prints is cut to three or four digits, and
some releases lose a carry (11.98 MiB/s is printed as 11.0MiB/s by fio 3.1).
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from diskbook.facts.units import NS_PER_MS, NS_PER_US, utc_text
from diskbook.importing import loads
from diskbook.importing.fio import json_files, terse
from diskbook.importing.fio.normal_text import Done, Report, Run, Start, runs
from diskbook.tools import record
from diskbook.tools.fio import latency, latency as fio_latency, options as fio_options
from diskbook.tools.fio.latency import Latency
from diskbook.tools.record import CACHED, SHORTEST, Direction, Load, Measurement, Parsed, UnusableError

_JOB = re.compile(r"\(groupid=\d{1,6}, jobs=\d{1,6}\): err=")
_START_LINE = re.compile(r"^\W{0,40}\S.{0,200}: \(g=\d{1,6}\): rw=", re.MULTILINE)
_ALL_CLIENTS = "All clients"
_READS, _WRITES = "read", "write"
_CLOSE = 0.02
"""Rates that agree to this part are the same, printed with three digits."""
_LACKING = 0.9
_ODD = 0.1
_LOGS = ("write_lat_log", "write_iops_log", "write_bw_log", "write_hist_log")
LOCAL_TIME = "its time of day is the machine's own, of a zone that is not told: it is taken for UTC"
NOT_REPEATED = (
    "fio's text repeats access, block size, engine and depth alone: whether I/Os went through the file "
    "cache, were held at a rate or were synced is not told"
)
DONE_MIX = "the mix of reads and writes is what was done: what was asked for is not told"


@dataclass(frozen=True)
class _Job:
    """Reports that are one job, its clones; `kinds` are the directions of them that are its own."""

    name: str
    host: str
    options: dict[str, str]
    reports: list[Report]
    kinds: tuple[str, ...] = (_READS, _WRITES, "sync")
    threads: int | None = None
    flags: tuple[str, ...] = ()

    @property
    def shown(self) -> bool:
        """Whether more is told of its options than fio's own text repeats."""
        return bool(self.options) and NOT_REPEATED not in self.flags


def is_normal(text: str) -> bool:
    """Whether the text holds fio's output for people, or its beginning."""
    return _JOB.search(text) is not None or _START_LINE.search(text[:20_000]) is not None


def parse(text: str, source: str) -> Parsed:
    """Read everything usable in a file of fio's output for people, with whatever stands around it.

    Returns a measurement a job, clones together.
    Raises UnusableError when nothing can be used: why, and the line where it can be determined.
    """
    every = runs(text)
    if not every:
        raise UnusableError(source, "this is fio's output for people, and ends before the first result")
    version = record.one_version((run.version for run in every), source, "runs of different versions of fio")
    flags = [f"the file holds {len(every)} runs"] if len(every) > 1 else []
    measurements: list[Measurement] = []
    problems: list[str] = []
    for run in every:
        flags += _flags_of_run(run)
        measurements += _measurements(run, problems)
    if not measurements:
        raise UnusableError(source, "; ".join(dict.fromkeys(problems)), every[0].reports[0].line)
    return Parsed("fio", version, "fio text", tuple(measurements), tuple(dict.fromkeys([*flags, *problems])))


def _flags_of_run(run: Run) -> list[str]:
    flags = ["fio was interrupted by a signal"] if run.signal else []
    reported = sum(report.jobs for report in _last(run)[0])
    if run.started > reported:
        flags.append(f"{run.started} threads began and {reported} are reported: the text is cut")
    return flags


def _last(run: Run) -> tuple[list[Report], bool]:
    """Return the last report of each job, and whether there were interim ones."""
    single = [report for report in run.reports if report.name != _ALL_CLIENTS] or run.reports
    by_process = {
        (report.name, report.host, report.group, report.pid or str(report.line)): report for report in single
    }
    return list(by_process.values()), len(by_process) < len(single)


def _measurements(run: Run, problems: list[str]) -> list[Measurement]:
    reports, repeated = _last(run)
    flags = ("cumulative reports (status-interval): the last one counts",) if repeated else ()
    grouped = []
    for jobs in _groups(run, reports, problems):
        for job in jobs:
            try:
                measured = _measurement(replace(job, flags=(*job.flags, *flags)), run)
                grouped.append((job.reports[0].group, measured))
            except ValueError as error:
                problems.append(f"job '{job.name}' cannot be used: {error}")
    return json_files.told_of_others(grouped)


# Which reports are one job


def _groups(run: Run, reports: Sequence[Report], problems: list[str]) -> Iterable[list[_Job]]:
    """Jobs of each group: clones together, and a report of a whole group as what it is of."""
    by_group: dict[tuple[str, str], list[Report]] = {}
    for report in reports:
        by_group.setdefault((report.group, report.host), []).append(report)
    for (group, _), members in by_group.items():
        starts = _starts(run, group, alone=len({report.group for report in reports}) == 1)
        try:
            yield _as_whole(run, members[0], starts) if _is_whole(members, starts) else _clones(run, members)
        except ValueError as error:
            problems.append(str(error))


def _starts(run: Run, group: str, *, alone: bool) -> list[Start]:
    """Start lines of a group's jobs; a command shown stands in where they are not there (fio's --output)."""
    starts = {start.name: start for start in run.starts if start.group == group}
    if alone and not set(run.jobs) <= set(starts):
        shown = {name: Start(name, group, _as_start(options)) for name, options in run.jobs.items()}
        starts = {**shown, **starts}
    return list(starts.values())


def _as_start(options: dict[str, str]) -> dict[str, str]:
    """Options as a start line would tell them."""
    usual = {"rw": "read", "ioengine": "psync", "iodepth": "1"}
    return {name: options.get(name, value) for name, value in usual.items()} | {
        "bs": options.get("bs", "4096")
    }


def _is_whole(members: Sequence[Report], starts: Sequence[Start]) -> bool:
    """Whether one report stands for several jobs (group_reporting)."""
    names = {start.name for start in starts} | {members[0].name}
    return len(members) == 1 and members[0].jobs > 1 and len(names) > 1 and bool(starts)


def _clones(run: Run, members: Sequence[Report]) -> list[_Job]:
    jobs: dict[str, list[Report]] = {}
    for report in members:
        jobs.setdefault(report.name, []).append(report)
    return [_job(run, name, reports) for name, reports in jobs.items()]


def _job(run: Run, name: str, reports: list[Report]) -> _Job:
    start = next((start for start in run.starts if start.name == name), None)
    options, flags = _options(run, name, start)
    asked = fio_options.whole(options, "numjobs", None)
    alone = len({item.name for item in run.starts} | {item.name for item in run.reports}) <= 1
    there = sum(report.jobs for report in reports)
    most = asked or (run.started if alone else there)
    if there < most or (start and start.several and there < 2):
        clones = f"{most} clones" if there < most else "clones"
        raise ValueError(f"job '{name}' cannot be used: the text holds {there} of its {clones}")
    return _Job(name, reports[0].host, options, reports, flags=flags)


def _as_whole(run: Run, report: Report, starts: Sequence[Start]) -> list[_Job]:
    """Jobs of a group with one report: alike they are one, readers and writers are told by what was done."""
    kinds = {_kind(start): start for start in starts}
    if report.name not in {start.name for start in starts}:
        kinds["not told", "", "", ""] = Start(report.name, report.group, {"rw": "?", "iodepth": "?"})
    names = ", ".join(start.name for start in starts[:4]) + (" ..." if len(starts) > 4 else "")
    if len(kinds) == 1:
        options, flags = _options(run, starts[0].name, starts[0])
        alike = f"group_reporting: {len(starts)} jobs ({names}) are reported as one"
        options = {**options, "numjobs": str(report.jobs)}
        return [_Job(report.name, report.host, options, [report], flags=(*flags, alike))]
    access = [start.options["rw"].removeprefix("rand") for start in kinds.values()]
    if sorted(access) != [_READS, _WRITES]:
        asked = "; ".join(_words(start) for start in list(kinds.values())[:4])
        raise ValueError(
            f"job '{report.name}' cannot be used: group_reporting summed unlike jobs ({asked}), and what "
            "each of them did is not told; run it without group_reporting"
        )
    return [_part_of(run, report, starts, kind) for kind in kinds.values()]


def _part_of(run: Run, report: Report, starts: Sequence[Start], kind: Start) -> _Job:
    """Readers, or writers, of a group that has both."""
    own = [start for start in starts if _kind(start) == _kind(kind)]
    options, flags = _options(run, kind.name, kind)
    listed = [fio_options.whole(_options(run, start.name, start)[0], "numjobs", None) for start in own]
    known = [count or (None if start.several else 1) for count, start in zip(listed, own, strict=True)]
    threads = sum(count for count in known if count) if None not in known else None
    flag = "group_reporting joined readers and writers: reads are of the ones, writes of the others"
    kinds = (_READS,) if kind.options["rw"].endswith(_READS) else (_WRITES, "sync")
    name = ", ".join(start.name for start in own[:4])
    return _Job(name, report.host, options, [report], kinds, threads, (*flags, flag))


def _kind(start: Start) -> tuple[str, str, str, str]:
    """What jobs have in common that are alike."""
    options = start.options
    size = fio_options.size_bytes(options.get("bs", "")) or options.get("bs") or options.get("bsrange")
    return (options["rw"], options.get("ioengine", ""), options["iodepth"], str(size))


def _words(start: Start) -> str:
    options = start.options
    size = options.get("bs") or options.get("bsrange", "?")
    return f"{start.name}: {options['rw']}, {size}, depth {options['iodepth']}"


def _options(run: Run, name: str, start: Start | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """What is told of a job: its start line, and a command or job file beside it that agrees with it."""
    shown = run.jobs.get(name)
    if shown is None and len(run.jobs) == 1 and len({item.name for item in run.starts}) <= 1:
        shown = next(iter(run.jobs.values()))
    if start is None:
        return dict(shown or {}), ()
    if shown is None:
        return dict(start.options), (NOT_REPEATED,)
    if not _agrees(shown, start.options):
        return dict(start.options), (
            "the command or job file shown beside it is of another load, and is not used",
            NOT_REPEATED,
        )
    return {**shown, **start.options}, ()


def _agrees(shown: dict[str, str], start: dict[str, str]) -> bool:
    """Whether options shown may be those of a start line."""
    size = fio_options.size_bytes
    same = all(
        shown[name].split(":")[0] == start[name] for name in ("rw", "ioengine", "iodepth") if name in shown
    )
    plain = [options["bs"] for options in (shown, start) if "bs" in options and "," not in options["bs"]]
    return same and (len(plain) < 2 or size(plain[0]) == size(plain[1]))


# One job


def _measurement(job: _Job, run: Run) -> Measurement:
    """Read a job; ValueError says why it cannot be used."""
    flags = list(job.flags)
    _check(job)
    load = _load(job, flags)
    directions = _directions(job, load, flags)
    flags += _remarks(job, run, load, directions)
    started = _started(job)
    return Measurement(
        name=job.name,
        target=fio_options.target(job.options) or (run.disks[0] if len(set(run.disks)) == 1 else ""),
        load=load,
        directions=directions,
        started_utc=started,
        flags=tuple(dict.fromkeys([*flags, *([LOCAL_TIME] if started else [])])),
        host=job.host,
        logs={name: job.options[name][:400] for name in _LOGS if job.options.get(name)},
        log_interval_s=_interval_s(job.options),
        usr_pct=_mean([report.cpu[0] for report in job.reports if report.cpu]),
        sys_pct=_mean([report.cpu[1] for report in job.reports if report.cpu]),
        rates=fio_options.rates(job.options, load),
        options={name: value[:100] for name, value in job.options.items()},
    )


def _check(job: _Job) -> None:
    failed = [report.error for report in job.reports if report.error]
    if failed:
        raise ValueError(f"fio ended it with error {failed[0]}")
    if any("mixed" in report.done for report in job.reports):
        raise ValueError(
            "reads and writes are reported as one (unified_rw_reporting) and cannot be distinguished"
        )
    cut = [report for report in job.reports if report.cpu is None]
    access = job.options.get("rw", "rw").removeprefix("rand")
    if cut and (access not in (_READS, _WRITES) or not all(access in report.done for report in cut)):
        raise ValueError(f"the text is cut after line {cut[0].line}: what it did is not all there")


def _load(job: _Job, flags: list[str]) -> Load:
    """What was asked for, and of a mix that is not told what was done."""
    options = dict(job.options)
    threads = sum(report.jobs for report in job.reports)
    if not options:
        flags.append("the text does not repeat the options: the load is taken from what was done")
        if len(job.reports) < threads:
            flags.append(f"{threads} threads are reported as one: whether they did alike is not told")
        return Load(threads=threads, queue_depth=terse.depth_of_class(job.reports[0].depths, flags))
    if options.get("rw", "").endswith("rw") and not job.shown:
        options["rwmixwrite"] = str(loads.likely_mix(_written_pct(job)))
        flags.append(DONE_MIX)
    if "sync" in job.kinds and not job.shown and _commits(job):
        options["fdatasync"] = "1"
        flags.append("as many syncs as writes were counted: each write is taken for a commit")
    alone = [report.depths[0] for report in job.reports if report.depths]
    load = fio_options.load(options, threads, min(alone, default=math.nan), flags)
    return replace(load, threads=job.threads) if len(job.kinds) < 3 else load


def _commits(job: _Job) -> bool:
    """Whether there is a sync for every write."""
    counts = [(report.syncs, _ios(report, _WRITES)) for report in job.reports]
    return all(syncs >= _LACKING * writes > 0 for syncs, writes in counts)


def _written_pct(job: _Job) -> float:
    done = {kind: sum(_ios(report, kind) for report in job.reports) for kind in (_READS, _WRITES)}
    return 100 * done[_WRITES] / (sum(done.values()) or 1)


def _directions(job: _Job, load: Load, flags: list[str]) -> dict[str, Direction]:
    directions = {
        kind: part for kind in job.kinds if (part := _direction(job, kind, load, flags)) is not None
    }
    if not directions.keys() & {_READS, _WRITES}:
        trims = any("trim" in report.done for report in job.reports)
        raise ValueError("it only trims, which is not read" if trims else "fio did no I/O")
    if any("trim" in report.done for report in job.reports):
        flags.append("trims are left out")
    writes = [_as_json(report) for report in job.reports]
    engine = job.options.get("ioengine", "")
    return latency.taken_alone(directions, writes, load, engine, flags)


def _direction(job: _Job, kind: str, load: Load, flags: list[str]) -> Direction | None:
    """Join one direction of a job's clones; None when nothing was done in it."""
    parts = [(report, report.done[kind]) for report in job.reports if kind in report.done]
    counts = [_ios(report, kind) for report, _ in parts]
    if not sum(counts):
        return None
    runtime_ms = max(_runtime_ms(report, kind) for report, _ in parts)
    latencies = [_latency(done, ios) for (_, done), ios in zip(parts, counts, strict=True)]
    known = [item for item in latencies if item]
    if kind == "sync":
        return Direction(
            sum(counts), _rate(sum(counts), runtime_ms), 0.0, runtime_ms, **fio_latency.join(known, flags)
        )
    flags += [*_of_rates(parts), *_resolution(parts), *(() if known else ("no latencies were recorded",))]
    return Direction(
        ios=sum(counts),
        iops=sum(_iops(report, kind) for report, _ in parts),
        bw_bytes=sum(_bytes_s(report, kind, load) for report, _ in parts),
        runtime_ms=runtime_ms,
        **fio_latency.join(known, flags),
    )


def _ios(report: Report, kind: str) -> int:
    """I/Os of a direction; where the text is cut before they are counted, from its rate and time."""
    done = report.done.get(kind)
    if done is None:
        return 0
    if kind == "sync":
        # Where they are not counted, as of libaio in some releases, there is one a write at most.
        return report.syncs or _ios(report, _WRITES)
    place = {_READS: 0, _WRITES: 1, "trim": 2}[kind]
    if len(report.issued) > place and report.issued[place]:
        return report.issued[place]
    return round(done.iops * done.runtime_ms / 1000)


def _runtime_ms(report: Report, kind: str) -> float:
    """Time of a direction; syncs have none of their own and ran as long as the writes."""
    done = report.done.get(_WRITES if kind == "sync" else kind)
    return done.runtime_ms if done else 0.0


def _rate(ios: float, runtime_ms: float) -> float:
    return ios / runtime_ms * 1000 if runtime_ms else math.nan


def _iops(report: Report, kind: str) -> float:
    done = report.done[kind]
    return _rate(_ios(report, kind), done.runtime_ms) if done.runtime_ms else done.iops


def _bytes_s(report: Report, kind: str, load: Load) -> float:
    """Bytes a second: IOPS x block size where a printed rate agrees with that, which has three digits."""
    rates = report.done[kind].bw
    exact = _iops(report, kind) * (load.block_size_bytes or 0)
    return exact if exact and any(abs(rate / exact - 1) < _CLOSE for rate in rates) else rates[0]


def _of_rates(parts: Sequence[tuple[Report, Done]]) -> list[str]:
    """Say where IOPS are as printed alone, and where they are not what the I/Os and the time make."""
    flags = []
    for report, done in parts:
        if not report.issued:
            flags.append("the text is cut before its I/Os are counted: IOPS are as printed")
        counted = _iops(report, _READS if done is report.done.get(_READS) else _WRITES)
        if abs(done.iops - counted) > max(1.0, _ODD * counted):
            flags.append(f"{done.iops_text} IOPS are printed, I/Os and time make {counted:,.0f}: these count")
    return flags


def _latency(done: Done, ios: int) -> Latency | None:
    """Total latency of a direction; that of completion where it was not recorded."""
    of = next((name for name in ("lat", "clat", "sync") if name in done.latencies), None)
    if of is None or not ios:
        return None
    spread = done.latencies[of]
    of_percentiles = next((name for name in ("lat", "clat", "sync") if done.percentiles.get(name)), of)
    values = {rank: value / NS_PER_MS for rank, value in done.percentiles.get(of_percentiles, {}).items()}
    return Latency(
        samples=ios,
        mean_ns=spread.mean_ns,
        stddev_ns=spread.spread_ns,
        min_ns=spread.min_ns,
        max_ns=spread.max_ns,
        bins={},
        percentiles_ms=values if any(values.values()) else {},
        of="lat" if of_percentiles == "sync" else of_percentiles,
        mean_of="lat" if of == "sync" else of,
        step_ns=2.0 * max(spread.unit_ns, NS_PER_US),
    )


def _resolution(parts: Sequence[tuple[Report, Done]]) -> list[str]:
    """Say how fine the latencies of the text are."""
    units = sorted({unit for _, done in parts for of, unit in done.units.items() if of != "slat"})
    if not units:
        return []
    return [
        f"percentiles are as fio's text has them, in whole {' or '.join(units)}, of bins up to 1.6 % wide; "
        "there is no histogram"
    ]


def _remarks(job: _Job, run: Run, load: Load, directions: dict[str, Direction]) -> list[str]:
    flags = []
    if job.shown and fio_options.cached(job.options):
        flags.append(CACHED)
    if any(report.latency_target for report in job.reports):
        flags.append("the depth was steered by a target of latency")
    if run.rate and load.rate is None:
        flags.append(f"the rate was limited ({run.rate.strip()}), as the lines of progress say")
    if any(report.cpu is None for report in job.reports):
        flags.append("the text is cut after its latencies")
    runtime_s = max(part.runtime_ms for part in directions.values()) / 1000
    if load.runtime_s and runtime_s < SHORTEST * load.runtime_s:
        flags.append(f"measured for {runtime_s:g} s of {load.runtime_s:g} s")
    return [*flags, *_lacking(run, job.reports[0].group)]


def _lacking(run: Run, group: str) -> list[str]:
    """Say where the reports of a group do not add up to what fio says of all of it."""
    members = [report for report in _last(run)[0] if report.group == group]
    flags = []
    for kind in (_READS, _WRITES):
        total = run.totals.get((group, kind), 0.0)
        there = sum(report.done[kind].bw[0] for report in members if kind in report.done)
        if there < _LACKING * total:
            flags.append(
                f"its reports make {there / 1e6:,.1f} MB/s of {kind}s, their group {total / 1e6:,.1f}: "
                "some are missing"
            )
    return flags


def _as_json(report: Report) -> dict[str, object]:
    """Writes of a report as fio's JSON has them."""
    done = report.done.get(_WRITES)
    if done is None or "clat" not in done.latencies:
        return {}
    return {"clat_ns": {"N": _ios(report, _WRITES), "mean": done.latencies["clat"].mean_ns}}


def _started(job: _Job) -> str | None:
    """When it began: fio prints when it ended."""
    report = job.reports[0]
    try:
        ended = datetime.strptime(" ".join(report.ended.split()), "%a %b %d %H:%M:%S %Y")
        took = timedelta(milliseconds=max((_runtime_ms(report, kind) for kind in report.done), default=0.0))
        return utc_text((ended.replace(tzinfo=UTC) - took).timestamp())
    except (ValueError, OverflowError):
        return None


def _interval_s(options: dict[str, str]) -> float | None:
    interval_ms = fio_options.whole(options, "log_avg_msec", None, 10**9)
    return interval_ms / 1000 if interval_ms else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
