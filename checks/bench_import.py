"""How long large logs and many files take, beside pandas and DuckDB, in one run: `make bench-import`.

Ends with 1 when a task takes longer, or more memory, than it may. Inputs are made in a temporary folder; each
reader runs in a process of its own, so that its memory can be told.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diskbook.facts.units import MB
from diskbook.importing import run as importer, terminal
from diskbook.importing.fio import log_histogram
from diskbook.tools.fio import held_rate

ROWS, ROWS_OF_197_MB = 20_000_000, 7_300_000
FILES = 10_000
HOUR_S = 3600
SEED = 1
ROUNDS = 3
_BLOCK_ROWS = 500_000
_BINS = 29 * 64
_FILLED_BINS = 200
"""Bins above 0 in a line of a histogram log; fio at 3,000 IOPS on an SSD fills about as many."""


@dataclass(frozen=True)
class Task:
    """Something to read: by whom, and what it may take (None: no limit)."""

    name: str
    file: str
    reader: str
    most_s: float | None
    most_mb: float | None


TASKS = (
    Task("1 h of histogram log", "hour_clat_hist.1.log", "histogram", 0.2, None),
    Task("  pandas.read_csv alone", "hour_clat_hist.1.log", "pandas_histogram", None, None),
    Task("  DuckDB read_csv alone", "hour_clat_hist.1.log", "duckdb_histogram", None, None),
    Task("latency log of 197 MB", "part_lat.1.log", "latency", 2.0, 1200.0),
    Task("  pandas.read_csv alone", "part_lat.1.log", "pandas_latency", None, None),
    Task("  DuckDB read_csv alone", "part_lat.1.log", "duckdb_latency", None, None),
    Task("20 million rows of latency log", "rows_lat.1.log", "latency", 3.5, 1200.0),
    Task("import of 10,000 JSON files", "json", "import", 15.0, 1200.0),
)


def main() -> int:
    """Make the inputs, read them, print the times. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="checks.bench_import", description=__doc__)
    parser.add_argument("--read", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.read:
        print(json.dumps(measure(*asked.read)))
        return 0
    with tempfile.TemporaryDirectory(prefix="diskbook-bench-") as scratch:
        folder = Path(scratch)
        (folder / "hour_clat_hist.1.log").write_bytes(histogram_log())
        latency_log(folder / "rows_lat.1.log", ROWS)
        latency_log(folder / "part_lat.1.log", ROWS_OF_197_MB)
        json_files(folder / "json", FILES)
        return _all(folder)


def _all(folder: Path) -> int:
    print(f"{'task':<34}{'MB':>6}{'s':>8}{'at most':>9}{'cpu s':>8}{'peak MB':>9}{'at most':>9}")
    missed = 0
    for task in TASKS:
        path = folder / task.file
        rounds = ROUNDS if task.most_s else 1
        fastest = min((_in_process(task.reader, path) for _ in range(rounds)), key=lambda row: row["seconds"])
        late = task.most_s is not None and fastest["seconds"] > task.most_s
        large = task.most_mb is not None and fastest["peak_mb"] > task.most_mb
        missed += late or large
        limits = [f"{limit:.4g}" if limit else "" for limit in (task.most_s, task.most_mb)]
        verdict = "   missed" if late or large else ""
        print(
            f"{task.name:<34}{_bytes(path) / MB:>6.0f}{fastest['seconds']:>8.2f}{limits[0]:>9}"
            f"{fastest['cpu_s']:>8.2f}{fastest['peak_mb']:>9.0f}{limits[1]:>9}{verdict}"
        )
    print(f"\nbest of {ROUNDS}; seconds without the start of the process, peak with it")
    return 1 if missed else 0


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _in_process(reader: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "checks.bench_import", "--read", reader, str(path)]
    measured: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return measured


def measure(reader: str, path: str) -> dict[str, float]:
    """Read a file once; return seconds, processor seconds and peak memory (10^6 bytes) of this process."""
    read = READERS[reader]()
    started, worked = time.perf_counter(), time.process_time()
    read(Path(path))
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # KiB on Linux
    return {"seconds": seconds, "cpu_s": cpu_s, "peak_mb": peak / MB}


def histogram_log(seconds: int = HOUR_S, seed: int = SEED) -> bytes:
    """Make a log of one job, one direction, a line a second, as fio 3 writes it."""
    random = np.random.default_rng(seed)
    lines = []
    for second in range(1, seconds + 1):
        counts = np.zeros(_BINS, np.int64)
        filled = np.clip(random.normal(900, 60, _FILLED_BINS).astype(int), 0, _BINS - 1)
        np.add.at(counts, filled, random.integers(1, 40, _FILLED_BINS))
        lines.append(f"{1000 * second}, 0, 4096, " + ", ".join(map(str, counts.tolist())))
    return ("\n".join(lines) + "\n").encode()


def latency_log(path: Path, rows: int, seed: int = SEED) -> None:
    """Make a log of single I/Os over an hour, reads and writes, as fio 3 writes it."""
    import pyarrow as pa
    from pyarrow import csv

    random = np.random.default_rng(seed)
    with path.open("wb") as file:
        for start in range(0, rows, _BLOCK_ROWS):
            n = min(_BLOCK_ROWS, rows - start)
            table = pa.table(
                {
                    "time": (start + np.arange(n)) * HOUR_S * 1000 // rows,
                    "value": random.lognormal(13.8, 0.5, n).astype(np.int64),
                    "direction": random.integers(0, 2, n),
                    "size": np.full(n, 4096),
                    "priority": np.zeros(n, np.int64),
                }
            )
            block = io.BytesIO()
            csv.write_csv(table, block, csv.WriteOptions(include_header=False))
            file.write(block.getvalue().replace(b",", b", "))


def json_files(folder: Path, number: int) -> None:
    """Make results of one load on two disks, as many small files of fio's JSON."""
    folder.mkdir()
    for place in range(number):
        disk, latency_ns = ("sdc", "sdd")[place % 2], 1_900_000 + 37 * place
        (folder / f"{disk}-{place:05d}.json").write_text(
            json.dumps(_document(disk, place, latency_ns), indent=2)
        )


def _document(disk: str, place: int, latency_ns: int) -> dict[str, Any]:
    """Write the JSON of one job, 30 s of random reads one after another."""
    ios = round(30e9 / latency_ns)
    spread = {"min": latency_ns // 2, "max": 9 * latency_ns, "mean": latency_ns, "stddev": 1e5, "N": ios}
    part = {
        "io_bytes": 4096 * ios, "io_kbytes": 4 * ios, "bw_bytes": 4096 * ios // 30, "bw": 4 * ios // 30,
        "iops": ios / 30, "runtime": 30_000, "total_ios": ios, "short_ios": 0, "drop_ios": 0,
        "slat_ns": spread, "clat_ns": {**spread, "percentile": {"50.000000": latency_ns}}, "lat_ns": spread,
        "bw_min": 1, "bw_max": 9, "iops_mean": ios / 30, "iops_samples": 60,
    }  # fmt: skip
    nothing = {"total_ios": 0, "io_bytes": 0, "io_kbytes": 0, "iops": 0.0, "runtime": 0, "bw_min": 0}
    job = {
        "jobname": "read", "groupid": 0, "error": 0, "elapsed": 31, "read": part, "write": nothing,
        "usr_cpu": 1.0, "sys_cpu": 2.0, "iodepth_level": {"1": 100.0},
        "job options": {
            "rw": "randread", "bs": "4k", "iodepth": "1", "ioengine": "libaio", "direct": "1",
            "runtime": "30", "time_based": "", "filename": f"/dev/{disk}",
        },
    }  # fmt: skip
    return {"fio version": "fio-3.33", "timestamp": 1_700_000_000 + 60 * place, "jobs": [job]}


Reader = Callable[[Path], Any]


def _histogram() -> Reader:
    return lambda path: log_histogram.summarise(path.read_bytes(), path.name)


def _latency() -> Reader:
    def read(path: Path) -> Any:
        with path.open("rb") as stream:
            return held_rate.summarise(stream, path.name)

    return read


def _pandas_histogram() -> Reader:
    import pandas as pd

    return lambda path: pd.read_csv(path, header=None)


def _pandas_latency() -> Reader:
    import pandas as pd

    names = ["time_ms", "value", "direction", "size", "priority"]
    return lambda path: pd.read_csv(path, header=None, names=names, usecols=names[:3])


def _duckdb(columns: str) -> Reader:
    import duckdb

    query = f"SELECT {columns} FROM read_csv('{{}}', header=false, delim=', ', auto_detect=true)"
    return lambda path: duckdb.execute(query.format(path)).fetchall()


def _import() -> Reader:
    def read(folder: Path) -> Any:
        return terminal.text(importer.make([str(folder)], str(folder.parent / f"run-{time.time_ns()}")))

    return read


# Each imports what it needs first: that is not timed.
READERS: dict[str, Callable[[], Reader]] = {
    "histogram": _histogram,
    "latency": _latency,
    "pandas_histogram": _pandas_histogram,
    "pandas_latency": _pandas_latency,
    "duckdb_histogram": lambda: _duckdb("sum(COLUMNS(*))"),
    "duckdb_latency": lambda: _duckdb("avg(column1)"),
    "import": _import,
}

if __name__ == "__main__":
    sys.exit(main())
