"""Per-cell counts that the gates judge: computed once for all cells, vectorised over trials."""

from __future__ import annotations

import numpy as np
import pandas as pd

from diskbook.design import held_rate
from diskbook.design.series import Samples, falls, samples
from diskbook.design.totals import little_error, little_ok, paced, trial_keys, trial_totals
from diskbook.stats import limits
from diskbook.stats.limits import cell_codes
from diskbook.stats.stationarity import rate_changed

KEYS = ["arm", "workload"]
SETS = {
    "credit": "credit_state",
    "zones": "physical_zone",
    "machines": "machine_id",
    "disks": "disk_id",
    "tools": "tool_version",
}

_COUNTED = (
    "rated",
    "paced",
    "rate_bad",
    "windows_low",
    "windows_unknown",
    "lower",
    "little_bad",
    "little_unknown",
    "assessable",
    "moved",
    "far",
    "above_base",
)

_WORST = {
    "rate_worst": "rate_error",
    "little_worst": "little_error",
    "change_worst": "change",
    "change_together": "cell_change",
}

Places = dict[tuple[str, str], dict[int, tuple[int, int, int]]]
"""By cell and replicate: first and last place in time, number of trials."""


def cell_checks(
    trials: pd.DataFrame,
    series: pd.DataFrame | list[Samples] | None = None,
    totals: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Count, for each cell, what its gates need.

    Parameters
    ----------
    trials, series
        Tables of a run.
    totals
        `trial_totals(trials)`, where it is known already.

    Returns
    -------
    pandas.DataFrame
        Index (arm, workload). Counts of trials (`n_trials`, `n_failed`, `n_lost` without a later success,
        `n_repeated` with one, of `n_places` planned, `n_repeated_rows`), `n_paced` that the tool itself held
        back without a rate (`totals.paced`), `n_rated` with an offered rate and
        `rate_worst` (achieved / offered - 1), `n_rate_bad`, windows of the rate (`window_worst`,
        `windows_low_share`: see `rate_windows.windows`; `n_windows_low` trials that have low ones,
        `n_windows_unknown` without any, `n_lower` whose latencies are lower bounds), of the others
        `n_little_bad`,
        `n_little_unknown` and `little_worst`, `n_assessable`, `n_moved`, `n_far`, `change_worst`,
        `change_together` (mean over the cell's trials, where they changed together), `fell` (in words, when
        the rate of a trial that moved fell for good), and tuples of words:
        `credit`, `zones`, `machines`, `disks`, `tools`; `draws_credit` when a trial went
        above a base limit that has a burst limit over it. Medians over trials of `since_attach_s` and of
        `attaches` of the disk in the trial's block, NaN where not known; `since_attach_least_s` is the least
        time, NaN for volumes as well.
    """
    parts = samples(series)
    totals = _judged(trial_totals(trials) if totals is None else totals, parts)
    code, names = cell_codes(totals)
    n_cells = len(names)
    counts = {f"n_{name}": np.bincount(code, totals[name], n_cells).astype(int) for name in _COUNTED}
    draws_credit = counts.pop("n_above_base") > 0
    worst = {name: _worst(code, totals[column].to_numpy(float), n_cells) for name, column in _WORST.items()}
    window = totals["rate_window_worst"].clip(upper=1.0).to_numpy()
    since = {
        name: _median(code, totals[column].to_numpy(float, na_value=np.nan), n_cells)
        for name, column in (("since_attach_s", "since_attach_s"), ("attaches", "attaches_in_block"))
    }
    columns = {
        "n_trials": np.bincount(code, minlength=n_cells),
        **counts,
        "draws_credit": draws_credit,
        **worst,
        "window_worst": 1.0 - _worst(code, 1.0 - window, n_cells),
        "windows_low_share": _worst(code, totals["rate_windows_low_share"].to_numpy(), n_cells),
        **{name: _distinct(code, totals[column], n_cells) for name, column in SETS.items()},
        **since,
        "since_attach_least_s": _since_least(totals).groupby(code).min().to_numpy(),
        "fell": _falls(totals, code, parts, n_cells),
    }
    return _with_losses(pd.DataFrame(columns, index=pd.MultiIndex.from_frame(names)), trials)


def interleaving(trials: pd.DataFrame, totals: pd.DataFrame | None = None) -> Places:
    """First and last place in time, and number, of each cell's trials, by replicate."""
    rows = trial_totals(trials) if totals is None else totals
    by_clock = "started_utc" in rows and rows["started_utc"].notna().all()
    order = rows.sort_values(
        ["started_utc"] if by_clock else ["replicate", "block", "position"], kind="stable"
    )
    code, names = cell_codes(order)
    place = pd.DataFrame({"replicate": order["replicate"].to_numpy(), "cell": code})
    grouped = place.assign(place=np.arange(len(order))).groupby(["replicate", "cell"])["place"]
    pairs = list(names.itertuples(index=False, name=None))
    places: Places = {}
    summary = grouped.agg(["min", "max", "size"])
    for (replicate, cell), numbers in zip(summary.index, summary.to_numpy().tolist(), strict=True):
        places.setdefault(pairs[cell], {})[replicate] = (numbers[0], numbers[1], numbers[2])
    return places


def _judged(totals: pd.DataFrame, parts: list[Samples]) -> pd.DataFrame:
    """Add to every trial what was found of it."""
    rated, ok = totals["rate_offered"].notna(), little_ok(totals)
    held_back = paced(totals) & ~rated
    closed = ~rated & ~held_back
    windows = {name: _number(totals, name) for name in ("rate_window_worst", "rate_windows_low_share")}
    judged = totals.assign(
        **windows,
        rated=rated,
        paced=held_back,
        rate_bad=rated & ~ok,
        windows_low=rated & (windows["rate_windows_low_share"] > 0),
        windows_unknown=rated & windows["rate_windows_low_share"].isna(),
        lower=rated & ~held_rate.is_told(totals),
        little_bad=closed & ~ok & totals["in_flight"].notna(),
        little_unknown=closed & totals["in_flight"].isna(),
        rate_error=totals["iops"] / totals["rate_offered"] - 1.0,
        little_error=little_error(totals).where(closed),
        above_base=_above_base(totals),
    )
    if not parts:
        return judged.assign(change=np.nan, cell_change=np.nan, moved=False, far=False, assessable=False)
    cells = pd.Series(cell_codes(judged)[0], index=judged["trial"])
    judged = judged.join(rate_changed(parts, cells), on="trial")
    return judged.assign(
        assessable=judged["change"].notna(), moved=judged["moved"].eq(True), far=judged["far"].eq(True)
    )


def _number(totals: pd.DataFrame, name: str) -> pd.Series:
    """Column of numbers, missing where older tables have no such column."""
    return totals[name].astype(float) if name in totals else pd.Series(np.nan, index=totals.index)


def _distinct(code: np.ndarray, values: pd.Series, n_cells: int) -> list[tuple[str, ...]]:
    """Distinct values of a column as a sorted tuple of words, by cell."""
    by_cell: list[set[str]] = [set() for _ in range(n_cells)]
    value, names = pd.factorize(values)
    for pair in np.unique(code[value >= 0] * (len(names) + 1) + value[value >= 0]).tolist():
        by_cell[pair // (len(names) + 1)].add(str(names[pair % (len(names) + 1)]))
    return [tuple(sorted(words)) for words in by_cell]


def _above_base(totals: pd.DataFrame) -> np.ndarray:
    """Whether a trial ran above a base limit over which there is a burst limit, and so drew credit."""
    above = np.zeros(len(totals), dtype=bool)
    for limit in limits.LIMITS:
        if limit.burst_column is not None:
            base, burst = (limits.limit_values(totals, name) for name in (limit.column, limit.burst_column))
            above |= (burst > base) & (totals[limit.counts].to_numpy(float) > base)
    return above


def _worst(code: np.ndarray, values: np.ndarray, n_cells: int) -> np.ndarray:
    """Value farthest from zero, by cell; NaN where none is known."""
    worst = np.full(n_cells, np.nan)
    order = np.argsort(np.abs(values), kind="stable")
    known = order[~np.isnan(values[order])]
    worst[code[known]] = values[known]
    return worst


def _median(code: np.ndarray, values: np.ndarray, n_cells: int) -> np.ndarray:
    """Median by cell of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    by_cell = pd.Series(values[known]).groupby(code[known]).median()
    medians: np.ndarray = by_cell.reindex(range(n_cells)).to_numpy(float)
    return medians


def _since_least(totals: pd.DataFrame) -> pd.Series:
    """Times since the attach of the disks that trials measure; volumes are not attached for any."""
    since = totals["since_attach_s"].astype(float)
    return since.mask(totals["volume"].fillna("") != "") if "volume" in totals else since


def _falls(totals: pd.DataFrame, code: np.ndarray, parts: list[Samples], n_cells: int) -> list[str]:
    """For each cell, when the rate fell for good in the first of its trials that moved; "" if in none."""
    words = [""] * n_cells
    moved = totals["moved"].to_numpy(bool)
    if not moved.any():
        return words
    cell_of = dict(zip(totals.loc[moved, "trial"], code[moved], strict=True))
    fell = []
    for part in parts:
        chosen = np.array([name in cell_of for name in part.trial])
        of_moved = Samples(part.trial[chosen], part.second[chosen], part.iops[chosen])
        fell += list(falls(of_moved).dropna().itertuples(name=None))
    for trial, at_s, before, after in sorted(fell):
        cell = cell_of[trial]
        words[cell] = words[cell] or f"from {before:,.0f} to {after:,.0f} IOPS after {at_s:g} s in {trial}"
    return words


def _with_losses(checks: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Add failed attempts, places without a finished trial, and rows that occur twice."""
    trial = trial_keys(trials)
    place = [*trial[:-1], *KEYS, "replicate", "block", "repeat"]
    code, names = cell_codes(trials)
    ok = (trials["status"] == "ok").to_numpy()
    failed = np.flatnonzero(trials["status"] == "failed")
    failed = failed[~trials.iloc[failed].duplicated(trial).to_numpy()]
    broken = failed[~trials.iloc[failed].duplicated(place).to_numpy()]
    finished = np.zeros(len(broken), dtype=bool)
    if len(broken):
        places = pd.MultiIndex.from_frame(trials[place])
        finished = places[broken].isin(places[ok])
    counted = {
        "n_failed": failed,
        "n_lost": broken[~finished],
        "n_repeated": broken[finished],
        "n_places": np.flatnonzero(~trials.duplicated(place)),
        "n_repeated_rows": np.flatnonzero(ok & trials.duplicated([*trial, "direction"])),
    }
    every = pd.MultiIndex.from_frame(names)
    counts = {name: np.bincount(code[rows], minlength=len(names)) for name, rows in counted.items()}
    if len(every) > len(checks):
        checks = checks.reindex(checks.index.union(every, sort=False))
        numbers = [name for name in checks.columns if name.startswith("n_")]
        checks[numbers] = checks[numbers].fillna(0).astype(int)
    return checks.join(pd.DataFrame(counts, index=every))
