"""Ratios of percentiles: the point from merged histograms, the interval from paired trials.

Percentiles of trials are biased (by 14 to 18 % on bursty data) but their ratios vary from block to block as
the truth does; merged bins are nearly unbiased, but their I/Os are not independent. So each serves for what
it can: in simulation the paired ratio t covered 93 to 98 % where intervals over I/Os covered 13 to 34 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from diskbook.stats import ratios
from diskbook.stats.intervals import LEVEL
from diskbook.stats.percentiles import TRIAL_COLUMNS, merge, needed, percentile
from diskbook.stats.ratios import Estimate
from diskbook.stats.view import Named
from diskbook.tables.grid import Grid, Key, grid, mean_over_repeats
from diskbook.tables.totals import measured_rows

COLUMNS = [
    "arm",
    "base_arm",
    "workload",
    "direction",
    "quantile",
    "scope",
    "ratio",
    "ci_low",
    "ci_high",
    "n_replicates",
    "n_blocks",
    "reason",
]


def percentile_ratios(
    bins: pd.DataFrame, trials: pd.DataFrame, comparisons: Iterable[Named], level: float = LEVEL
) -> pd.DataFrame:
    """Ratio of the merged percentiles of both arms, for p50, p99 and p99.9 of every comparison.

    Gates are not looked at: show these only for comparisons that passed them.

    Returns
    -------
    pandas.DataFrame
        `COLUMNS`, two scopes each. `ratio` is that of the merged percentiles, its interval as wide (in logs)
        as that of the paired trial percentiles; NaN with a reason where either has too little data.
    """
    rows = measured_rows(trials)
    merged = {
        (str(arm), str(load), str(direction)): (part["lat_ms"].to_numpy(float), part["count"].to_numpy())
        for (arm, load, direction), part in merge(bins, trials).groupby(["arm", "workload", "direction"])
    }
    named = dict.fromkeys((item.arm, item.base_arm, item.workload) for item in comparisons)
    pairs = [(*names, direction) for names in named for direction in ("read", "write")]
    pairs = [pair for pair in pairs if all(key in merged for key in _keys(*pair))]
    table_rows = []
    for quantile, column in TRIAL_COLUMNS.items():
        # A trial's own percentile needs its I/Os as well, else its log ratio is that of two maxima.
        enough = rows[rows["ios"] >= needed(quantile)]
        if column not in rows:
            continue
        sorted_ = grid(enough, column)
        for pair in pairs:
            values = [percentile(*merged[key], quantile) for key in _keys(*pair)]
            estimates = ratios.estimates(_paired(sorted_, *_keys(*pair)), level)
            table_rows += [_row((*pair, quantile), values, quantile, estimate) for estimate in estimates]
    return pd.DataFrame(table_rows, columns=COLUMNS)


def _keys(arm: str, base_arm: str, workload: str, direction: str) -> tuple[Key, Key]:
    return (arm, workload, direction), (base_arm, workload, direction)


def _paired(values: Grid, arm: Key, base_arm: Key) -> np.ndarray:
    """Log ratio of every block that has both arms, [replicate, block]."""
    logs = mean_over_repeats(np.log(values.values))
    missing = np.full(logs.shape[1:], np.nan)
    arm_logs, base_logs = (
        logs[values.keys[key]] if key in values.keys else missing for key in (arm, base_arm)
    )
    difference: np.ndarray = arm_logs - base_logs
    return difference


def _row(names: tuple[Any, ...], values: list[float], quantile: float, estimate: Estimate) -> dict[str, Any]:
    """Merged ratio with the relative interval of the paired one."""
    point = values[0] / values[1] if values[1] > 0 else math.nan
    reason = estimate.reason
    if estimate.n_blocks == 0:
        reason = f"no trial has the {needed(quantile):,} I/Os that this percentile needs; measure longer"
    if math.isnan(point):
        reason = f"an arm has fewer than the {needed(quantile):,} I/Os that this percentile needs"
    shown = math.nan if reason == ratios.ONE_REPLICATE else point
    low, high = (
        (math.nan, math.nan) if reason else (estimate.low / estimate.ratio, estimate.high / estimate.ratio)
    )
    numbers = (shown, point * low, point * high, estimate.n_replicates, estimate.n_blocks, reason)
    return dict(zip(COLUMNS, (*names, estimate.scope, *numbers), strict=True))
