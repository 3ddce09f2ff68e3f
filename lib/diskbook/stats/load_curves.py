"""Latency against load: trials that held a rate, with the cap of their arm. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from diskbook.design import held_rate, tail_samples
from diskbook.design.totals import measured_rows, rate_kept, trial_keys, trial_totals
from diskbook.facts.units import MB
from diskbook.stats.limits import LIMITS, limit_values

LEAST_RATES = 3
"""Rates that a curve has at least."""
CURVE = ["kind", "arm"]
COLUMNS = [*CURVE, "workload", "trial", "rate_offered", "iops", "kept", "lat_p50_ms", "lat_p99_ms"]
COLUMNS += ["p99_lacks", "cap_iops", "cap_words", "from_due"]
_ON_DEMAND = {"cap_disk_iops": "cap_disk_burst_iops", "cap_disk_mb_s": "cap_disk_burst_mb_s"}


def points(trials: pd.DataFrame, kinds: Mapping[str, str], on_demand: Collection[str] = ()) -> pd.DataFrame:
    """Trials at held rates, of which an arm has three or more of one kind of load.

    Parameters
    ----------
    trials
        Table of a run.
    kinds
        Loads of a held rate by name, each with the kind in words that loads of other rates share.
    on_demand
        Arms whose disk bursts on demand: their limit is that of the burst.

    Returns
    -------
    pandas.DataFrame
        A row a trial, and of mixed loads a row a direction. `kept` says whether the rate was held; `cap_iops`
        is the lowest limit that lasts, NaN where none is known; `from_due` says whether latencies count from
        when each I/O was due (`tables.held_rate`), which then holds for the whole curve. Where `p99_lacks`
        says why a trial shows no p99 (`tables.enough`), that is NaN.
    """
    rows = measured_rows(trials)
    rows = rows[rows["workload"].isin(list(kinds)) & rows["rate_offered"].notna()]
    rows = rows[rows["direction"].isin(["read", "write"])]
    if rows.empty:
        return pd.DataFrame(columns=COLUMNS)
    totals = trial_totals(trials, rows)
    totals["kept"] = rate_kept(totals).to_numpy()
    totals[["cap_iops", "cap_words"]] = _caps(totals, on_demand)
    trial = trial_keys(rows)
    shared = totals.set_index(trial)[["iops", "kept", "cap_iops", "cap_words"]]
    made = rows[[*trial, "arm", "workload", "rate_offered"]].reset_index(drop=True)
    made = made.join(shared, on=trial).assign(kind=_kinds(rows, kinds))
    # Of one kind all latencies count from the same moment, at whatever rate.
    alike = rows.assign(workload=made["kind"].to_numpy())
    for metric in ("lat_p50_ms", "lat_p99_ms"):
        made[metric] = held_rate.latency(alike, metric)
    made["p99_lacks"] = tail_samples.lacks(rows, 0.99)
    made["lat_p99_ms"] = made["lat_p99_ms"].where(made["p99_lacks"] == "")
    starts = held_rate.starts(alike)
    made["from_due"] = made["kind"].map(starts) == held_rate.Start.INTENDED
    return _curves(made[COLUMNS])


def _curves(made: pd.DataFrame) -> pd.DataFrame:
    """Keep the curves of enough rates."""
    rates = made.groupby(CURVE)["rate_offered"].transform("nunique")
    kept = made[(rates >= LEAST_RATES) & made["lat_p50_ms"].notna()]
    return kept.sort_values([*CURVE, "rate_offered", "trial"], kind="stable").reset_index(drop=True)


def _kinds(rows: pd.DataFrame, kinds: Mapping[str, str]) -> np.ndarray:
    """Kind of each row; reads and writes of a mixed load are curves of their own."""
    mixed = rows.groupby(trial_keys(rows))["direction"].transform("nunique") > 1
    named = rows["workload"].map(kinds)
    return np.where(mixed, named + ", its " + rows["direction"] + "s", named)


def _caps(totals: pd.DataFrame, on_demand: Collection[str]) -> pd.DataFrame:
    """Lowest limit of each trial that needs no credit, as IOPS of its block size and in words."""
    own = totals["arm"].isin(list(on_demand)).to_numpy()
    block = totals["block_size_bytes"].to_numpy(float)
    values, rates = {}, {}
    for limit in LIMITS:
        if "burst" in limit.column:
            continue
        value = limit_values(totals, limit.column)
        burst = limit_values(totals, _ON_DEMAND.get(limit.column, limit.column))
        value = np.where(own & (burst > 0), burst, value)
        values[limit] = np.where(value > 0, value, np.nan)
        rates[limit] = values[limit] * (1.0 if limit.counts == "iops" else MB / block)
    table = np.column_stack(list(rates.values()))
    lowest = np.where(np.isnan(table), np.inf, table).argmin(axis=1)
    words = [
        "" if np.isnan(table[row, place]) else list(values)[place].words(list(values.values())[place][row])
        for row, place in enumerate(lowest)
    ]
    caps = table[np.arange(len(table)), lowest]
    return pd.DataFrame({"cap_iops": caps, "cap_words": words}, index=totals.index)
