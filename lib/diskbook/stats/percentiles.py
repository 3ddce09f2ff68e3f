"""Percentiles of a typical trial, with intervals, and next to them those of all I/Os, without.

A typical trial's is the geometric mean over trials, which is what ratios are made of. That of all I/Os is
of the histograms added up, which is exact. Where slow I/Os come in bursts both differ, by a factor of ten
where one trial of many holds them, and then neither can stand for the other. That of all I/Os has no
interval: with a few blocks it hangs on the few trials that hold the I/Os beyond it, whose number is told
instead.

Ratios are those of the percentiles of paired trials, each interpolated inside its bin.

They are not ratios of the percentiles of all I/Os: where one arm's slow I/Os come in bursts, these may be
ten times as far apart. That ratio stands beside, without an interval: those as wide as the interval of
pairs held it in 13 to 60 % of simulated runs, and those over I/Os, which are not independent, in 13 to 34
%.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design import held_rate
from diskbook.design.grid import Key, grid, mean_over_repeats, tail_needs
from diskbook.design.totals import ONE_BY_ONE, measured_rows, several_runs, trial_codes, trial_keys
from diskbook.facts.units import NS_PER_MS
from diskbook.stats import ratios
from diskbook.stats.gates.tool import Cells, generator_gate, offered
from diskbook.stats.intervals import LEVEL
from diskbook.stats.view import Named

QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)
TRIAL_COLUMNS = {0.5: "lat_p50_ms", 0.99: "lat_p99_ms", 0.999: "lat_p999_ms"}
APART = 0.1
"""Relative difference from which the percentiles of a typical trial and of all I/Os disagree: chosen."""
CELL_COLUMNS = [
    "arm",
    "workload",
    "direction",
    "quantile",
    "n_trials",
    "n_ios",
    "lat_ms",
    "ci_low_ms",
    "ci_high_ms",
    "all_ios_ms",
    "n_half",
    "apart",
    "reason",
    "start",
]
_CELL = ["arm", "workload", "direction"]


def merge(bins: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Add the histograms of all finished trials of each cell and direction.

    Returns `arm, workload, direction, lat_ms, count`, sorted by latency within each.

    Raises ValueError when the trials are of several runs, and bins do not say of which.
    """
    joined = _joined(bins, trials)
    return joined.groupby([*_CELL, "lat_ms"]).agg(count=("count", "sum")).reset_index()


