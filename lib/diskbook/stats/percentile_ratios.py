"""Ratios of the percentiles of a typical trial: of paired trials, each interpolated inside its bin.

They are not ratios of the percentiles of all I/Os: where one arm's slow I/Os come in bursts, these may be ten
times as far apart. That ratio stands beside, without an interval: those as wide as the interval of pairs held
it in 13 to 60 % of simulated runs, and those over I/Os, which are not independent, in 13 to 34 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from diskbook.design import held_rate
from diskbook.design.grid import Key
from diskbook.design.tail_samples import needed
from diskbook.design.totals import measured_rows
from diskbook.stats import ratios
from diskbook.stats.gates.generator import Cells, generator_gate, offered
from diskbook.stats.intervals import LEVEL
from diskbook.stats.percentiles import TRIAL_COLUMNS, is_apart, logs, merge, percentile
from diskbook.stats.ratios import Estimate
from diskbook.stats.view import Named

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
    "all_ios_ratio",
    "apart",
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
        `COLUMNS`, two scopes each; `ratio` and its interval are those of a typical trial (paired trials), NaN
        with a reason where a trial of either cell has too few I/Os. `all_ios_ratio` is that of all I/Os (NaN:
        too few), and `apart` where the two disagree, as in `percentiles`; so is `start`.
    """
    rows = measured_rows(trials)
    merged = {
        (str(arm), str(load), str(direction)): (part["lat_ms"].to_numpy(float), part["count"].to_numpy())
        for (arm, load, direction), part in merge(bins, trials).groupby(["arm", "workload", "direction"])
    }
    starts, cells = held_rate.starts(rows), offered(rows)
    named = dict.fromkeys((item.arm, item.base_arm, item.workload) for item in comparisons)
    pairs = [
        (names, direction, keys)
        for names in named
        for direction in ("read", "write")
        for keys in [_keys(*names, direction)]
        if all(key in merged for key in keys)
    ]
    table_rows = []
    for quantile, column in TRIAL_COLUMNS.items():
        typical = logs(rows, bins, quantile)
        for names, direction, (arm, base) in pairs:
            all_ios = percentile(*merged[arm], quantile) / (percentile(*merged[base], quantile) or math.nan)
            short = any(np.isnan(typical[key]).all() for key in (arm, base))
            why = f"not every trial has the {needed(quantile):,} I/Os that this needs; measure longer"
            for estimate in ratios.estimates(typical[arm] - typical[base], level):
                moved = _moved(estimate, names, column, cells)
                head = (*names, direction, quantile, estimate.scope)
                numbers = _numbers(estimate, all_ios, why if short else estimate.reason or moved)
                table_rows.append((*head, *numbers, starts.get(names[2], "")))
    return pd.DataFrame(table_rows, columns=COLUMNS)


def _moved(estimate: Estimate, names: tuple[str, str, str], column: str, cells: Cells) -> str:
    """Say why an estimate has no interval where the generator may have moved it; else empty."""
    gate = generator_gate(names[:2], names[2], column, cells, ratios.narrowest([estimate], 0.0))
    return gate.cause if gate.decides else ""


def _numbers(estimate: Estimate, all_ios: float, reason: str) -> tuple[float | bool | str, ...]:
    """Columns from `ratio` to `reason`."""
    ratio = math.nan if reason == ratios.ONE_REPLICATE else estimate.ratio
    low, high = (math.nan, math.nan) if reason else (estimate.low, estimate.high)
    counts = estimate.n_replicates, estimate.n_blocks
    return ratio, low, high, *counts, all_ios, is_apart(ratio, all_ios), reason


def _keys(arm: str, base_arm: str, workload: str, direction: str) -> tuple[Key, Key]:
    return (arm, workload, direction), (base_arm, workload, direction)
