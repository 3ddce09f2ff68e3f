"""Ratios of two arms cell by cell, rates and latencies alike, also where a limit sets them. Pure.

`compare` refuses latencies of capped cells and judges what a scenario named beforehand; this is the table of
all cells that both arms have, one finding each, since in a closed loop latency is outstanding / IOPS.
"""

import numpy as np
import pandas as pd

from diskbook.stats import intervals

LOAD = ["workload", "kind", "block_size_bytes", "outstanding"]
_OF_METRIC = {"iops": "ratio", "lat_mean_ms": "latency_ratio"}


def log_ratios(totals: pd.DataFrame, arm: str, base_arm: str) -> pd.DataFrame:
    """Logs of `ratio` (IOPS) and `latency_ratio` of two arms, by load, replicate and block.

    - `totals`: from `totals.trial_totals`.
    - `arm`, `base_arm`: what is divided by what.

    Returns indexed by `LOAD`, replicate and block; NaN where one arm lacks a load; empty where one lacks all.
    """
    rates = totals[totals["arm"].isin([arm, base_arm])]
    index = [*LOAD, "replicate", "block"]
    tables = {name: rates.pivot_table(index=index, columns="arm", values=name) for name in _OF_METRIC}
    if any({arm, base_arm} - set(table.columns) for table in tables.values()):
        return pd.DataFrame(columns=list(_OF_METRIC.values()))
    return pd.DataFrame(
        {_OF_METRIC[name]: np.log(table[arm] / table[base_arm]) for name, table in tables.items()}
    )


def cell_ratios(totals: pd.DataFrame, arm: str, base_arm: str) -> pd.DataFrame:
    """Ratio of IOPS of every load that both arms have, with its interval, and of latency.

    Returns `LOAD`, `ratio, low, high, latency_ratio, n_replicates, n_blocks`: over replicates from two on,
    else over blocks, of these very disks; NaN bounds with one block.
    """
    logs = log_ratios(totals, arm, base_arm).dropna()
    rows = [
        {**dict(zip(LOAD, load, strict=True)), **_estimate(part)}
        for load, part in (logs.groupby(level=LOAD, sort=False) if len(logs) else ())
    ]
    names = ["ratio", "low", "high", "latency_ratio", "n_replicates", "n_blocks"]
    return pd.DataFrame(rows, columns=[*LOAD, *names])


def _estimate(part: pd.DataFrame) -> dict[str, float]:
    by_block = part["ratio"].unstack("block")
    several = len(by_block) > 1
    method = intervals.over_replicates if several else intervals.within_replicates
    interval = method(by_block.to_numpy(float))
    mean, low, high = (float(np.exp(value)) for value in interval[:3])
    latency = float(np.exp(part["latency_ratio"].groupby(level="replicate").mean().mean()))
    return {
        "ratio": mean, "low": low, "high": high, "latency_ratio": latency,
        "n_replicates": len(by_block), "n_blocks": len(part),
    }  # fmt: skip
