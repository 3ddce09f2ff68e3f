"""What `diskbook import` costs as a command, beside rivals that compute the same: `make bench-import`.

Each row is a whole process, best of three, in seconds of processor time (user and system), less the start-up:
`diskbook --version`, and `python -c ""` of the rivals. Libraries that a command loads are part of its cost.
The rivals compute what an import prints for each cell: rate, mean latency, p50, p99 and p99.9. Ends with 1
when a command takes longer, or more memory, than it may.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diskbook.facts.units import MB

ROWS, FILES_WITH_BINS, FILES = 20_000_000, 400, 10_000
DRY_TIMES, WHOLE_TIMES, FILES_S, PEAK_MB = 2.0, 3.0, 15.0, 1200.0
HOUR_S = 3600
SEED = 1
ROUNDS = 3
_BLOCK_ROWS = 500_000
_BINS = 430
"""Bins above 0 of one direction in a json+ of a minute on a cloud disk, or thereabouts."""


class Cost(NamedTuple):
    """Processor seconds, and peak memory in 10^6 bytes, of a process."""

    cpu_s: float
    peak_mb: float


def main() -> int:
    """Make the inputs, run the commands, print their costs. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="checks.bench_import", description=__doc__)
    parser.add_argument("--rival", nargs=2, metavar=("NAME", "PATH"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rival:
        RIVALS[asked.rival[0]](asked.rival[1])
        return 0
    with tempfile.TemporaryDirectory(prefix="diskbook-bench-") as scratch:
        folder = Path(scratch)
        json_files(folder / "bins", FILES_WITH_BINS, _BINS)
        json_files(folder / "many", FILES, 0)
        (folder / "log").mkdir()
        latency_log(folder / "log" / "rows_lat.1.log", ROWS)
        return _all(folder)


def _all(folder: Path) -> int:
    starts = {name: cost(command, folder).cpu_s for name, command in _STARTS.items()}
    print("start-up, taken off: " + ", ".join(f"{name} {cpu_s:.2f} s" for name, cpu_s in starts.items()))
    missed = _against_rivals("400 json+ files", folder / "bins", "json", starts)
    missed += _against_rivals("20 million rows of log", folder / "log", "log", starts)
    print("\n10,000 JSON files")
    whole = cost(_own(folder / "many", dry=False), folder)
    return 1 if missed + _shown("diskbook import", whole, starts["diskbook"], FILES_S) else 0


def _against_rivals(title: str, path: Path, kind: str, starts: dict[str, float]) -> int:
    """Print the rivals, then the own command; return how many limits were missed."""
    print(f"\n{title} ({sum(file.stat().st_size for file in path.iterdir()) / MB:.0f} MB)")
    fastest = float("inf")
    for rival in ("pandas", "duckdb"):
        taken = cost([*_SELF, "--rival", f"{kind}_{rival}", str(path)], path.parent)
        _shown(rival, taken, starts["python"], None)
        fastest = min(fastest, taken.cpu_s - starts["python"])
    limits = {True: DRY_TIMES * fastest, False: WHOLE_TIMES * fastest}
    return sum(
        _shown(
            f"diskbook import{' --dry-run' * dry}",
            cost(_own(path, dry=dry), path.parent),
            starts["diskbook"],
            most,
        )
        for dry, most in limits.items()
    )


def _shown(name: str, taken: Cost, start_s: float, most_s: float | None) -> bool:
    """Print a row; whether it misses its limit."""
    cpu_s = taken.cpu_s - start_s
    missed = most_s is not None and (cpu_s > most_s or taken.peak_mb > PEAK_MB)
    limit = f"  at most {most_s:6.2f} s, {PEAK_MB:,.0f} MB" if most_s is not None else ""
    print(f"  {name:<26}{cpu_s:>7.2f} s{taken.peak_mb:>7.0f} MB{limit}{'   missed' * missed}", flush=True)
    return missed


_SELF = (sys.executable, "-m", "checks.bench_import")
_DISKBOOK = (str(Path(sys.executable).parent / "diskbook"),)
_STARTS: dict[str, Sequence[str]] = {
    "diskbook": (*_DISKBOOK, "--version"),
    "python": (sys.executable, "-c", ""),
}


def _own(path: Path, *, dry: bool) -> list[str]:
    return [*_DISKBOOK, "import", str(path), *(["--dry-run"] if dry else ["--name", "{run}"])]


def cost(command: Sequence[str], folder: Path) -> Cost:
    """Run a command three times; return the least of each cost. "{run}" is a new folder each time."""
    costs = []
    for number in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=folder) as scratch, (Path(scratch) / "out").open("wb") as out:
            run = str(Path(scratch) / f"run{number}")
            words = [run if word == "{run}" else word for word in command]
            process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise RuntimeError(f"{' '.join(words)}: {(Path(scratch) / 'out').read_text()[-2000:]}")
        costs.append(Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / MB))  # KiB on Linux
    return Cost(*(min(values) for values in zip(*costs, strict=True)))


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


