"""Per-cell counts that the gates judge: computed once for all cells, vectorised over trials."""

from __future__ import annotations

import numpy as np
import pandas as pd

from diskbook import limits
from diskbook.stats.halves import halves

KEYS = ["arm", "workload"]
SETS = {
    "credit": "credit_state",
    "zones": "physical_zone",
    "machines": "machine_id",
    "disks": "disk_id",
}

Places = dict[tuple[str, str], dict[int, tuple[int, int, int]]]
"""By cell and replicate: first and last place in time, number of trials."""


def cell_checks(trials: pd.DataFrame, series: pd.DataFrame | None = None) -> pd.DataFrame:
    """Count, for each cell, what its gates need.

    Returns
    -------
    pandas.DataFrame
        Index (arm, workload). Counts of trials (`n_trials`, `n_failed`, `n_lost` without a later success,
        `n_repeated_rows`), `n_little_bad` and `little_worst`, `n_assessable`, `n_moved`, `change_worst`, and
        tuples of words: `credit`, `zones`, `machines`, `disks`; `draws_credit` when a trial went above a
        base limit that has a burst limit over it.
    """
    totals = limits.trial_totals(trials)
    totals["little_error"] = limits.little_error(totals)
    totals["little_bad"] = ~limits.little_ok(totals)
    totals["above_base"] = _above_base(totals)
    totals = totals.join(halves(series), on="trial")
    totals["assessable"] = totals["change"].notna()
    totals["moved"] = totals["moved"].eq(True)
    groups = totals.groupby(KEYS, sort=False)
    checks = groups.agg(
        n_trials=("trial", "size"),
        n_little_bad=("little_bad", "sum"),
        n_assessable=("assessable", "sum"),
        n_moved=("moved", "sum"),
        draws_credit=("above_base", "any"),
    )
    checks["little_worst"] = _worst(totals, "little_error")
    checks["change_worst"] = _worst(totals, "change")
    for name, column in SETS.items():
        checks[name] = _distinct(totals, column)
    return _with_losses(checks, trials)


def interleaving(trials: pd.DataFrame) -> Places:
    """First and last place in time, and number, of each cell's trials, by replicate."""
    rows = limits.measured_rows(trials).drop_duplicates("trial")
    by_clock = "started_utc" in rows and rows["started_utc"].notna().all()
    order = rows.sort_values(
        ["started_utc"] if by_clock else ["replicate", "block", "position"], kind="stable"
    )
    place = order[["replicate", *KEYS]].assign(place=np.arange(len(order)))
    found = place.groupby(["replicate", *KEYS], as_index=False).agg(
        first=("place", "min"), last=("place", "max"), n=("place", "size")
    )
    places: Places = {}
    for replicate, arm, workload, *numbers in found.itertuples(index=False, name=None):
        places.setdefault((arm, workload), {})[replicate] = (numbers[0], numbers[1], numbers[2])
    return places


def _distinct(totals: pd.DataFrame, column: str) -> pd.Series:
    """Distinct values of a column as a tuple of words, by cell."""
    distinct = totals[[*KEYS, column]].drop_duplicates().dropna()
    found: dict[tuple[str, str], list[str]] = {}
    for arm, workload, value in distinct.itertuples(index=False, name=None):
        found.setdefault((arm, workload), []).append(str(value))
    words = {key: tuple(sorted(values)) for key, values in found.items()}
    index = pd.MultiIndex.from_tuples(list(words), names=KEYS) if words else None
    return pd.Series(list(words.values()), index=index, dtype=object)


def _above_base(totals: pd.DataFrame) -> pd.Series:
    """Whether a trial ran above a base limit over which there is a burst limit, and so drew credit."""
    above = pd.Series(False, index=totals.index)
    for limit in limits.LIMITS:
        if limit.burst_column is not None:
            base, burst = totals[limit.column].astype(float), totals[limit.burst_column].astype(float)
            above |= (burst > base) & (totals[limit.counts] > base)
    return above


def _worst(totals: pd.DataFrame, column: str) -> pd.Series:
    """Value farthest from zero, by cell."""
    known = totals.dropna(subset=[column])
    farthest = known.loc[known[column].abs().sort_values(kind="stable").index]
    values: pd.Series = farthest.drop_duplicates(KEYS, keep="last").set_index(KEYS)[column]
    return values


def _with_losses(checks: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Add failed attempts, places without a finished trial, and rows that occur twice."""
    place = [*KEYS, "replicate", "block", "repeat"]
    failed = trials[trials["status"] == "failed"].drop_duplicates("trial")
    finished = trials.loc[trials["status"] == "ok", place].drop_duplicates()
    lost = failed[place].drop_duplicates().merge(finished, on=place, how="left", indicator=True)
    lost = lost[lost["_merge"] == "left_only"]
    ok = trials[trials["status"] == "ok"]
    twice = ok[ok.duplicated(["trial", "direction"])]
    counts = {"n_failed": failed, "n_lost": lost, "n_repeated_rows": twice}
    every = checks.index.union(pd.MultiIndex.from_frame(trials[KEYS].drop_duplicates()), sort=False)
    checks = checks.reindex(every)
    for name, table in counts.items():
        checks[name] = table.groupby(KEYS).size().reindex(every, fill_value=0)
    numbers = ["n_trials", "n_little_bad", "n_assessable", "n_moved"]
    checks[numbers] = checks[numbers].fillna(0).astype(int)
    return checks
