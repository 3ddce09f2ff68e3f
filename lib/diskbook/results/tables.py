"""The results of a run as tables, rebuilt by one function from manifest, ledger and raw files.

Schemas are in `tables.schema`. `build` reads raw files through `store.raw` and computes the rest.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from diskbook.design import rate_windows, schedule, schema
from diskbook.design.model import Workload
from diskbook.design.schema import validate
from diskbook.facts import neighbours
from diskbook.facts.catalog import EPHEMERAL
from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import write_atomic
from diskbook.facts.units import MB
from diskbook.results import attached
from diskbook.results.run import Run
from diskbook.stats import credit, platform as platform_metrics
from diskbook.tools import registry
from diskbook.tools.record import Direction, Measurement, Series

__all__ = ["Tables", "build", "read", "read_csv", "tables_of", "validate", "write"]

Event = Mapping[str, Any]
Reader = Callable[[Event, Workload], Measurement]
_ALWAYS = (schema.TRIALS, schema.BINS, schema.SERIES)
_SOMETIMES = (
    *(schema.METRICS, schema.COUNTERS, schema.FLEET, schema.LOSSES, schema.GUEST),
    schema.EVIDENCE,
)
_LIMITS = ("iops", "mb_s", "burst_iops", "burst_mb_s")


@dataclass(frozen=True)
class Tables:
    """Tables of a run.

    `trials` (a row a trial and direction), `bins` (latency histograms), `series` (by interval), `metrics` (of
    the platform, by minute; without rows where none were fetched), `counters` (of a cluster's nodes, before
    and after each trial on one of its volumes; without rows where there is no cluster), `fleet` (a row a
    machine and direction of the trials that a fleet measured; without rows where none did), `losses` (a row a
    replicate, loss and volume; without rows where none were played), `guest` (a row a trial: what its machine
    said of itself; without rows where none was asked), `evidence` (a row a trial and direction of those that
    were made for the platform's metrics alone; nothing of them is in any other table but `metrics`).
    """

    trials: pd.DataFrame
    bins: pd.DataFrame
    series: pd.DataFrame
    metrics: pd.DataFrame = field(default_factory=lambda: schema.empty(schema.METRICS))
    counters: pd.DataFrame = field(default_factory=lambda: schema.empty(schema.COUNTERS))
    fleet: pd.DataFrame = field(default_factory=lambda: schema.empty(schema.FLEET))
    losses: pd.DataFrame = field(default_factory=lambda: schema.empty(schema.LOSSES))
    guest: pd.DataFrame = field(default_factory=lambda: schema.empty(schema.GUEST))
    evidence: pd.DataFrame = field(default_factory=lambda: schema.empty(schema.EVIDENCE))


def build(
    run: Run,
    changed: Mapping[str, Any] | None = None,
    measured: Mapping[str, Measurement] | None = None,
) -> Tables:
    """Rebuild the tables of a run from its manifest, ledger and raw files.

    Trials of a block that was not completed have the status incomplete_block, those right after an attach
    have "early"; a failed attempt keeps one row with direction "none", its error and no numbers.

    - `changed`: manifest to use in place of the run's own, e.g. with other limits.
    - `measured`: results of trials that were just written to the run's folder, which need not be read again.

    Raises DiskbookError: manifest or ledger lack something, or a raw file is missing, changed or unreadable;
    the file is named.
    """
    manifest, ledger = changed or run.manifest, run.ledger()

    def read_trial(event: Event, workload: Workload) -> Measurement:
        if measured and event["trial"] in measured:
            return measured[event["trial"]]
        if "imported" in event:
            return neighbours.imported_trials.read_trial(run.folder, event)
        return attached.read_trial(run.folder, event, workload)

    tables = tables_of(manifest, ledger, read_trial)
    metrics = _platform(run, manifest["provenance"], ledger)
    built = replace(tables, metrics=metrics)
    if _has_volumes(manifest):
        built = neighbours.volume_tables.completed(built, run, manifest, ledger)
    return built


def rebuilt(run: Run) -> Tables:
    """Build the tables from the raw results and write them; read them where a run came without these."""
    if not (run.folder / "raw").is_dir():
        return read(run.folder)
    tables = build(run)
    write(tables, run.folder)
    return tables


def tables_of(manifest: Mapping[str, Any], ledger: Iterable[Event], read_trial: Reader) -> Tables:
    """Compute the tables; `read_trial` gives the raw result of a finished trial."""
    events = list(ledger)
    complete, since = _complete(events), _attached(manifest, events)
    loads: dict[str, Workload] = {}
    described = {
        number: _described(manifest, loads, event, number, number in complete)
        for number, event in enumerate(events, 1)
        if event["event"] == "trial"
    }
    results = _results(events, {number: workload for number, (workload, _) in described.items()}, read_trial)
    rows = _Rows(guests := attached.GuestRows(manifest))
    for number, event in enumerate(events, 1):
        guests.note(event)
        if event["event"] != "trial":
            continue
        workload, common = described[number]
        common |= {"durability": guests.durability(event, workload), **since[event["trial"]]}
        rows.add(event, workload, common, results.get(number))
    _add_credit([*rows.trials, *rows.evidence], manifest, events, rows.demands)
    kinds = (schema.TRIALS, rows.trials), (schema.EVIDENCE, rows.evidence)
    table, alone = (schema.from_rows(kind, listed) for kind, listed in kinds)
    if _has_volumes(manifest):
        table, alone = (neighbours.volume_limits.with_limits(frame, manifest) for frame in (table, alone))
    fleet, guest = schema.from_rows(schema.FLEET, rows.fleet), schema.from_rows(schema.GUEST, guests.rows)
    measured = rows.measured
    return Tables(table, _bins(measured), _series(measured), fleet=fleet, guest=guest, evidence=alone)


def _results(
    events: Sequence[Event], workloads: Mapping[int, Workload], read_trial: Reader
) -> dict[int, Measurement]:
    """Raw results of the trials that came to an end, by the number of their event."""
    ended = [number for number in workloads if events[number - 1]["status"] == "ok"]
    return {number: read_trial(events[number - 1], workloads[number]) for number in ended}


@dataclass
class _Rows:
    """Rows of the tables, trial by trial; of one for evidence there are none but its own."""

    guests: attached.GuestRows
    trials: list[dict[str, Any]] = field(default_factory=list)
    evidence: list[dict[str, Any]] = field(default_factory=list)
    measured: list[tuple[str, Measurement]] = field(default_factory=list)
    fleet: list[dict[str, Any]] = field(default_factory=list)
    demands: dict[str, tuple[float, float, float]] = field(default_factory=dict)

    def add(
        self, event: Event, workload: Workload, common: Mapping[str, Any], result: Measurement | None
    ) -> None:
        """Take a trial; `result` is None where it failed."""
        kept = self.evidence if event.get("evidence_s") else self.trials
        if result is None:
            kept.append({**common, "direction": "none"})
            return
        self.demands[event["trial"]] = _demand(result.directions, workload)
        more = {"tool_version": result.version, **_held(result, workload)}
        kept.extend({**common, **row, **more} for row in _rows(result.directions, workload, event))
        if kept is self.trials:
            self.measured.append((event["trial"], result))
            self.fleet.extend(_machines(common["run"], event["trial"], result, workload))
            self.guests.add(event, workload, result)


def _attached(manifest: Mapping[str, Any], events: list[Event]) -> dict[str, dict[str, float | None]]:
    """How long ago each trial's disk was attached and created, as far as the ledger says."""
    try:
        return attached.by_trial(manifest, events)
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        what = f"ledger.jsonl does not fit manifest.json where disks are attached ({error!r})"
    raise DiskbookError(f"run {manifest.get('run', '?')}: {what}; restore the run folder")


def _has_volumes(manifest: Mapping[str, Any]) -> bool:
    return bool(manifest["scenario"].get("volume"))


def _platform(run: Run, provenance: str, ledger: Iterable[Event]) -> pd.DataFrame:
    """Read what the platform answered when its metrics were asked for."""
    entries = [entry for event in ledger if event["event"] == "metrics" for entry in event.get("files") or ()]
    try:
        answers = [json.loads(attached.read_bytes(run.folder, entry)) for entry in entries]
        return platform_metrics.table(answers, provenance)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DiskbookError(
            f"run {run.name}: raw/metrics-*.json.gz are not answers of Azure Monitor ({error}); restore them"
        ) from None


def write(tables: Tables, folder: Path) -> None:
    """Check the tables and write them as <table>.parquet; equal tables give equal bytes."""
    for table in (*_ALWAYS, *(table for table in _SOMETIMES if len(getattr(tables, table.name)))):
        path = folder / f"{table.name}.parquet"
        checked = validate(table, getattr(tables, table.name), str(path))
        buffer = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pandas(checked, preserve_index=False), buffer, compression="zstd")
        write_atomic(path, buffer.getvalue().to_pybytes())