def json_files(folder: Path, number: int, bins: int) -> None:
    """Make results of one load on two disks: fio's JSON, with so many bins of each direction, or none."""
    folder.mkdir()
    random = np.random.default_rng(SEED)
    for place in range(number):
        disk = ("sdc", "sdd")[place % 2]
        names = ("read", "write") if bins else ("read",)
        parts = {name: _part(1_900_000 + 37 * place, bins, random) for name in names}
        text = json.dumps(_document(disk, place, parts), indent=2)
        (folder / f"{disk}-{place:05d}.json").write_text(text)


def _part(latency_ns: int, bins: int, random: np.random.Generator) -> dict[str, Any]:
    """One direction of a job of 30 s."""
    counts = random.integers(1, 80, bins).tolist()
    ios = sum(counts) or round(30e9 / latency_ns)
    spread = {"min": latency_ns // 2, "max": 9 * latency_ns, "mean": latency_ns, "stddev": 1e5, "N": ios}
    percentile = {"50.000000": latency_ns, "99.000000": 3 * latency_ns, "99.900000": 5 * latency_ns}
    clat: dict[str, Any] = {**spread, "percentile": percentile}
    if bins:
        clat["bins"] = {str(latency_ns // 2 + 16_384 * at): count for at, count in enumerate(counts)}
    return {
        "io_bytes": 4096 * ios, "io_kbytes": 4 * ios, "bw_bytes": 4096 * ios // 30, "bw": 4 * ios // 30,
        "iops": ios / 30, "runtime": 30_000, "total_ios": ios, "short_ios": 0, "drop_ios": 0,
        "slat_ns": spread, "clat_ns": clat, "lat_ns": spread,
        "bw_min": 1, "bw_max": 9, "iops_mean": ios / 30, "iops_samples": 60,
    }  # fmt: skip


def _document(disk: str, place: int, parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    nothing = {"total_ios": 0, "io_bytes": 0, "io_kbytes": 0, "iops": 0.0, "runtime": 0, "bw_min": 0}
    job = {
        "jobname": "a", "groupid": 0, "error": 0, "elapsed": 31, "read": nothing, "write": nothing, **parts,
        "usr_cpu": 1.0, "sys_cpu": 2.0, "iodepth_level": {"1": 100.0},
        "job options": {
            "rw": "randrw" if len(parts) > 1 else "randread", "bs": "4k", "iodepth": "1",
            "ioengine": "libaio", "direct": "1", "runtime": "30", "time_based": "",
            "filename": f"/dev/{disk}",
        },
    }  # fmt: skip
    return {"fio version": "fio-3.33", "timestamp": 1_700_000_000 + 60 * place, "jobs": [job]}


def _json_pandas(folder: str) -> None:
    """Sum the histograms of each disk and direction; print rate, mean and percentiles of each."""
    import pandas as pd

    rows, bins = [], []
    for path in sorted(Path(folder).iterdir()):
        job = json.loads(path.read_text())["jobs"][0]
        for direction in ("read", "write"):
            part, cell = job[direction], (job["job options"]["filename"], direction)
            rows.append((*cell, part["iops"], part["lat_ns"]["mean"] / 1e6))
            counts = part["clat_ns"]["bins"]
            bins.append(pd.DataFrame({"ns": list(counts), "n": list(counts.values()), "cell": str(cell)}))
    table = pd.DataFrame(rows, columns=["disk", "direction", "iops", "mean_ms"])
    print(table.groupby(["disk", "direction"]).mean())
    stacked = pd.concat(bins).astype({"ns": "int64"})
    for name, counts in stacked.groupby(["cell", "ns"])["n"].sum().groupby(level=0):
        share = (counts.cumsum() / counts.sum()).to_numpy()
        ns = counts.index.get_level_values(1)[share.searchsorted([0.5, 0.99, 0.999])]
        print(name, (ns / 1e6).tolist())


def _json_duckdb(folder: str) -> None:
    import duckdb

    sides = " UNION ALL ".join(
        f"SELECT job->'job options'->>'filename' AS disk, '{side}' AS direction, job->'{side}' AS part "
        "FROM jobs"
        for side in ("read", "write")
    )
    duckdb.execute(
        f"CREATE TABLE parts AS WITH jobs AS (SELECT json->'jobs'->0 AS job FROM "
        f"read_json_objects('{folder}/*.json')) {sides}"
    )
    print(
        duckdb.execute(
            "SELECT disk, direction, avg((part->>'iops')::DOUBLE), avg((part->'lat_ns'->>'mean')::DOUBLE) "
            "FROM parts GROUP BY ALL"
        ).fetchall()
    )
    print(
        duckdb.execute(
            "WITH e AS (SELECT disk, direction, unnest(map_entries(json_transform(part->'clat_ns'->'bins', "
            "'\"MAP(BIGINT, BIGINT)\"'))) AS bin FROM parts), c AS (SELECT disk, direction, bin.key AS ns, "
            "sum(bin.value) AS n FROM e GROUP BY ALL), s AS (SELECT disk, direction, ns, sum(n) OVER w / "
            "sum(n) OVER (PARTITION BY disk, direction) AS share FROM c "
            "WINDOW w AS (PARTITION BY disk, direction ORDER BY ns)) SELECT disk, direction, "
            "min(ns) FILTER (share >= 0.5), min(ns) FILTER (share >= 0.99), min(ns) FILTER (share >= 0.999) "
            "FROM s GROUP BY ALL"
        ).fetchall()
    )


def _log_pandas(folder: str) -> None:
    import pandas as pd

    (path,) = Path(folder).iterdir()
    names = ["ms", "ns", "direction", "size", "priority"]
    rows = pd.read_csv(path, header=None, names=names, usecols=names[:3])
    for direction, part in rows.groupby("direction"):
        rate = len(part) / (rows["ms"].iloc[-1] / 1000)
        print(direction, rate, part["ns"].mean() / 1e6, part["ns"].quantile([0.5, 0.99, 0.999]).tolist())


def _log_duckdb(folder: str) -> None:
    import duckdb

    print(
        duckdb.execute(
            "SELECT column2, count(*) / (max(column0) / 1000), avg(column1), "
            "quantile_disc(column1, [0.5, 0.99, 0.999]) "
            f"FROM read_csv('{folder}/*.log', header=false, delim=', ', auto_detect=true) GROUP BY column2"
        ).fetchall()
    )


RIVALS = {
    "json_pandas": _json_pandas,
    "json_duckdb": _json_duckdb,
    "log_pandas": _log_pandas,
    "log_duckdb": _log_duckdb,
}

if __name__ == "__main__":
    sys.exit(main())
