"""Which zone does a zone-redundant disk answer from? Reads from machines in several zones, with intervals.

The zone of lowest read latency is called nearest. That is inferred from latency: Azure does not tell it, and
what sets one machine apart from another is part of it, since machines in two zones are two machines.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design.totals import measured_rows
from diskbook.stats import intervals

COLUMNS = [
    "replicate",
    "disk_id",
    "zone",
    "workload",
    "n_blocks",
    "lat_ms",
    "ratio",
    "ci_low",
    "ci_high",
    "verdict",
]
NEAREST, FARTHER, UNCLEAR = "nearest", "farther", "not clear"


def probe(trials: pd.DataFrame, level: float = intervals.LEVEL) -> pd.DataFrame:
    """Compare the zones that each disk was read from, with one I/O outstanding.

    Returns one row a replicate, disk and physical zone (`COLUMNS`), only of disks read from two zones or
    more: geometric mean of the mean read latency in ms over the blocks that all zones have, its ratio to that
    of the nearest zone, and the interval over blocks. A zone is "nearest" when it has the lowest latency and
    the interval of every other leaves out 1; without that all are "not clear".
    """
    rows = measured_rows(trials)
    single = (rows["direction"] == "read") & (rows["outstanding"] == 1) & rows["physical_zone"].notna()
    reads = rows[single & (rows["lat_mean_ms"] > 0)]
    zone_rows: list[dict[str, Any]] = []
    for (replicate, disk), of_disk in reads.groupby(["replicate", "disk_id"], sort=True):
        for workload, load in of_disk.groupby("workload", sort=True):
            logs = _by_block(load)
            if logs.shape[1] > 1 and len(logs):
                names = {"replicate": replicate, "disk_id": disk, "workload": workload}
                zone_rows += [{**names, **row} for row in _zones(logs, level)]
                break  # one load is enough; others say the same of the same reads
    return pd.DataFrame(zone_rows, columns=COLUMNS)


def _by_block(load: pd.DataFrame) -> pd.DataFrame:
    """Mean log latency, [block, zone], of the blocks that all zones have."""
    logs = load.assign(log=np.log(load["lat_mean_ms"].to_numpy(float)))
    return logs.pivot_table(index="block", columns="physical_zone", values="log", aggfunc="mean").dropna()


def compare(logs: pd.DataFrame, level: float = intervals.LEVEL) -> pd.DataFrame:
    """Compare zones by log latencies.

    - `logs`: natural logs of latencies in ms, [block, zone], one column a zone; nothing is missing.

    Returns one row a zone, the nearest first, from "zone" on as `probe` has them.
    """
    return pd.DataFrame(_zones(logs, level))


def _zones(logs: pd.DataFrame, level: float) -> list[dict[str, Any]]:
    means = logs.mean().sort_values()
    nearest = str(means.index[0])
    others = {
        str(zone): intervals.over_blocks((logs[zone] - logs[nearest]).to_numpy(float), level)
        for zone in means.index[1:]
    }
    clear = bool(others) and all(float(interval.low) > 0 for interval in others.values())
    first = _row(logs, nearest, (1.0, math.nan, math.nan), NEAREST if clear else UNCLEAR)
    rest = [
        _row(logs, zone, tuple(math.exp(float(part)) for part in interval[:3]), FARTHER if clear else UNCLEAR)
        for zone, interval in others.items()
    ]
    return [first, *rest]


def _row(logs: pd.DataFrame, zone: str, numbers: tuple[float, ...], verdict: str) -> dict[str, Any]:
    ratio, low, high = numbers
    return {
        "zone": zone,
        "n_blocks": len(logs),
        "lat_ms": math.exp(float(logs[zone].mean())),
        "ratio": ratio,
        "ci_low": low,
        "ci_high": high,
        "verdict": verdict,
    }