def read(folder: Path) -> Tables:
    """Read the tables and check them; those that not every run has are there only where there is any row.

    Raises DiskbookError when a file is missing, is not parquet, or breaks its schema.
    """
    tables = Tables(*(_read(table, folder) for table in _ALWAYS))
    there = [table for table in _SOMETIMES if (folder / f"{table.name}.parquet").exists()]
    return replace(tables, **{table.name: _read(table, folder) for table in there})


def read_csv(table: schema.Table, path: Path) -> pd.DataFrame:
    """Read a table that an analysis wrote as CSV, and check it.

    - `table`: what it should be.
    - `path`: the file, in the folder of its run.

    Raises DiskbookError when the file is missing, is not CSV, or breaks its schema: another version or an
    editor wrote it.
    """
    numbers = [column.name for column in table.columns if column.dtype == "float64"]
    texts = [column.name for column in table.columns if column.dtype == "str"]
    try:
        frame = pd.read_csv(
            path,
            dtype=dict.fromkeys(texts, "str"),
            keep_default_na=False,
            na_values=dict.fromkeys(numbers, ""),
        )
    except FileNotFoundError:
        raise DiskbookError(f"{path} is missing; {table.remedy}") from None
    except (OSError, ValueError) as error:  # the errors of pandas' parser are ValueErrors
        reason = str(error).splitlines()[0]
        raise DiskbookError(f"{path} is damaged ({reason}); {table.remedy}") from None
    return validate(table, frame, str(path))


