"""How long the statistics take, beside the obvious alternative, in one run: `make bench-stats`.

Ends with 1 when a task takes longer than it may.
"""

import gzip
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design.model import Comparison
from diskbook.design.vocabulary import Provenance
from diskbook.facts.units import MB
from diskbook.results import tables as store_tables
from diskbook.results.run import Run, now_utc
from diskbook.stats import percentiles
from diskbook.stats.compare import compare

ARMS, LOADS, REPLICATES, BLOCKS, REPEATS, SAMPLES = 6, 10, 4, 12, 2, 30
FILES = 400
ROUNDS = 5
SEED = 1
LOAD = {"name": "randread", "block_size": 4096, "write_pct": 0, "queue_depth": 1, "runtime_s": 30.0}


@dataclass(frozen=True)
class Timing:
    """Best of several rounds, in s, of ours and of the alternative."""

    task: str
    most_s: float
    ours_s: float
    other: str
    other_s: float

    @property
    def is_late(self) -> bool:
        """Whether ours takes longer than it may."""
        return self.ours_s > self.most_s

    @property
    def text(self) -> str:
        ours = f"{self.task:<42}{self.ours_s:>8.3f}{self.most_s:>9.1f}"
        other = f"{self.other:<42}{self.other_s:>8.3f}{self.other_s / self.ours_s:>7.1f}x"
        return f"{ours}   {other}{'   missed' if self.is_late else ''}"


def main() -> int:
    """Measure and print; 1 where a task takes longer than it may."""
    trials, series, items = made_up_trials()
    rows = [
        _compared("60 cells x 96 trials compared", trials, None, items),
        _compared("the same with their 30 samples each", trials, series, items),
        _parsed(),
    ]
    print(f"Best of {ROUNDS} rounds, both in one process\n")
    print(f"{'task':<42}{'s':>8}{'at most':>9}   {'alternative':<42}{'s':>8}{'ratio':>8}")
    print("\n".join(row.text for row in rows))
    return int(any(row.is_late for row in rows))


def made_up_trials() -> tuple[pd.DataFrame, pd.DataFrame, list[Comparison]]:
    """Trials of 6 arms x 10 loads x 96, their series, and 50 comparisons; numbers from a fixed seed."""
    # Long: a table of trials, column by column.
    rng = np.random.default_rng(SEED)
    names = ["arm", "workload", "replicate", "block", "repeat"]
    levels = [
        [f"arm-{i}" for i in range(ARMS)],
        [f"load-{i}" for i in range(LOADS)],
        *(range(1, n + 1) for n in (REPLICATES, BLOCKS, REPEATS)),
    ]
    trials = pd.MultiIndex.from_product(levels, names=names).to_frame(index=False)
    trials = trials.sample(frac=1, random_state=SEED).sort_values(["replicate", "block"], kind="stable")
    n = len(trials)
    latency = 2.0 * np.exp(rng.normal(0, 0.02, n))
    trials = trials.reset_index(drop=True).assign(
        trial=[f"trial-{i}" for i in range(n)],
        position=np.arange(n) + 1,
        direction="read",
        status="ok",
        attempt=1,
        provenance=Provenance.EMULATED,
        tool="fio",
        tool_version="fio-3.33",
        machine_id="vm",
        disk_id=lambda t: "disk-" + t["arm"],
        physical_zone="zone-1",
        credit_state="none",
        started_utc=pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(n), unit="min"),
        runtime_s=30.0,
        outstanding=1,
        block_size_bytes=4096,
        rate_offered=np.nan,
        iops=1000 / latency,
        lat_mean_ms=latency,
        throughput_mb_s=1000 / latency * 4096 / MB,
        cap_disk_iops=5000.0,
        cap_vm_iops=80_000.0,
    )
    items = [
        Comparison(arm=f"arm-{arm}", base_arm="arm-0", workload=f"load-{load}", pairing="same-machine")
        for arm in range(1, ARMS)
        for load in range(LOADS)
    ]
    return trials, _series(trials, rng), items


