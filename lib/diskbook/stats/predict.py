"""What should set the rate of a cell, before looking at the rate: the lowest of all limits, and concurrency.

Candidates are the limits in force by the credit of each trial (disk, VM uncached, VM cached; base or burst),
the rate that was offered, and what the tool's own I/Os in flight can give: outstanding / latency, with the
latency that the same arm showed with one outstanding (Little's law). Pure: tables in, tables out.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from diskbook.design.totals import CELL, trial_totals
from diskbook.design.vocabulary import CreditState
from diskbook.facts.units import MB
from diskbook.stats.limits import LIMITS, Limit, limit_values

CONCURRENCY = "concurrency"
OFFERED = "offered"
UNKNOWN = "unknown"
COLUMNS = [
    *CELL,
    "by",
    "predicted_iops",
    "predicted_mb_s",
    "measured_iops",
    "measured_mb_s",
    "ratio",
    "limit",
    "limit_iops",
    "limit_value",
    "concurrency_iops",
]


def predicted(trials: pd.DataFrame, on_demand: Collection[str] = ()) -> pd.DataFrame:
    """Predict the rate of every cell, beside the one that was measured.

    Parameters
    ----------
    trials
        Table of a run.
    on_demand
        Arms whose disk bursts on demand: that burst needs no credit, whatever is left in the VM's bucket.

    Returns
    -------
    pandas.DataFrame
        One row a cell (`COLUMNS`), medians over its trials: `by` is a column of `limits.LIMITS`,
        "concurrency", "offered", or "unknown" where nothing is known that could bind or where the credit ran
        out within the trial; `limit` is the lowest limit, whether or not it binds, with its value in its own
        unit and as IOPS of this block size. Limits are nominal: Azure lets about 2 % more pass.
    """
    totals = trial_totals(trials)
    if totals.empty:
        return pd.DataFrame(columns=COLUMNS)
    free = totals["arm"].isin(list(on_demand)).to_numpy()
    names, limit_iops, limit_value = _lowest_limit(totals, free)
    concurrency = _concurrency(totals)
    offered = totals["rate_offered"].to_numpy(float, na_value=np.nan)
    every = np.column_stack([limit_iops, concurrency, offered])
    every = np.where(np.isnan(every), np.inf, every)
    first, best = every.argmin(axis=1), every.min(axis=1)
    known = np.isfinite(best) & (totals["credit_state"] != CreditState.DRAINED).to_numpy()
    numbers = totals[CELL].assign(
        by=np.where(known, np.choose(first, [names, CONCURRENCY, OFFERED]), UNKNOWN),
        predicted_iops=np.where(known, best, np.nan),
        measured_iops=totals["iops"],
        measured_mb_s=totals["mb_s"],
        limit=np.where(np.isnan(limit_iops), "", names),
        limit_iops=limit_iops,
        limit_value=limit_value,
        concurrency_iops=concurrency,
    )
    numbers["predicted_mb_s"] = numbers["predicted_iops"] * totals["block_size_bytes"] / MB
    numbers["ratio"] = numbers["measured_iops"] / numbers["predicted_iops"]
    cells = numbers.groupby(CELL, sort=False)
    words = cells[["by", "limit"]].agg(_most)
    return cells.median(numeric_only=True).join(words).reset_index()[COLUMNS]


def _lowest_limit(totals: pd.DataFrame, free: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Column of the lowest limit in force on each trial, its IOPS (NaN where none is known) and its value."""
    rates = np.column_stack([_in_force(totals, limit, free) for limit in LIMITS])
    values = np.column_stack([limit_values(totals, limit.column) for limit in LIMITS])
    place = np.where(np.isnan(rates), np.inf, rates).argmin(axis=1)
    trial = np.arange(len(totals))
    names = np.array([limit.column for limit in LIMITS])[place]
    return names, rates[trial, place], values[trial, place]


def _most(column: pd.Series) -> str:
    return str(column.mode().iloc[0])


def _in_force(totals: pd.DataFrame, limit: Limit, free: np.ndarray) -> np.ndarray:
    """A limit as IOPS of each trial's block size; NaN where it is not known or not in force.

    A base limit with a burst limit over it is in force when the credit is spent, the burst limit before. A
    read that the host cache answers meets neither disk nor uncached limits.
    """
    value = limit_values(totals, limit.column)
    spent = (totals["credit_state"] == CreditState.EMPTY).to_numpy()
    if "disk" in limit.column:
        spent = spent & ~free
    if limit.burst_column is not None:
        bursts = limit_values(totals, limit.burst_column) > value
        value = np.where(bursts & ~spent, np.nan, value)
    elif "burst" in limit.column:
        value = np.where(spent, np.nan, value)
    if "cached" not in limit.column:
        cached = ~np.isnan(limit_values(totals, "cap_vm_cached_iops"))
        value = np.where(cached & (totals["kind"] == "read").to_numpy(), np.nan, value)
    if limit.counts == "mb_s":
        value = value * MB / totals["block_size_bytes"].to_numpy(float)
    return np.where(value > 0, value, np.nan)


def _concurrency(totals: pd.DataFrame) -> np.ndarray:
    """What the I/Os in flight can give at the latency of the same arm and kind with one outstanding.

    Of the same block size where that was measured, else of another.
    """
    single = totals[(totals["outstanding"] == 1) & totals["rate_offered"].isna()]
    latency = np.full(len(totals), np.nan)
    for keys in (["arm", "kind", "block_size_bytes"], ["arm", "kind"]):
        known = single.groupby(keys)["lat_mean_ms"].median()
        single_ms = known.reindex(pd.MultiIndex.from_frame(totals[keys])).to_numpy(float)
        latency = np.where(np.isnan(latency), single_ms, latency)
    rates: np.ndarray = 1000.0 * totals["outstanding"].to_numpy(float) / latency
    return rates