def _read(table: schema.Table, folder: Path) -> pd.DataFrame:
    path = folder / f"{table.name}.parquet"
    try:
        frame = pq.read_table(path).to_pandas()
    except FileNotFoundError:
        raise DiskbookError(f"{path} is missing; {table.remedy}") from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DiskbookError(f"{path} cannot be read as parquet ({reason}); {table.remedy}") from None
    return validate(table, frame, str(path))


def _complete(events: list[Event]) -> set[int]:
    """Ledger lines (from 1) of the trials of completed blocks.

    Any other line of a block says that it begins again, and drops the trials it had before.
    """
    complete: set[int] = set()
    pending: dict[tuple[int, int], list[int]] = {}
    for number, event in enumerate(events, 1):
        key = (event.get("replicate", 0), event.get("block", 0))
        if event["event"] == "trial":
            pending.setdefault(key, []).append(number)
        elif event["event"] == "block" and event.get("status") == "complete":
            complete.update(pending.pop(key, []))
        elif event["event"] == "block":
            pending.pop(key, None)
    return complete


def _described(
    manifest: Mapping[str, Any], loads: dict[str, Workload], event: Event, line: int, complete: bool
) -> tuple[Workload, dict[str, Any]]:
    """Workload of a trial, and what all its rows have in common; `loads` keeps those that were read."""
    try:
        if event["workload"] not in loads:
            workloads = {item["name"]: item for item in manifest["scenario"]["workload"]}
            loads[event["workload"]] = Workload.model_validate(workloads[event["workload"]])
        workload = schedule.for_evidence(loads[event["workload"]], event.get("evidence_s"))
        return workload, _common(manifest, event, workload, complete)
    except KeyError as error:
        what = f"manifest.json or line {line} of ledger.jsonl lacks {error}"
    except (TypeError, AttributeError, ValidationError) as error:
        what = f"manifest.json does not fit line {line} of ledger.jsonl ({str(error).splitlines()[0]})"
    raise DiskbookError(f"run {manifest.get('run', '?')}: {what}; restore the run folder")


def _common(manifest: Mapping[str, Any], event: Event, workload: Workload, complete: bool) -> dict[str, Any]:
    # Long: a row of the table of trials, column by column.
    replicate = next(
        (part for part in manifest["replicates"] if part["replicate"] == event["replicate"]), None
    )
    if replicate is None:
        raise KeyError(f"replicate {event['replicate']}")
    machine, disk = replicate["machines"][event["machine"]], _measured_disk(replicate, event)
    status = event["status"]
    if status == "ok" and not (complete and not event.get("early")):
        status = schema.EARLY if complete else "incomplete_block"
    output = registry.result_file(event) or {}
    return {
        "run": manifest["run"],
        "scenario": manifest["scenario"]["name"],
        "provenance": manifest["provenance"],
        "site": manifest["site"],
        **{key: event[key] for key in ("replicate", "repeat", "position", "trial", "arm", "attempt")},
        "block": event.get("round") or event["block"],  # among those of its placement, where there are some
        "workload": workload.name,
        "tool": registry.name_of(event, workload.tool),
        "machine_id": event["machine_id"],
        "disk_id": event["disk_id"],
        "vm_size": machine["size"],
        "volume": event.get("volume") or "",
        "owner": event.get("owner") or "",
        "lat_bound": "",
        "durability": "",
        "lun": None if event.get("lun") is None else str(event["lun"]),
        "logical_zone": machine.get("logical_zone"),
        "physical_zone": machine.get("physical_zone"),
        "status": status,
        "error": event.get("error"),
        "started_utc": event["started_utc"],
        "ramp_s": workload.ramp_s,
        "outstanding": workload.outstanding,
        "block_size_bytes": workload.block_size_bytes,
        "rate_offered": workload.rate,
        **_caps("disk", disk["limits"]),
        **_caps("vm", machine["limits"] if disk.get("sku") != EPHEMERAL and event["disk"] else {}),
        **_cached_caps(manifest, event["disk"], machine["limits"]),
        "raw_path": output.get("path"),
        "raw_sha256": output.get("sha256"),
    }


