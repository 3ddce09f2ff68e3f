"""What limited each cell: the lowest limit in force, burst credit, and what the platform reports. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design.totals import CELL, trial_totals
from diskbook.design.vocabulary import CreditState, Provenance
from diskbook.facts.metrics import METRICS
from diskbook.stats import platform as platform_metrics, predict
from diskbook.stats.limits import BY_COLUMN

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

    Parameters
    ----------
    cells
        From `limits.label_cells`.
    trials, reported
        Tables of the run: trials and metrics.
    on_demand
        Arms whose disk bursts on demand, without credit.
    ledger
        Of the run: what went wrong when its metrics were fetched.
    alone
        Trials that were made for the platform's metrics alone, which say nothing else here.
    reasons
        Why cells have no such trial, as far as that is known (`expected.reasons`).

    Returns
    -------
    pandas.DataFrame
        `cells` with `in_force` (the lowest limit in force for this load, in words), `of_limit` (share of it),
        `credit` (in words), `platform` (the metrics of the cell, medians of trials), `agrees` (in how many
        trials the platform and the rate say the same; "" where no trial has metrics) and `platform_note`
        (what has to be known of the metrics, the same in all rows).
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
    cells = predict.predicted(trials, on_demand)
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
    for (arm, load), part in judged.groupby(CELL, sort=False):
        place, known = (str(arm), str(load)), part[part["agrees"] != ""]
        nothing = why if why == NOT_FETCHED and reported.empty else reasons.get(place, "")
        nothing = nothing or (part["words"].iloc[0] if len(reported) else why)
        words = ", ".join(reported_words.get(place, ["idle"])) if len(known) else nothing
        agrees = f"{(known['agrees'] == 'yes').sum()} of {len(known)}" if len(known) else ""
        rows.append((*place, words, agrees))
    return pd.DataFrame(rows, columns=[*CELL, "platform", "agrees"])