def _joined(bins: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Bins of finished trials, which are numbered, with their cells; ValueError as for `merge`."""
    several = several_runs(trials)
    if several and "run" not in bins:
        raise ValueError(f"{several}, and its histograms do not name theirs: {ONE_BY_ONE}")
    keys = [*trial_keys(bins, trials), "direction"]
    joined = bins.merge(measured_rows(trials)[[*keys, "arm", "workload"]], on=keys)
    return joined.assign(lat_ms=joined["lat_ns"] / NS_PER_MS, trial=trial_codes(joined))


def percentile(lat_ms: np.ndarray, count: np.ndarray, quantile: float) -> float:
    """Latency below which a share of the I/Os lies, from bins sorted by latency; NaN with too few I/Os.

    >>> lat_ms, count = np.array([0.5, 1.0, 8.0]), np.array([900, 60, 40])
    >>> percentile(lat_ms, count, 0.5), percentile(lat_ms, count, 0.95), percentile(lat_ms, count, 0.9999)
    (0.5, 1.0, nan)
    """
    total = int(count.sum())
    if total < tail_needs(quantile):
        return math.nan
    reached = np.searchsorted(np.cumsum(count), math.ceil(quantile * total))
    return float(lat_ms[min(int(reached), len(lat_ms) - 1)])


BINS_AN_OCTAVE = 64
"""Of fio's histograms (`FIO_IO_U_PLAT_BITS`, stat.h); those of other tools are taken for no wider."""


def of_trials(bins: pd.DataFrame, quantile: float) -> pd.Series:
    """Percentile of each trial and direction, interpolated inside the bin that it lies in.

    A bin is up to 1.6 % wide, which is more than two quiet trials differ by: without interpolation the median
    of a trial jumps from bin to bin. Nothing is put into the gaps between bins.

    Returns latency in ms, by trial (with its run, where bins name it) and direction.
    """
    names = [*trial_keys(bins), "direction"]
    ordered = bins.sort_values([*names, "lat_ns"], ignore_index=True)
    keys = [ordered[name] for name in names]
    count = ordered["count"].to_numpy(float)
    reached = ordered["count"].groupby(keys).cumsum().to_numpy(float)
    asked = quantile * ordered["count"].groupby(keys).transform("sum").to_numpy(float)
    holds = (reached >= asked) & (reached - count < asked)
    low, high = _edges(ordered, names)
    share = 1 - (reached - asked) / count
    lat_ms = pd.Series((low + share * (high - low)) / NS_PER_MS, index=ordered.index)
    of_trial: pd.Series[float] = lat_ms[holds].groupby([key[holds] for key in keys]).first()
    return of_trial


def _edges(ordered: pd.DataFrame, keys: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Edges of bins, sorted by trial, direction and latency; none reaches beyond half-way to the next."""
    middle = ordered["lat_ns"].to_numpy(float)
    half = np.exp2(np.floor(np.log2(np.maximum(middle, 1.0)))) / (2 * BINS_AN_OCTAVE)
    gaps = ordered.groupby(keys)["lat_ns"].diff().to_numpy(float) / 2
    before = np.where(np.isnan(gaps), np.inf, gaps)
    after = np.append(before[1:], np.inf)
    return middle - np.minimum(half, before), middle + np.minimum(half, after)


def _own(rows: pd.DataFrame, bins: pd.DataFrame, quantile: float) -> pd.DataFrame:
    """Percentile of every trial, where all trials of its cell have enough I/Os.

    From its own bins where it has any, else as its tool says it. In a closed loop slow trials do fewer I/Os,
    so the trials that have enough would be a selection of fast ones.

    - `rows`: `measured_rows` of a run.

    Returns `rows` with the column `percentile_ms`, NaN where nothing is known.
    """
    names = [*trial_keys(bins), "direction"]
    exact = of_trials(bins, quantile).reindex(pd.MultiIndex.from_frame(rows[names]))
    by_tool = np.full(len(rows), np.nan)
    column = TRIAL_COLUMNS.get(quantile, "")
    if column in rows:
        by_tool = held_rate.latency(rows, column)
    # Bins of a held rate are from the intended start; where the other arm's are not, the tools' own compare.
    starts = rows["workload"].map(held_rate.starts(rows)).fillna("")
    intended = rows.get("lat_mean_intended_ms", pd.Series(np.nan, index=rows.index)).notna()
    unlike = (starts.eq(held_rate.Start.SENT) & intended).to_numpy()
    values = np.where(exact.isna() | unlike, by_tool, exact)
    fewest = rows["ios"].fillna(0.0).groupby([rows[name] for name in _CELL]).transform("min")
    return rows.assign(percentile_ms=np.where(fewest >= tail_needs(quantile), values, np.nan))


def logs(rows: pd.DataFrame, bins: pd.DataFrame, quantile: float) -> dict[Key, np.ndarray]:
    """Log of the percentile of every block's trials, [replicate, block], by arm, workload and direction."""
    cells = grid(_own(rows, bins, quantile), "percentile_ms")
    means = mean_over_repeats(np.log(cells.values))
    return {key: means[place] for key, place in cells.keys.items()}


def is_apart(typical: float, all_ios: float) -> bool:
    """Whether the figure of a typical trial and that of all I/Os disagree; False where one is not known."""
    return typical > 0 and all_ios > 0 and abs(math.log(all_ios / typical)) > math.log1p(APART)


def percentiles(
    bins: pd.DataFrame, trials: pd.DataFrame, quantiles: tuple[float, ...] = QUANTILES, level: float = LEVEL
) -> pd.DataFrame:
    """Percentiles of every cell and direction: of a typical trial, and of all I/Os.

    Returns `CELL_COLUMNS`: `lat_ms` of a typical trial with its interval (these disks), NaN with a `reason`
    if a trial of the cell has too few I/Os; `all_ios_ms` of all I/Os, NaN where these are too few, and
    `n_half`, the fewest of the `n_trials` that hold half of the I/Os beyond it (0: none is); `apart` where
    the two disagree by more than `APART`; `start`, from when latencies of a held rate count
    (`held_rate.Start`; empty for other loads).

    Raises ValueError as `merge` does.
    """
    joined, rows = _joined(bins, trials), measured_rows(trials)
    starts = held_rate.starts(rows)
    typical = {quantile: logs(rows, bins, quantile) for quantile in quantiles}
    table = [
        {**dict(zip(_CELL, key, strict=True)), **row, "start": starts.get(str(key[1]), "")}
        for key, group in joined.groupby(_CELL, sort=False)
        for quantile in quantiles
        for row in [_row(group, quantile, typical[quantile][_key(key)], level)]
    ]
    return pd.DataFrame(table, columns=CELL_COLUMNS)


def _key(key: Any) -> Key:
    arm, workload, direction = map(str, key)
    return arm, workload, direction


def _row(group: pd.DataFrame, quantile: float, logs_of_cell: np.ndarray, level: float) -> dict[str, object]:
    """One percentile of one cell, from the bins of its trials."""
    lat_ms, count = group["lat_ms"].to_numpy(float), group["count"].to_numpy()
    order, n_ios = np.argsort(lat_ms, kind="stable"), int(count.sum())
    all_ios = percentile(lat_ms[order], count[order], quantile)
    typical = ratios.estimates(logs_of_cell, level)[1]
    short = f"not every trial has the {tail_needs(quantile):,} I/Os that p{100 * quantile:g} needs"
    return {
        "quantile": quantile,
        "n_trials": group["trial"].nunique(),
        "n_ios": n_ios,
        "lat_ms": typical.ratio,
        "ci_low_ms": typical.low,
        "ci_high_ms": typical.high,
        "all_ios_ms": all_ios,
        "n_half": _holders(group["trial"], count, lat_ms > all_ios),
        "apart": is_apart(typical.ratio, all_ios),
        "reason": short if math.isnan(typical.ratio) else "",
    }


def _holders(trial: pd.Series, count: np.ndarray, beyond: np.ndarray) -> int:
    """Fewest trials that hold half of the I/Os beyond a percentile; 0 where none is beyond."""
    by_trial = np.sort(np.bincount(pd.factorize(trial)[0], count * beyond))[::-1]
    return int(np.searchsorted(by_trial.cumsum(), by_trial.sum() / 2)) + 1 if beyond.any() else 0


RATIO_COLUMNS = [
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

    Returns `RATIO_COLUMNS`, two scopes each; `ratio` and its interval are those of a typical trial (paired
    trials), NaN with a reason where a trial of either cell has too few I/Os. `all_ios_ratio` is that of all
    I/Os (NaN: too few), and `apart` where the two disagree, as in `percentiles`; so is `start`.
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
            why = f"not every trial has the {tail_needs(quantile):,} I/Os that this needs; measure longer"
            for estimate in ratios.estimates(typical[arm] - typical[base], level):
                moved = _moved(estimate, names, column, cells)
                head = (*names, direction, quantile, estimate.scope)
                numbers = _numbers(estimate, all_ios, why if short else estimate.reason or moved)
                table_rows.append((*head, *numbers, starts.get(names[2], "")))
    return pd.DataFrame(table_rows, columns=RATIO_COLUMNS)


def _moved(estimate: ratios.Estimate, names: tuple[str, str, str], column: str, cells: Cells) -> str:
    """Say why an estimate has no interval where the generator may have moved it; else empty."""
    gate = generator_gate(names[:2], names[2], column, cells, ratios.narrowest([estimate], 0.0))
    return gate.cause if gate.decides else ""


def _numbers(estimate: ratios.Estimate, all_ios: float, reason: str) -> tuple[float | bool | str, ...]:
    """Columns from `ratio` to `reason`."""
    ratio = math.nan if reason == ratios.ONE_REPLICATE else estimate.ratio
    low, high = (math.nan, math.nan) if reason else (estimate.low, estimate.high)
    counts = estimate.n_replicates, estimate.n_blocks
    return ratio, low, high, *counts, all_ios, is_apart(ratio, all_ios), reason


def _keys(arm: str, base_arm: str, workload: str, direction: str) -> tuple[Key, Key]:
    return (arm, workload, direction), (base_arm, workload, direction)