def _measured_disk(replicate: Mapping[str, Any], event: Event) -> Mapping[str, Any]:
    """Entry of the disk of a trial; a volume has no limits of its own, what keeps its copies does."""
    if event.get("volume"):
        return {"limits": {}}
    disk: Mapping[str, Any] = replicate["disks"][event["disk"]]
    return disk


def _caps(whose: str, limits: Mapping[str, Any]) -> dict[str, float | None]:
    return {f"cap_{whose}_{kind}": limits.get(kind) for kind in _LIMITS}


def _cached_caps(
    manifest: Mapping[str, Any], disk: str, limits: Mapping[str, Any]
) -> dict[str, float | None]:
    """Cached limits of the VM: in force for a disk whose host cache is on, and for its own local disk."""
    specs = {item["name"]: item for item in manifest["scenario"].get("disk", ())}
    spec = specs.get(disk, {})
    on = spec.get("cache", "None") != "None" or spec.get("sku") == EPHEMERAL
    return {f"cap_vm_{kind}": limits.get(kind) if on else None for kind in ("cached_iops", "cached_mb_s")}


def _demand(directions: Mapping[str, Direction], workload: Workload) -> tuple[float, float, float]:
    """Seconds under load, IOPS and MB/s of reads and writes; the ramp counts at the rate after it."""
    parts = [part for name, part in directions.items() if name in ("read", "write")]
    iops = sum(part.iops for part in parts)
    seconds = workload.ramp_s + max((part.runtime_ms / 1000 for part in parts), default=0.0)
    return seconds, iops, iops * workload.block_size_bytes / MB


def _add_credit(
    rows: list[dict[str, Any]],
    manifest: Mapping[str, Any],
    events: list[Event],
    demands: dict[str, tuple[float, float, float]],
) -> None:
    """Add what was left of burst credit at each trial."""
    if not rows:
        return
    drawn_on = neighbours.volume_limits.drawn_on(manifest) if _has_volumes(manifest) else credit.one_disk
    credits = credit.trial_credits(manifest, events, demands, drawn_on)
    for row in rows:
        credit_then = credits[row["trial"]]
        row |= {"credit_state": credit_then.state, "credit_left_share": credit_then.left_share}


def _rows(
    directions: Mapping[str, Direction], workload: Workload, event: Mapping[str, Any]
) -> list[dict[str, Any]]:
    rows = [
        {"direction": name, **_metrics(part, name, workload), **_start(part, name, workload)}
        for name, part in directions.items()
    ]
    for row in rows if "imported" in event else ():
        # Others' block sizes may vary, or be of one job of several: the bytes of the file say what was moved.
        moved = directions[row["direction"]].bw_bytes
        row["throughput_mb_s"] = moved / MB if moved > 0 else row["throughput_mb_s"]
    if workload.sync == "fdatasync" and {"write", "sync"} <= directions.keys():
        rows.append({"direction": "commit", **_commit(directions["write"], directions["sync"], workload)})
    return rows


def _held(result: Measurement, workload: Workload) -> dict[str, float]:
    """How well a rate was held, by windows: of single I/Os, else of the intervals that the tool says."""
    if workload.rate is None:
        return {}
    worst, low_share = result.rate_window_worst, result.rate_windows_low_share
    if math.isnan(worst) and result.series:
        worst, low_share = _windows_of_series(list(result.series.values()), workload.rate)
    return {"rate_window_worst": worst, "rate_windows_low_share": low_share}


