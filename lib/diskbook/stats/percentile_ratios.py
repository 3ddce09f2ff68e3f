"""Ratios of percentiles: of paired trials, each percentile interpolated inside its histogram's bin.

Percentiles of trials are biased (by 14 to 18 % on bursty data), in both arms alike, so that their ratios vary
from block to block as the truth does. Intervals over I/Os, which are not independent, covered 13 to 34 % in
simulation; intervals as wide as those of pairs around the ratio of merged histograms covered 13 to 60 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from diskbook.stats import ratios
from diskbook.stats.intervals import LEVEL
from diskbook.stats.percentiles import TRIAL_COLUMNS, merge, of_trials, percentile
from diskbook.stats.ratios import Estimate
from diskbook.stats.view import Named
from diskbook.tables import held_rate
from diskbook.tables.enough import needed
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
    "start",
]


def percentile_ratios(
    bins: pd.DataFrame, trials: pd.DataFrame, comparisons: Iterable[Named], level: float = LEVEL
) -> pd.DataFrame:
    """Ratio of the percentiles of both arms, for p50, p99 and p99.9 of every comparison.

    Gates are not looked at: show these only for comparisons that passed them.

    Returns
    -------
    pandas.DataFrame
        `COLUMNS`, two scopes each; `start` as in `percentiles`. `ratio` and its interval are those of
        paired trials; where no trial has the I/Os that a percentile needs it is that of merged histograms,
        without an interval and with a reason, and NaN where these have too few as well.
    """
    rows = measured_rows(trials)
    merged = {
        (str(arm), str(load), str(direction)): (part["lat_ms"].to_numpy(float), part["count"].to_numpy())
        for (arm, load, direction), part in merge(bins, trials).groupby(["arm", "workload", "direction"])
    }
    starts = held_rate.starts(rows)
    named = dict.fromkeys((item.arm, item.base_arm, item.workload) for item in comparisons)
    pairs = [(*names, direction) for names in named for direction in ("read", "write")]
    pairs = [pair for pair in pairs if all(key in merged for key in _keys(*pair))]
    table_rows = []
    for quantile, column in TRIAL_COLUMNS.items():
        if column not in rows:
            continue
        sorted_ = grid(_of_trials(rows, bins, quantile, column), column)
        for pair in pairs:
            values = [percentile(*merged[key], quantile) for key in _keys(*pair)]
            estimates = ratios.estimates(_paired(sorted_, *_keys(*pair)), level)
            table_rows += [_row((*pair, quantile), values, quantile, estimate) for estimate in estimates]
    table = pd.DataFrame(table_rows, columns=COLUMNS)
    return table.assign(start=table["workload"].map(starts).fillna(""))


def _of_trials(rows: pd.DataFrame, bins: pd.DataFrame, quantile: float, column: str) -> pd.DataFrame:
    """Trials with the percentile from their own bins where they have any, else as their tool says it.

    A trial's own percentile needs its I/Os as well, else its log ratio is that of two maxima.
    """
    enough = rows.assign(**{column: held_rate.latency(rows, column)})[rows["ios"] >= needed(quantile)]
    exact = of_trials(bins, quantile).reindex(pd.MultiIndex.from_frame(enough[["trial", "direction"]]))
    own = enough[column].to_numpy(float, na_value=np.nan)
    # Bins of a held rate are from the intended start; where the other arm's are not, the tools' own compare.
    starts = enough["workload"].map(held_rate.starts(rows)).fillna("")
    intended = enough.get("lat_mean_intended_ms", pd.Series(np.nan, index=enough.index)).notna()
    unlike = (starts.eq(held_rate.Start.SENT) & intended).to_numpy()
    return enough.assign(**{column: np.where(exact.isna() | unlike, own, exact)})


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
    """Paired ratio with its interval; the merged one, without, where no trial has enough I/Os."""
    merged = values[0] / values[1] if values[1] > 0 else math.nan
    reason, point = estimate.reason, estimate.ratio
    if estimate.n_blocks == 0:
        point = merged
        reason = f"no trial has the {needed(quantile):,} I/Os that this percentile needs; measure longer"
    if math.isnan(merged):
        point = math.nan
        reason = f"an arm has fewer than the {needed(quantile):,} I/Os that this percentile needs"
    shown = math.nan if reason == ratios.ONE_REPLICATE else point
    low, high = (math.nan, math.nan) if reason else (estimate.low, estimate.high)
    numbers = (shown, low, high, estimate.n_replicates, estimate.n_blocks, reason, "")
    return dict(zip(COLUMNS, (*names, estimate.scope, *numbers), strict=True))
