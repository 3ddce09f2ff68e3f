"""Files laid out as those of the Azure VM Noise Dataset 2024, with a planted truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

NAMES = {
    "sync": "Random_Read_-_IO_Engine:_Sync_-_Buffered:_Yes_-_Direct:_No_-_Block_Size:_8KB_-_Remote_Disk",
    "aio": "Random_Read_-_IO_Engine:_Linux_AIO_-_Buffered:_No_-_Direct:_Yes_-_Block_Size:_8KB_-_Remote_Disk",
}
RUN, DAY, WEEK, VM, FRESH, COMMON = 0.006, 0.010, 0.020, 0.030, 0.030, 0.014
SLOW_RUNS, SLOW_PAIRS = 0.004, 0.03
SECONDS = 33.2


def path_of(root: Path, test: str, life: str, unit: str = "IOPS") -> Path:
    """Path of a file, as the present revision has it."""
    cell = f"vm_lifespan={life}/vm_region=eastus/vm_sku=D8s_v5/unit={unit}.csv"
    return root / f"test_suite=Flexible_IO_Tester/test_name=Type:_{NAMES[test]}" / cell


def long_runs(seed: int = 1, weeks: int = 60, a_day: int = 8) -> pd.DataFrame:
    """Three machines with all components planted, columns as in the files; `starttime` is the end."""
    rng, n = np.random.default_rng(seed), weeks * 7 * a_day
    day = np.repeat(np.arange(weeks * 7), a_day)
    frames = []
    for vm in range(3):
        log = VM * (vm - 1) + rng.normal(0, WEEK, weeks)[day // 7] + rng.normal(0, DAY, weeks * 7)[day]
        log += rng.normal(0, RUN, n) - np.log(1.4) * (rng.random(n) < SLOW_RUNS)
        slots = np.tile(np.arange(a_day) * 86400.0 / a_day, weeks * 7)
        seconds = 86400.0 * day + slots + rng.uniform(300, 86400 / a_day - 300, n)
        frames.append(_file(1500 * np.exp(log), seconds, np.full(n, vm)))
    return pd.concat(frames).sample(frac=1, random_state=seed)  # no order in the files


def fresh_runs(seed: int = 2, weeks: int = 60, a_day: int = 12) -> pd.DataFrame:
    """A fresh machine for each run: pair, day common to all, and slow pairs."""
    rng, n = np.random.default_rng(seed), weeks * 7 * a_day
    day = np.repeat(np.arange(weeks * 7), a_day)
    log = rng.normal(0, COMMON, weeks * 7)[day] + rng.normal(0, np.hypot(FRESH, RUN), n)
    log -= 0.25 * (rng.random(n) < SLOW_PAIRS)
    return _file(1500 * np.exp(log), 86400.0 * day + rng.uniform(0, 86000, n), np.arange(n))


def capped(runs: pd.DataFrame, seed: int = 3) -> pd.DataFrame:
    """The same runs on a limit: 5,098 IOPS, some one more."""
    return runs.assign(value=5098.0 + np.random.default_rng(seed).integers(0, 2, len(runs)))


def write(root: Path, test: str, life: str, runs: pd.DataFrame, unit: str = "IOPS") -> Path:
    """Write one file."""
    path = path_of(root, test, life, unit)
    path.parent.mkdir(parents=True, exist_ok=True)
    runs.to_csv(path, index=False, lineterminator="\n")
    return path


def write_all(root: Path) -> Path:
    """The whole of a small dataset: one latency-bound test, and one on a cap with its latencies."""
    long, fresh = long_runs(), fresh_runs()
    for test, life, runs in (("sync", "long", long), ("sync", "short", fresh)):
        write(root, test, life, runs)
    for life, runs in (("long", _before(long)), ("short", fresh)):
        rates = capped(runs)
        write(root, "aio", life, rates)
        write(root, "aio", life, rates.assign(value=(64 / rates["value"] * 1e6).round(2)), "msec")
    return root


def _before(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of another test that each end 2 s before a run of the first one begins."""
    ends = pd.to_datetime(runs["starttime"]) - pd.Timedelta(seconds=SECONDS + 2)
    return runs.assign(starttime=ends.dt.strftime("%Y-%m-%d %H:%M:%S.%f").str[:-3], runtime=91.2)


def _file(rate: np.ndarray, seconds: np.ndarray, vm: np.ndarray) -> pd.DataFrame:
    ends = pd.Timestamp("2023-05-29") + pd.to_timedelta(seconds.round(2), unit="s")
    columns = {"value": rate.round(0), "runtime": np.full(len(rate), SECONDS)}
    return pd.DataFrame({**columns, "starttime": ends.strftime("%Y-%m-%d %H:%M:%S.%f").str[:-3], "VM_id": vm})