def _windows_of_series(series: list[Series], rate: float) -> tuple[float, float]:
    """Judge the rates of both directions together, interval by interval; fio leaves out an empty one."""
    second, place = np.unique(np.concatenate([part.second for part in series]), return_inverse=True)
    total = np.bincount(place, np.concatenate([part.iops for part in series]), len(second)).astype(np.float64)
    return rate_windows.windows_of_series(second, total, rate)


def _start(part: Direction, direction: str, workload: Workload) -> dict[str, Any]:
    """Latencies from when I/Os were due; of a held rate without them the tool's own are lower bounds."""
    intended = {
        "lat_mean_intended_ms": part.intended.lat_mean_ms,
        "lat_p50_intended_ms": part.intended.lat_p50_ms,
        "lat_p99_intended_ms": part.intended.lat_p99_ms,
        "lat_p999_intended_ms": part.intended.lat_p999_ms,
        "lat_mean_least_ms": part.intended.mean_least_ms,
        "lat_p99_least_ms": part.intended.p99_least_ms,
        "lat_p99_rise": part.intended.p99_rise,
    }
    is_bound = workload.rate is not None and direction != "sync" and math.isnan(part.intended.lat_mean_ms)
    return {**intended, "lat_bound": "lower" if is_bound else ""}


def _metrics(part: Direction, direction: str, workload: Workload) -> dict[str, Any]:
    # Not fio's own bytes a second: they hold what was in flight when the ramp ended (see `Direction`).
    throughput_mb_s = part.iops * workload.block_size_bytes / MB
    return {
        "runtime_s": part.runtime_ms / 1000,
        "ios": part.ios,
        "iops": part.iops,
        "throughput_mb_s": math.nan if direction == "sync" else throughput_mb_s,
        "lat_mean_ms": part.lat_mean_ms,
        "lat_p50_ms": part.lat_p50_ms,
        "lat_p99_ms": part.lat_p99_ms,
        "lat_p999_ms": part.lat_p999_ms,
    }


def _machines(run: str, trial: str, result: Measurement, workload: Workload) -> Iterator[dict[str, Any]]:
    """Rows of what each machine of a fleet did, by direction, over its own time."""
    for item in result.instances:
        place = {"vm": item.vm, "volume": item.volume, "node": item.node, "started_s": item.started_s}
        for name, part in item.directions.items():
            metrics = _metrics(part, name, workload)
            yield {"run": run, "trial": trial, **place, "direction": name, **metrics}


def _commit(write: Direction, sync: Direction, workload: Workload) -> dict[str, Any]:
    """A commit is a write and the sync after it: means add up, percentiles do not."""
    means = {"lat_mean_ms": write.lat_mean_ms, "lat_mean_intended_ms": write.intended.lat_mean_ms}
    commit = {**_metrics(write, "write", workload), **_start(write, "write", workload)}
    commit |= {name: mean + sync.lat_mean_ms for name, mean in means.items()}
    names = ("lat_p50", "lat_p99", "lat_p999")
    return commit | dict.fromkeys(
        (f"{name}{end}_ms" for name in names for end in ("", "_intended")), math.nan
    )


def _bins(measured: list[tuple[str, Measurement]]) -> pd.DataFrame:
    """Histograms; of a held rate from when I/Os were due, where that is known, since they are shown so."""
    parts = [
        (trial, name, list(bins), list(bins.values()))
        for trial, result in measured
        for name, part in result.directions.items()
        if (bins := part.intended.bins or part.bins)
    ]
    return _long(schema.BINS, [(*keys, {"lat_ns": ns, "count": counts}) for *keys, ns, counts in parts])


def _series(measured: list[tuple[str, Measurement]]) -> pd.DataFrame:
    parts = [
        (trial, name, {"second": part.second, "iops": part.iops, "lat_mean_ms": part.lat_mean_ms})
        for trial, result in measured
        for name, part in result.series.items()
    ]
    return _long(schema.SERIES, parts)


def _long(table: schema.Table, parts: list[Any]) -> pd.DataFrame:
    """Stack (trial, direction, columns) into one table, without a DataFrame for each."""
    if not parts:
        return schema.empty(table)
    names = list(parts[0][2])
    lengths = [len(columns[names[0]]) for _, _, columns in parts]
    frame = pd.DataFrame({name: np.concatenate([columns[name] for _, _, columns in parts]) for name in names})
    for position, name in enumerate(("trial", "direction")):
        codes, labels = pd.factorize(np.array([part[position] for part in parts], dtype=object))
        frame.insert(position, name, pd.Series(labels, dtype="str").take(np.repeat(codes, lengths)).array)
    return validate(table, frame)
