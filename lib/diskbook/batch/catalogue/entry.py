"""What the catalogue holds of one run, read from its folder; and whether that is still so.

An entry is named by the size and the times of the files that it was read from. They are looked at before and
after the reading, so that an entry never mixes two states of a run.
"""

import functools
import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from diskbook import __version__
from diskbook.batch.catalogue import schema
from diskbook.design import schema as of_runs
from diskbook.facts.errors import DiskbookError
from diskbook.report.analysis import protocol
from diskbook.report.show import headlines
from diskbook.results import manifest as manifests
from diskbook.results.run import HEADLINE_FILE, Run

REPORT = "report.html"
FILES = (
    *("manifest.json", "ledger.jsonl", "comparisons.csv", protocol.FILE, HEADLINE_FILE, REPORT),
    *("trials.parquet", "bins.parquet"),
)
"""All that an entry is read from; of the report it is only whether it is there."""
_ATTEMPTS = 3


@dataclass(frozen=True)
class Entry:
    """A run as the catalogue has it: its name, its scenario's, and its rows of each table."""

    run: str
    scenario: str
    name: str
    tables: Mapping[str, pa.Table]


def name_of(folder: Path) -> str:
    """Name of the entry that a run's folder would have now; no file is opened.

    The version of the workbook is part of it, since it words answers.
    """
    parts = [str(schema.SCHEMA), __version__, folder.name]
    for file in FILES:
        try:
            info = (folder / file).lstat()
        except OSError:
            parts.append("")
            continue
        parts.append(f"{info.st_mode}.{info.st_size}.{info.st_mtime_ns}.{info.st_ctime_ns}")
    return hashlib.sha256(os.fsencode("|".join(parts))).hexdigest()[:24]


def read(run: Run, tables: Collection[str] = tuple(schema.TABLES)) -> Entry:
    """Read a run as the catalogue holds it; one that is not analysed yet has no comparisons.

    Raises DiskbookError when something of it is damaged, or it changes all the time.
    """
    for _ in range(_ATTEMPTS):
        name = name_of(run.folder)
        entry = of_folder(run, name, tables)
        if name_of(run.folder) == name:
            return entry
    raise DiskbookError(f"run {run.name} is being written to, so the catalogue has it not; try again later")


