"""What is known of the guests of each cell: their facts, and how busy they were over its trials. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from diskbook.design.totals import CELL, trial_keys
from diskbook.facts.quantities import NanEqual

STEAL_PCT, CORE_PCT = 1.0, 90.0
"""More than this is no measurement of a disk: the host took the processor, or one core had no time left."""
FACTS = {
    "kernel": "kernel",
    "image": "image",
    "cpu_model": "CPU",
    "driver": "driver",
    "ioengine": "I/O engine",
    "scheduler": "I/O scheduler",
    "write_cache": "write cache",
    "fua": "FUA",
    "rotational": "rotational",
    "nr_requests": "nr_requests",
    "hardware_queues": "hardware queues",
    "wbt_lat_usec": "write-back throttling in us",
    "logical_block_size_bytes": "logical block in bytes",
    "power_plan": "power plan",
}
"""Columns of the table `guest` that may decide a trial and should not differ between arms, in words."""
OF_DEVICE = ("driver", "write_cache", "fua", "rotational", "hardware_queues", "logical_block_size_bytes")
"""Those that a device has by its kind; nobody sets them in the guest."""


@dataclass(frozen=True, eq=False)
class CellGuest(NanEqual):
    """Guests of one cell.

    Attributes
    ----------
    n_trials, n_steal, n_core
        Trials with a row of the table `guest`; those of them of which steal, and the busiest core, are known.
    n_stolen, n_busy
        Those over `STEAL_PCT` and `CORE_PCT`.
    steal_worst, core_worst
        In percent; NaN where none is known.
    facts
        By column of `FACTS` the values met, sorted, in words; those that nobody could tell are left out.
    """

    n_trials: int
    n_steal: int
    n_core: int
    n_stolen: int
    n_busy: int
    steal_worst: float
    core_worst: float
    facts: Mapping[str, tuple[str, ...]]


def by_cell(rows: pd.DataFrame, guest: pd.DataFrame | None) -> dict[tuple[str, str], CellGuest]:
    """Gather the guests of every cell (arm, workload) from the rows of finished trials; empty without any."""
    return {(arm, load): cell for (arm, load), cell in _groups(rows, guest, CELL).items()}


def by_arm(trials: pd.DataFrame, guest: pd.DataFrame) -> dict[str, CellGuest]:
    """Gather the guests of every arm, over all its finished trials."""
    finished = trials[trials["status"] == "ok"]
    return {arm: cell for (arm,), cell in _groups(finished, guest, ["arm"]).items()}


def _groups(
    rows: pd.DataFrame, guest: pd.DataFrame | None, keys: list[str]
) -> dict[tuple[str, ...], CellGuest]:
    if guest is None or guest.empty:
        return {}
    trial = trial_keys(rows, guest)
    joined = rows.drop_duplicates(trial)[[*trial, *keys]].merge(guest, on=trial)
    groups = joined.groupby(keys, sort=False)
    return {tuple(map(str, key)): _cell(of_key) for key, of_key in groups}


def _cell(rows: pd.DataFrame) -> CellGuest:
    steal, core = (rows[name].dropna() for name in ("steal_pct", "busiest_core_pct"))
    facts = {name: tuple(sorted({_word(value) for value in rows[name].dropna()})) for name in FACTS}
    return CellGuest(
        n_trials=len(rows),
        n_steal=len(steal),
        n_core=len(core),
        n_stolen=int((steal > STEAL_PCT).sum()),
        n_busy=int((core > CORE_PCT).sum()),
        steal_worst=float(steal.max()) if len(steal) else math.nan,
        core_worst=float(core.max()) if len(core) else math.nan,
        facts={name: values for name, values in facts.items() if values},
    )


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
