"""What both arms of a comparison measured, in the unit of its metric."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from diskbook.report.show.sentences import Row
from diskbook.stats import ratios

UNITS = {"iops": "IOPS", "throughput_mb_s": "MB/s"}
"""Units of metrics that are rates; all others are latencies in ms."""
KEYS = ("arm", "base_arm", "workload", "direction", "metric")


def number(value: float, unit: str) -> str:
    """Write a value with its unit, with about three digits: "3.19 ms", "5,020 IOPS"."""
    if math.isnan(value):
        return "not measured"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f} {unit}"


def blocks(
    trials: pd.DataFrame, arm: str, base: str, workload: str, direction: str, metric: str
) -> pd.DataFrame:
    """List the log values of each replicate and block that measured both arms, one row per block."""
    means = ratios.log_means(trials, metric)
    columns = [(arm, workload, direction), (base, workload, direction)]
    both = means.reindex(columns=pd.MultiIndex.from_tuples(columns, names=means.columns.names)).dropna()
    return pd.DataFrame(both.to_numpy(), both.index, ["log_value", "log_base_value"]).reset_index()


def of_blocks(blocks: pd.DataFrame) -> tuple[float, float]:
    """Return the geometric means of both arms over blocks; replicates weigh alike."""
    means = blocks.groupby("replicate")[["log_value", "log_base_value"]].mean().mean()
    return float(np.exp(means["log_value"])), float(np.exp(means["log_base_value"]))


def of_row(row: Row, trials: pd.DataFrame) -> tuple[float, float]:
    """Return the values of both arms of a comparison; NaN where no block measured both."""
    return of_blocks(blocks(trials, *(str(row[key]) for key in KEYS)))


def text(row: Row, trials: pd.DataFrame) -> tuple[str, str]:
    """Write the values of both arms with their unit."""
    unit = UNITS.get(row["metric"], "ms")
    value, base_value = of_row(row, trials)
    return number(value, unit), number(base_value, unit)
