"""Percentiles from merged histograms, printed only with enough data behind them.

Percentiles of trials are never averaged (on bursty data that is off by 14 to 18 %); the tools' own bins merge
exactly. The interval comes from the trials' own percentiles on the log scale, one value a block, never from
treating I/Os as independent.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from diskbook.base.units import NS_PER_MS
from diskbook.stats import intervals
from diskbook.tables import held_rate
from diskbook.tables.enough import needed
from diskbook.throttling.limits import measured_rows

QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)
TRIAL_COLUMNS = {0.5: "lat_p50_ms", 0.99: "lat_p99_ms", 0.999: "lat_p999_ms"}


def merge(bins: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Add the histograms of all finished trials of each cell and direction.

    Returns
    -------
    pandas.DataFrame
        `arm, workload, direction, lat_ms, count`, sorted by latency within each.
    """
    cells = measured_rows(trials)[["trial", "direction", "arm", "workload"]]
    keys = ["arm", "workload", "direction"]
    joined = bins.merge(cells, on=["trial", "direction"])
    merged = joined.groupby([*keys, "lat_ns"]).agg(count=("count", "sum")).reset_index()
    merged["lat_ms"] = merged["lat_ns"] / NS_PER_MS
    return merged[[*keys, "lat_ms", "count"]]


def percentile(lat_ms: np.ndarray, count: np.ndarray, quantile: float) -> float:
    """Latency below which a share of the I/Os lies, from bins sorted by latency; NaN with too few I/Os."""
    total = int(count.sum())
    if total < needed(quantile):
        return math.nan
    reached = np.searchsorted(np.cumsum(count), math.ceil(quantile * total))
    return float(lat_ms[min(int(reached), len(lat_ms) - 1)])


BINS_AN_OCTAVE = 64
"""Of fio's histograms (`FIO_IO_U_PLAT_BITS`, stat.h); those of other tools are taken for no wider."""


def of_trials(bins: pd.DataFrame, quantile: float) -> pd.Series:
    """Percentile of each trial and direction, interpolated inside the bin that it lies in.

    A bin is up to 1.6 % wide, which is more than two quiet trials differ by: without interpolation the median
    of a trial jumps from bin to bin. Nothing is put into the gaps between bins.

    Returns
    -------
    pandas.Series
        Latency in ms, by trial and direction.
    """
    ordered = bins.sort_values(["trial", "direction", "lat_ns"], ignore_index=True)
    keys = [ordered["trial"], ordered["direction"]]
    count = ordered["count"].to_numpy(float)
    reached = ordered["count"].groupby(keys).cumsum().to_numpy(float)
    asked = quantile * ordered["count"].groupby(keys).transform("sum").to_numpy(float)
    holds = (reached >= asked) & (reached - count < asked)
    low, high = _edges(ordered)
    share = 1 - (reached - asked) / count
    lat_ms = pd.Series((low + share * (high - low)) / NS_PER_MS, index=ordered.index)
    of_trial: pd.Series[float] = lat_ms[holds].groupby([key[holds] for key in keys]).first()
    return of_trial


def _edges(ordered: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Edges of bins, sorted by trial, direction and latency; none reaches beyond half-way to the next."""
    middle = ordered["lat_ns"].to_numpy(float)
    half = np.exp2(np.floor(np.log2(np.maximum(middle, 1.0)))) / (2 * BINS_AN_OCTAVE)
    gaps = ordered.groupby(["trial", "direction"])["lat_ns"].diff().to_numpy(float) / 2
    before = np.where(np.isnan(gaps), np.inf, gaps)
    after = np.append(before[1:], np.inf)
    return middle - np.minimum(half, before), middle + np.minimum(half, after)


def percentiles(
    bins: pd.DataFrame, trials: pd.DataFrame, quantiles: tuple[float, ...] = QUANTILES, level: float = 0.95
) -> pd.DataFrame:
    """Percentiles of every cell and direction, with intervals where trials allow.

    Returns
    -------
    pandas.DataFrame
        `arm, workload, direction, quantile, n_ios, lat_ms, ci_low_ms, ci_high_ms, reason, start` (from when
        latencies of a held rate count, see `held_rate.Start`; empty for other loads).
    """
    starts = held_rate.starts(measured_rows(trials))
    merged = merge(bins, trials)
    spreads = _spreads(trials, level)
    rows = []
    for (arm, workload, direction), group in merged.groupby(["arm", "workload", "direction"], sort=False):
        lat_ms, count = group["lat_ms"].to_numpy(float), group["count"].to_numpy()
        for quantile in quantiles:
            value, n_ios = percentile(lat_ms, count, quantile), int(count.sum())
            low, high = spreads.get((str(arm), str(workload), str(direction), quantile), (math.nan, math.nan))
            few = math.isnan(value)
            rows.append(
                {
                    "arm": arm,
                    "workload": workload,
                    "direction": direction,
                    "quantile": quantile,
                    "n_ios": n_ios,
                    "lat_ms": value,
                    "ci_low_ms": math.nan if few else value * low,
                    "ci_high_ms": math.nan if few else value * high,
                    "reason": f"needs {needed(quantile):,} I/Os, has {n_ios:,}" if few else "",
                    "start": starts.get(str(workload), ""),
                }
            )
    columns = ["arm", "workload", "direction", "quantile", "n_ios"]
    return pd.DataFrame(rows, columns=[*columns, "lat_ms", "ci_low_ms", "ci_high_ms", "reason", "start"])


def _spreads(trials: pd.DataFrame, level: float) -> dict[tuple[str, str, str, float], tuple[float, float]]:
    """Relative interval bounds from the log percentiles of blocks, by cell, direction and quantile."""
    rows = measured_rows(trials)
    keys = ["arm", "workload", "direction"]
    spreads: dict[tuple[str, str, str, float], tuple[float, float]] = {}
    for quantile, column in TRIAL_COLUMNS.items():
        if column not in rows:
            continue
        values = held_rate.latency(rows, column)
        enough = rows.assign(**{column: values})[(values > 0) & (rows["ios"] >= needed(quantile))]
        logs = pd.Series(np.log(enough[column].to_numpy(float)), index=enough.index)
        blocks = logs.groupby([enough[name] for name in [*keys, "replicate", "block"]]).mean()
        summary = blocks.groupby(level=keys).agg(["std", "size"])
        known = summary[(summary["size"] > 1) & (summary["std"] > 0)].reset_index()
        for arm, workload, direction, std, size in known.itertuples(index=False, name=None):
            half = float(intervals.quantile(level, size - 1)) * std / math.sqrt(size)
            spreads[(arm, workload, direction, quantile)] = (math.exp(-half), math.exp(half))
    return spreads
