"""Folders of many runs: the samples' manifests and rows with other names, days and numbers."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from diskbook.batch.catalogue import entry, layout, parts
from diskbook.facts import paths
from diskbook.results.run import Run

SAMPLES = sorted(paths.RUNS.glob("sample-*"))
RATIOS = ["ratio", "ci_low", "ci_high"]
_FIRST = datetime(2026, 9, 1, 8, tzinfo=UTC)


def many(folder: Path, number: int) -> Path:
    """Write runs as finished as a site needs them, a day apart, those of a scenario about one truth."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    comparisons = [pd.read_csv(sample / "comparisons.csv", keep_default_na=False) for sample in SAMPLES]
    manifests = [json.loads((sample / "manifest.json").read_text()) for sample in SAMPLES]
    for n in range(number):
        table, manifest = comparisons[n % len(SAMPLES)].copy(), manifests[n % len(SAMPLES)]
        factor = np.exp(rng.normal(0, 0.05))
        for name in RATIOS:
            table[name] = [f"{float(value) * factor:.6g}" if value else "" for value in table[name]]
        write(folder / f"{manifest['scenario']['name']}-{n:03d}", manifest, table, n)
    return folder


def write(
    folder: Path, manifest: dict[str, Any], comparisons: pd.DataFrame | None = None, day: int = 0
) -> Path:
    """Write one run of a manifest: named after its folder, of a day, analysed or not."""
    folder.mkdir()
    created = (_FIRST + timedelta(days=day)).isoformat()
    own = {**manifest, "run": folder.name, "created_utc": created}
    (folder / "manifest.json").write_text(json.dumps(own))
    if comparisons is not None:
        comparisons.to_csv(folder / "comparisons.csv", index=False)
    return folder


def catalogued(folder: Path, numbers: range, n_trials: int, n_bins: int) -> None:
    """Write runs of one scenario as far as the catalogue needs their folders, and let all of them join it.

    Their rows are those of a sample, with other names, days, seeds and numbers, and as many trials and bins
    as are asked for; they go through the catalogue's own writer, as those of a rebuild do.
    """
    sample, rng = Run(SAMPLES[-1]), np.random.default_rng(numbers.start)
    base = _Base(entry.of_folder(sample, ""), n_trials, n_bins)
    made = layout.folder_of(folder)
    made.mkdir(parents=True, exist_ok=True)
    with parts.Many(made, f"{numbers.start:012d}") as many:
        for number in numbers:
            own = folder / f"{sample.scenario.name}-{number:06d}"
            content = {**sample.manifest, "run": own.name, "created_utc": _created(number).isoformat()}
            own.mkdir()
            (own / "manifest.json").write_text(json.dumps(content))
            many.add(sample.scenario.name, base.tables(own, number, rng))


def _created(number: int) -> datetime:
    return _FIRST + timedelta(hours=number)


class _Base:
    """Rows of a sample, repeated to as many as are wanted, of which those of each run are made."""

    def __init__(self, sample: entry.Entry, n_trials: int, n_bins: int) -> None:
        self._runs, self._comparisons = sample.tables["runs"], sample.tables["comparisons"]
        whole = sample.tables["trials"].take(np.arange(n_trials) % len(sample.tables["trials"]))
        self._trials = _set(whole, trial=[f"r1-b1-{n:04d}" for n in range(n_trials)])
        rows = sample.tables["bins"].slice(0, n_bins).take(np.tile(np.arange(n_bins), n_trials))
        names = pa.array(np.repeat(np.array(self._trials["trial"].to_pylist()), n_bins))
        # From 50 us up, each bin 2 % wider than the one before, as tools have them.
        self._lat_ns = np.tile(5e4 * 1.02 ** np.arange(n_bins), n_trials)
        self._bins = _set(rows, trial=names)

    def tables(self, folder: Path, number: int, rng: np.random.Generator) -> dict[str, pa.Table]:
        """Rows of one run."""
        factor = float(np.exp(rng.normal(0, 0.05)))
        of = {"run": folder.name, "entry": entry.name_of(folder)}
        ratios = {name: pc.multiply(self._comparisons[name], factor) for name in RATIOS}
        latencies = {name: pc.multiply(self._trials[name], factor) for name in ("lat_mean_ms", "lat_p99_ms")}
        counts = rng.integers(1, 5000, len(self._bins))
        return {
            "comparisons": _set(self._comparisons, **of, **ratios),
            "trials": _set(self._trials, **of, **latencies),
            "bins": _set(self._bins, **of, lat_ns=(self._lat_ns * factor).astype(np.int64), count=counts),
            "runs": _set(self._runs, **of, **self._words(folder, number)),
        }

    def _words(self, folder: Path, number: int) -> dict[str, Any]:
        """What the row of a run has of its own: its day, and its seed in the scenario."""
        row = self._runs.select(["scenario_json", "manifest_json"]).to_pylist()[0]
        scenario, manifest = json.loads(row["scenario_json"]), json.loads(row["manifest_json"])
        scenario["design"]["seed"] = number
        created = _created(number)
        manifest |= {"run": folder.name, "created_utc": created.isoformat()}
        return {
            "created_utc": pa.array([created], self._runs.schema.field("created_utc").type),
            "scenario_json": json.dumps(scenario),
            "manifest_json": json.dumps(manifest),
        }


def _set(rows: pa.Table, **columns: Any) -> pa.Table:
    """The same rows with other values in some columns; a single value stands in all of them."""
    for name, values in columns.items():
        field = rows.schema.field(name)
        column = _column(values, field.type, len(rows))
        rows = rows.set_column(rows.schema.get_field_index(name), field, column)
    return rows


def _column(values: Any, kind: pa.DataType, number: int) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, str):
        return pa.repeat(pa.scalar(values, kind), number)
    return values if isinstance(values, pa.ChunkedArray | pa.Array) else pa.array(values, kind)


def seconds_and_gib(words: Sequence[str], runs: Path) -> tuple[float, float]:
    """Run a command on the runs of a folder; return its time, with its start, and its largest memory.

    Raises SystemExit when it fails; with what it said.
    """
    began = time.monotonic()
    with TemporaryFile("w+") as printed:
        child = subprocess.Popen(
            [sys.executable, "-m", "diskbook", *words],
            stdout=printed,
            stderr=printed,
            cwd=paths.ROOT,
            env={**os.environ, "DISKBOOK_RUNS": str(runs)},
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            printed.seek(0)
            sys.exit(f"diskbook {words[0]} ended with {child.returncode}: {printed.read()}")
    unit = 1 if sys.platform == "darwin" else 1024
    return time.monotonic() - began, usage.ru_maxrss * unit / 2**30
