"""What limited each cell: the lowest limit in force, burst credit, and what the platform reports. Pure.

Also latency against load: trials that held a rate, with the cap of their arm. Pure.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design import grid, held_rate
from diskbook.design.totals import CELL, measured_rows, rate_kept, trial_keys, trial_totals
from diskbook.design.vocabulary import CreditState, Provenance
from diskbook.facts.metrics import METRICS
from diskbook.facts.units import MB
from diskbook.stats import expected, platform as platform_metrics
from diskbook.stats.limits import BY_COLUMN, LIMITS, limit_values

NOT_FETCHED = "not fetched"
NO_MINUTE = "none: no whole minute in a trial"
Cell = tuple[str, str]
"""Arm and workload."""
_SHORT = {
    metric.name: {"disk": "disk", "uncached": "VM", "cached": "VM cached"}[metric.path]
    + {"iops": " IOPS", "mb_s": " MB/s"}[metric.counts]
    + (" credit used" if metric.credit else "")
    for metric in sorted(METRICS, key=lambda metric: metric.credit)
}


def with_evidence(
    cells: pd.DataFrame,
    trials: pd.DataFrame,
    reported: pd.DataFrame,
    on_demand: Collection[str] = (),
    ledger: Iterable[Mapping[str, Any]] = (),
    alone: pd.DataFrame | None = None,
    reasons: Mapping[Cell, str] | None = None,
) -> pd.DataFrame:
    """Add to labelled cells what else is known of their limits.

    - `trials`, `reported`: tables of the run: trials and metrics.
    - `on_demand`: arms whose disk bursts on demand, without credit.
    - `ledger`: of the run: what went wrong when its metrics were fetched.
    - `alone`: trials that were made for the platform's metrics alone, which say nothing else here.
    - `reasons`: why cells have no such trial, as far as that is known (`expected.reasons`).

    Returns `cells` with `in_force` (the lowest limit in force for this load, in words), `of_limit` (share of
    it), `credit` (in words), `platform` (the metrics of the cell, medians of trials), `agrees` (in how many
    trials the platform and the rate say the same; "" where no trial has metrics) and `platform_note` (what
    has to be known of the metrics, the same in all rows).
    """
    events = [event for event in ledger if event["event"] == "metrics"]
    why = NOT_FETCHED if not events or events[-1]["status"] == "failed" else NO_MINUTE
    every = with_trials_for(trials, alone)
    every = every[pd.MultiIndex.from_frame(every[CELL]).isin(pd.MultiIndex.from_frame(trials[CELL]))]
    platform = _platform(every, reported, why, reasons or {})
    parts = [_limits(trials, on_demand), _credit(trials), platform]
    joined = cells
    for part in parts:
        joined = joined.merge(part, on=CELL, how="left", validate="one_to_one")
    words = ["in_force", "credit", "platform", "agrees"]
    joined[words] = joined[words].fillna("")
    return joined.assign(platform_note=_note(reported, events))


def with_trials_for(trials: pd.DataFrame, alone: pd.DataFrame | None) -> pd.DataFrame:
    """Trials of a run with those that were made for the platform's metrics alone."""
    return trials if alone is None or alone.empty else pd.concat([trials, alone], ignore_index=True)


def _note(reported: pd.DataFrame, events: Sequence[Mapping[str, Any]]) -> str:
    """Say whose metrics these are where not Azure's, and what the last fetching of them lacked."""
    kinds = sorted(set(reported["provenance"]) - {Provenance.AZURE})
    last = [event.get("error") for event in events][-1:]
    whose = f"the platform's metrics are {'+'.join(kinds)}, not Azure's" if kinds else ""
    return "; ".join(filter(None, [whose, grain_words(reported), *last]))


def grain_words(reported: pd.DataFrame) -> str:
    """Say that the emulator's metrics are finer than Azure's; empty where they are not."""
    played = reported[reported["provenance"] == Provenance.EMULATED]
    grain_s = 60 if played.empty else int(played["grain_s"].min())
    if grain_s >= 60:
        return ""
    every = "every second" if grain_s == 1 else f"every {grain_s} s"
    return f"the emulator's metrics come {every}; Azure gives one a minute"


def _limits(trials: pd.DataFrame, on_demand: Collection[str]) -> pd.DataFrame:
    cells = expected.predicted(trials, on_demand)
    words = [
        BY_COLUMN[column].words(value) if column else "none known"
        for column, value in zip(cells["limit"], cells["limit_value"], strict=True)
    ]
    of_limit = cells["measured_iops"] / cells["limit_iops"]
    return cells[CELL].assign(in_force=np.array(words, dtype=object), of_limit=of_limit)