def _series(trials: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    rate = np.repeat(trials["iops"].to_numpy(), SAMPLES)
    columns = {
        "trial": trials["trial"].repeat(SAMPLES).to_numpy(),
        "direction": "read",
        "second": np.tile(np.arange(1.0, SAMPLES + 1), len(trials)),
        "iops": rate * (1 + rng.normal(0, 0.02, len(rate))),
    }
    return pd.DataFrame(columns)


def _compared(
    task: str, trials: pd.DataFrame, series: pd.DataFrame | None, items: list[Comparison]
) -> Timing:
    ours = best(lambda: compare(trials, items, series, {}))
    return Timing(
        task, 0.1, ours, "scipy's BCa bootstrap, ratios alone", best(lambda: _bca(trials, items), 1)
    )


def _bca(trials: pd.DataFrame, items: list[Comparison]) -> list[tuple[float, float]]:
    """BCa intervals of the same ratios, each comparison by itself: no gates, labels or verdicts."""
    from scipy import stats

    intervals = []
    for item in items:
        own = trials[trials["workload"] == item.workload]
        arm, base = (
            np.log(own.loc[own["arm"] == name, "lat_mean_ms"].to_numpy())
            for name in (item.arm, item.base_arm)
        )
        interval = stats.bootstrap(
            (arm, base), _difference, method="BCa", n_resamples=2000, vectorized=True, rng=SEED
        ).confidence_interval
        intervals.append((float(np.exp(interval.low)), float(np.exp(interval.high))))
    return intervals


def _difference(arm: np.ndarray, base: np.ndarray, axis: int = -1) -> np.ndarray:
    difference: np.ndarray = arm.mean(axis=axis) - base.mean(axis=axis)
    return difference


def _parsed() -> Timing:
    with TemporaryDirectory(prefix="diskbook-bench-") as scratch:
        run = many_files(Path(scratch) / "bench", FILES)
        paths = sorted((run.folder / "raw").glob("*.json.gz"))
        task = f"{FILES} json+ files parsed, bins merged"
        other = "json and pandas, a table a file"
        return Timing(task, 0.3, best(lambda: _merged(run)), other, best(lambda: _pandas(paths)))


def _merged(run: Run) -> pd.DataFrame:
    """Tables of the run, each file compared with its hash, and the bins of all trials added up."""
    tables = store_tables.build(run)
    return percentiles.merge(tables.bins, tables.trials)


def _pandas(paths: list[Path]) -> pd.DataFrame:
    """Bins of every file as a table, put together and added up; no hash, no checks, no other numbers."""
    tables = []
    for path in paths:
        job = json.loads(gzip.decompress(path.read_bytes()))["jobs"][0]
        bins = pd.Series(job["read"]["lat_ns"]["bins"]).rename_axis("lat_ns").reset_index(name="count")
        tables.append(bins.astype({"lat_ns": "int64"}).assign(trial=path.name))
    merged = pd.concat(tables, ignore_index=True).groupby("lat_ns").agg(count=("count", "sum"))
    return merged.reset_index()


def many_files(folder: Path, n_files: int) -> Run:
    """Write a run of `n_files` trials, each with a copy of the output of one real fio."""
    run = Run(folder)
    folder.mkdir(parents=True)
    limits = dict.fromkeys(("iops", "mb_s", "burst_iops", "burst_mb_s"))
    machine = {"id": "vm1", "size": "Standard_D4as_v4", "limits": limits}
    part = {"replicate": 1, "machines": {"vm1": machine}, "disks": {"d": {"id": "d", "limits": limits}}}
    run.write_manifest(
        {
            "schema": 1,
            "run": folder.name,
            "provenance": Provenance.EMULATED,
            "site": "default",
            "created_utc": now_utc(),
            "cloud": "emulator",
            "preset": "quick",
            "resource_groups": [],
            "scenario": {"name": "bench", "workload": [LOAD]},
            "replicates": [part],
        }
    )
    (folder / "raw").mkdir(exist_ok=True)
    content = fio_output(folder)
    lines = [_add_trial(folder, number, content) for number in range(1, n_files + 1)]
    lines.append({"event": "block", "replicate": 1, "block": 1, "status": "complete"})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "ledger.jsonl").write_text(text)
    return run


def _add_trial(folder: Path, number: int, content: bytes) -> dict[str, Any]:
    """Keep one trial's output; return its line of the ledger."""
    trial, started = f"trial-{number:04d}", "2026-01-01T00:00:00.000000+00:00"
    path = f"raw/{trial}.json.gz"
    (folder / path).write_bytes(gzip.compress(content, 1, mtime=0))
    place = {"replicate": 1, "block": 1, "repeat": number, "position": number, "attempt": 1}
    where = {"machine": "vm1", "machine_id": "vm1", "disk": "d", "disk_id": "d"}
    return {
        "event": "trial",
        "trial": trial,
        "workload": LOAD["name"],
        "arm": "arm",
        **place,
        **where,
        "status": "ok",
        "error": None,
        "started_utc": started,
        "ended_utc": started,
        "files": {"json": {"path": path, "sha256": hashlib.sha256(content).hexdigest()}},
    }


def fio_output(folder: Path) -> bytes:
    """Run fio for a second without a disk (engine null), so that its output is real: some 200 bins."""
    job = "--name=trial --ioengine=null --size=1g --time_based --runtime=1 --rw=randread --bs=4k"
    command = ["fio", *job.split(), "--rate_iops=3000", "--lat_percentiles=1", "--output-format=json+"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout


def best(task: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Least time of several rounds, in s, after one that counts for nothing."""
    times = []
    task()
    for _ in range(rounds):
        started = time.perf_counter()
        task()
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    sys.exit(main())