def of_folder(run: Run, name: str, tables: Collection[str] = tuple(schema.TABLES)) -> Entry:
    """Read a run's rows under an entry's name that is known to be its own; as `read`."""
    if link := next((file for file in FILES if (run.folder / file).is_symlink()), None):
        raise DiskbookError(f"{run.folder / link} is a link; put the file itself in its place")
    try:
        run.name.encode()
        scenario = str(run.manifest["scenario"]["name"])
        own = {table: rows_of(table, run.name, name, _READERS[table](run)) for table in tables}
    except (LookupError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        raise DiskbookError(
            f"run {run.name}: its manifest or ledger is damaged ({error!r}); restore it"
        ) from None
    return Entry(run.name, scenario, name, own)


def rows_of(table: str, run: str, entry: str, frame: pd.DataFrame) -> pa.Table:
    """Rows of a table of the catalogue from a run's own; this is what every row of it goes through."""
    kind = schema.TABLES[table]
    own = pa.Table.from_pandas(
        frame[[name for name in kind.names if name not in ("run", "entry")]],
        schema=pa.schema([field for field in kind if field.name not in ("run", "entry")]),
        preserve_index=False,
    )
    of = [pa.repeat(pa.scalar(value, pa.string()), len(frame)) for value in (run, entry)]
    return pa.Table.from_arrays([*of, *own.columns], schema=kind)


def _run(run: Run) -> pd.DataFrame:
    return pd.DataFrame([_row(run, run.manifest, run.ledger())])


def _row(run: Run, manifest: Mapping[str, Any], ledger: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    # Long: a row of the table of runs, column by column.
    question, times = manifest["scenario"]["scenario"], manifests.started(ledger)
    kept = manifests.kept_of(manifest, times)
    machines = [item for row in kept["replicates"] for item in row["machines"].values()]
    cost = (manifest.get("cost") or [{}])[-1]
    scenario_json = json.dumps(manifest["scenario"], sort_keys=False)
    report = run.folder / REPORT
    return {
        "version": __version__,
        "title": question.get("title"),
        "question": question.get("question"),
        **{key: _text(manifest.get(key)) for key in ("preset", "provenance", "site", "cloud")},
        "region": _text(question.get("region")),
        "physical_zones": _listed(item.get("physical_zone") for item in machines),
        "vm_sizes": _listed(item.get("size") for item in manifest["scenario"].get("machine", ())),
        "disk_skus": _listed(item.get("sku") for item in manifest["scenario"].get("disk", ())),
        "profile": _text((manifest.get("emulator") or {}).get("profile")),
        "state": "measured" if _is_measured(ledger) else "unfinished",
        "stands": _stands(manifest),
        "joined_utc": datetime.now(UTC),
        "created_utc": _time(manifest.get("created_utc")),
        "first_trial_utc": _time(min(times, default=None)),
        "last_trial_utc": _time(max(times, default=None)),
        "n_replicates": len(manifest["replicates"]),
        "n_trials": sum(row["event"] == "trial" for row in ledger),
        "expected_usd": cost.get("expected_usd"),
        "worst_usd": cost.get("worst_usd"),
        "plan_sha256": next((row["sha256"] for row in ledger if row["event"] == "plan"), None),
        "scenario_sha256": hashlib.sha256(scenario_json.encode()).hexdigest(),
        "manifest_sha256": hashlib.sha256((run.folder / "manifest.json").read_bytes()).hexdigest(),
        "tool_versions": _listed(item.get("tool_version") for item in machines),
        "kernels": _listed(item.get("kernel") for item in machines),
        "answer": _answer(run),
        "report": f"{run.name}/{REPORT}" if report.is_file() else "",
        "scenario_json": scenario_json,
        "manifest_json": json.dumps(kept),
    }


def _is_measured(ledger: Iterable[Mapping[str, Any]]) -> bool:
    return any(row["event"] == "stage" and row.get("stage") == "benchmark" for row in ledger)


def _stands(manifest: Mapping[str, Any]) -> bool:
    """Whether anything is on record as not torn down."""
    groups = any(not row["deleted_utc"] for row in manifest.get("resource_groups", ()))
    return groups or any(not row["removed_utc"] for row in manifest.get("places", ()))


def _answer(run: Run) -> str | None:
    try:
        return headlines.read_answer(run)
    except DiskbookError:
        return None


def _comparisons(run: Run) -> pd.DataFrame:
    """comparisons.csv, each row with what its comparison lacks of the protocol."""
    if not (run.folder / headlines.COMPARISONS).exists():
        return of_runs.empty(of_runs.COMPARISONS).assign(closed=None, missing=None)
    frame = headlines.read_comparisons(run)
    judged = _judged(run)
    keys = frame[["arm", "base_arm", "workload", "metric"]].itertuples(index=False, name=None)
    missing = [judged.get(tuple(key)) for key in keys]
    closed = [None if points is None else not points for points in missing]
    listed = [None if points is None else "; ".join(points) for points in missing]
    return frame.assign(closed=pd.Series(closed, dtype=object), missing=pd.Series(listed, dtype=object))


def _judged(run: Run) -> dict[tuple[str, ...], list[str]]:
    """Points of the protocol that each comparison lacks; nothing where what says so cannot be read."""
    try:
        judged = protocol.read(run)
    except DiskbookError:
        return {}
    return {
        (item.arm, item.base_arm, item.workload, item.metric): [
            finding.point.name for finding in item.missing
        ]
        for item in judged
    }


def _table(run: Run, table: of_runs.Table) -> pd.DataFrame:
    """A table of a run; without rows where there is none yet."""
    path = run.folder / f"{table.name}.parquet"
    try:
        return of_runs.validate(table, pq.read_table(path).to_pandas(), str(path))
    except FileNotFoundError:
        return of_runs.empty(table)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DiskbookError(f"{path} cannot be read as parquet ({reason}); {table.remedy}") from None


_READERS: Mapping[str, Callable[[Run], pd.DataFrame]] = {
    "runs": _run,
    "comparisons": _comparisons,
    "trials": functools.partial(_table, table=of_runs.TRIALS),
    "bins": functools.partial(_table, table=of_runs.BINS),
}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(sorted({str(value) for value in values if value is not None}))


def _time(text: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