def _credit(trials: pd.DataFrame) -> pd.DataFrame:
    """States of the trials of each cell, and the least credit any of them began with."""
    totals = trial_totals(trials)
    if "credit_left_share" not in totals:
        totals["credit_left_share"] = np.nan
    rows = []
    for place, part in totals.groupby(CELL, sort=False):
        states, least = Counter(part["credit_state"]), part["credit_left_share"].min()
        words = " and ".join(states) if len(states) < 3 else f"{len(states)} states"
        partly_used = not np.isnan(least) and least < 0.995
        left = (
            f", {100 * least:.0f} % left or more" if partly_used and set(states) != {CreditState.NONE} else ""
        )
        rows.append((*place, f"{words}{left}"))
    return pd.DataFrame(rows, columns=[*CELL, "credit"])


def _platform(
    trials: pd.DataFrame, reported: pd.DataFrame, why: str, reasons: Mapping[Cell, str]
) -> pd.DataFrame:
    """Consumed limits and used credit above 0 %, the highest of each trial; why there is nothing, else."""
    judged = platform_metrics.evidence(trials, reported)
    of_trials = platform_metrics.of_trials(trials, reported)
    order = of_trials["metric"].map(list(_SHORT).index).rename("order")
    medians = of_trials.groupby([*CELL, order, "metric"])["maximum"].median()
    reported_words: dict[tuple[Any, ...], list[str]] = {}
    for arm, load, _, name, value in medians.reset_index().itertuples(index=False):
        if value >= 0.5:
            reported_words.setdefault((arm, load), []).append(f"{_SHORT[name]} {value:.0f} %")
    rows = []
    cells = judged.groupby(CELL, sort=False).agg({"agrees": list, "words": "first"})
    for place, agreed, first in cells.itertuples():
        known = [word for word in agreed if word]
        nothing = why if why == NOT_FETCHED and reported.empty else reasons.get(place, "")
        nothing = nothing or (first if len(reported) else why)
        words = ", ".join(reported_words.get(place, ["idle"])) if known else nothing
        agrees = f"{known.count('yes')} of {len(known)}" if known else ""
        rows.append((*place, words, agrees))
    return pd.DataFrame(rows, columns=[*CELL, "platform", "agrees"])


LEAST_RATES = 3
"""Rates that a curve has at least."""
CURVE = ["kind", "arm"]
CURVE_COLUMNS = [*CURVE, "workload", "trial", "rate_offered", "iops", "kept", "lat_p50_ms", "lat_p99_ms"]
CURVE_COLUMNS += ["p99_lacks", "cap_iops", "cap_words", "from_due"]
_ON_DEMAND = {"cap_disk_iops": "cap_disk_burst_iops", "cap_disk_mb_s": "cap_disk_burst_mb_s"}


def load_curve_points(
    trials: pd.DataFrame, kinds: Mapping[str, str], on_demand: Collection[str] = ()
) -> pd.DataFrame:
    """Trials at held rates, of which an arm has three or more of one kind of load.

    - `kinds`: loads of a held rate by name, each with the kind in words that loads of other rates share.
    - `on_demand`: arms whose disk bursts on demand: their limit is that of the burst.

    Returns a row a trial, and of mixed loads a row a direction. `kept` says whether the rate was held;
    `cap_iops` is the lowest limit that lasts, NaN where none is known; `from_due` says whether latencies
    count from when each I/O was due (`tables.held_rate`), which then holds for the whole curve. Where
    `p99_lacks` says why a trial shows no p99 (`tables.enough`), that is NaN.
    """
    rows = measured_rows(trials)
    rows = rows[rows["workload"].isin(list(kinds)) & rows["rate_offered"].notna()]
    rows = rows[rows["direction"].isin(["read", "write"])]
    if rows.empty:
        return pd.DataFrame(columns=CURVE_COLUMNS)
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
    made["p99_lacks"] = grid.tail_lacks(rows, 0.99)
    made["lat_p99_ms"] = made["lat_p99_ms"].where(made["p99_lacks"] == "")
    starts = held_rate.starts(alike)
    made["from_due"] = made["kind"].map(starts) == held_rate.Start.INTENDED
    return _curves(made[CURVE_COLUMNS])


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
