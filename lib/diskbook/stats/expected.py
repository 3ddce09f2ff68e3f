"""Which cells may sit on a limit, as far as documents tell before a run, and have a trial for evidence. Pure.

Azure Monitor has one value a minute, so a trial of 30 s holds none. A cell that may sit on a limit is
therefore measured once more at the end, for `Design.evidence_s`: long enough for a whole minute, after all
that is compared, and after failover tests and losses, so that it draws no credit that they need.

`predicted` says what should set the rate of a cell, before looking at the rate: the lowest of all limits,
or concurrency.

Candidates are the limits in force by the credit of each trial (disk, VM uncached, VM cached; base or
burst), the rate that was offered, and what the tool's own I/Os in flight can give: outstanding / latency,
with the latency that the same arm showed with one outstanding (Little's law). Pure: tables in, tables out.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design import derived_workloads, schedule
from diskbook.design.model import LEAST_EVIDENCE_S, Arm, Scenario, Workload
from diskbook.design.totals import CELL, trial_totals
from diskbook.design.vocabulary import CreditState
from diskbook.facts import catalog, neighbours
from diskbook.facts.units import MB
from diskbook.stats.limits import LIMITS, ON_LIMIT, Limit, limit_values

LEAST_MS = 1.0
"""A little below the fastest single I/O that any article printed of a Premium SSD (1.02 ms)."""
LEAST_MS_OF: Mapping[str, float] = {"PremiumV2_LRS": 0.3, "UltraSSD_LRS": 0.3, catalog.EPHEMERAL: 0.07}
"""The same of other disks: printed are 0.330 ms of a Premium SSD v2 and 0.079 ms of a host cache."""

Cell = tuple[str, str]
"""Arm and workload."""
_BASE = [limit for limit in LIMITS if "burst" not in limit.column]


@dataclass(frozen=True)
class Reach:
    """The lowest limit of a cell, and how much of it the load may ask: 1 is all of it."""

    limit: Limit
    share: float

    @property
    def may_hold(self) -> bool:
        """Whether the cell may sit on that limit."""
        return self.share >= ON_LIMIT


@dataclass(frozen=True)
class Evidence:
    """Cells that have a trial for evidence, in the order of the scenario, and why each other one has none."""

    cells: tuple[Cell, ...]
    reasons: Mapping[Cell, str]


def of(scenario: Scenario) -> Evidence:
    """Choose the cells that are measured once more for the platform's metrics.

    On a disk each cell that may sit on a limit. Of volumes the platform tells what their machine consumes: of
    the cells that one machine's limit may hold, that which asks most of it.
    """
    setups = neighbours.volume_limits.documented(scenario) if scenario.volume else {}
    reached = {(arm.name, load.name): reach(scenario, arm, load, setups) for arm, load in scenario.cells}
    most = _most(scenario, reached)
    every = {
        (arm.name, load.name): _reason(scenario, arm, load, reached[arm.name, load.name], most)
        for arm, load in scenario.cells
    }
    chosen = tuple(cell for cell, why in every.items() if not why)
    return Evidence(chosen, {cell: why for cell, why in every.items() if why})


def blocks(scenario: Scenario) -> list[schedule.Block]:
    """Plan the trials for evidence of a scenario; none without `design.evidence_s`."""
    return schedule.evidence_blocks(scenario, of(scenario).cells) if scenario.design.evidence_s else []


def reasons(scenario: Scenario, made: Collection[Cell]) -> dict[Cell, str]:
    """Say of each cell why it has no trial for evidence, where it has none.

    - `made`: cells whose trial for evidence succeeded.
    """
    if not scenario.design.evidence_s:
        return {}
    chosen = of(scenario)
    lacks = "its trial for evidence failed, or was not made"
    lacking = {cell: lacks for cell in chosen.cells if cell not in made}
    return {cell: f"none: {why}" for cell, why in {**chosen.reasons, **lacking}.items()}


def seconds(scenario: Scenario, start_s: float = 0.6) -> float:
    """Time that the trials for evidence of one replicate take, in seconds; of that which has most of them."""
    by_replicate: dict[int, float] = {}
    for block in blocks(scenario):
        for trial in block.trials:
            load = schedule.offered(scenario, trial)
            by_replicate[block.replicate] = (
                by_replicate.get(block.replicate, 0.0) + load.ramp_s + load.runtime_s + start_s
            )
    return max(by_replicate.values(), default=0.0)


def reach(scenario: Scenario, arm: Arm, load: Workload, setups: Mapping[str, Any]) -> Reach | None:
    """Find the lowest documented limit of a cell, without bursts, and how much of it the load may ask.

    A closed loop makes at most outstanding / latency, with a latency below all that were printed. None where
    no limit is known. `setups` are those of volumes (`volume_setups.documented`).
    """
    rates = list(_limits(scenario, arm, load, setups))
    if not rates:
        return None
    least_ms = LEAST_MS_OF.get(scenario.disk_of(arm).sku, LEAST_MS)
    asked = min(1000.0 * load.outstanding / least_ms, load.rate or math.inf)
    limit, lowest = min(rates, key=lambda item: item[1])
    return Reach(limit, asked / lowest)


def _limits(
    scenario: Scenario, arm: Arm, load: Workload, setups: Mapping[str, Any]
) -> Iterator[tuple[Limit, float]]:
    """Base limits of a cell, as IOPS of its block size."""
    values: Mapping[str, float | None] = (
        neighbours.volume_limits.caps_of(setups[arm.name], load)
        if arm.volume
        else derived_workloads.disk_caps(scenario, arm)
    )
    for limit in _BASE:
        value = values.get(limit.column)
        if value is not None and value > 0:
            yield limit, value * (1.0 if limit.counts == "iops" else MB / load.block_size_bytes)


def _most(scenario: Scenario, reached: Mapping[Cell, Reach | None]) -> dict[tuple[str, str], Cell]:
    """Of each limit of a machine the cell on a volume that asks most of it."""
    most: dict[tuple[str, str], Cell] = {}
    for arm, load in scenario.cells:
        own = reached[arm.name, load.name]
        if not arm.volume or own is None or _unfit(scenario, load):
            continue
        key = arm.machine, own.limit.column
        before = reached[most[key]] if key in most else None
        if before is None or own.share > before.share:
            most[key] = arm.name, load.name
    return most


def _reason(
    scenario: Scenario, arm: Arm, load: Workload, own: Reach | None, most: Mapping[tuple[str, str], Cell]
) -> str:
    """Say why a cell has no trial for evidence; empty where it has one."""
    if own is None:
        return "no limit is known"
    if not own.may_hold:
        return "by its depth or rate below every limit"
    unfit = _unfit(scenario, load)
    if unfit:
        return unfit
    return _of_pool(arm, load, own.limit, most) if arm.volume else ""


def _of_pool(arm: Arm, load: Workload, limit: Limit, most: Mapping[tuple[str, str], Cell]) -> str:
    """Say why a cell on a volume has no trial for evidence; empty where it has one."""
    if "vm" not in limit.column:
        return "the disks of a pool may hold it, of which the platform's metrics say nothing here"
    chosen = most[arm.machine, limit.column]
    return "" if chosen == (arm.name, load.name) else f"{', '.join(chosen)} asks most of that limit of the VM"


def _unfit(scenario: Scenario, load: Workload) -> str:
    """Say why a load needs no longer trial, or cannot have one; empty where it can."""
    if load.runtime_s >= LEAST_EVIDENCE_S:
        return f"its own trials of {load.runtime_s:g} s hold whole minutes"
    if load.name.endswith(derived_workloads.PROBE_SUFFIX):
        return "it is a probe, which nothing is compared with"
    if load.verbatim is not None:
        return "its line says how long it runs"
    if load.region == "unwritten":
        return "a longer trial would come to blocks that were written before"
    if load.cache_state == "cold":
        return "a longer trial would not stay with a cold cache"
    return ""


CONCURRENCY = "concurrency"
OFFERED = "offered"
UNKNOWN = "unknown"
PREDICTED_COLUMNS = [
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

    - `on_demand`: arms whose disk bursts on demand: that burst needs no credit, whatever is left in the VM's
      bucket.

    Returns one row a cell (`PREDICTED_COLUMNS`), medians over its trials: `by` is a column of
    `limits.LIMITS`, "concurrency", "offered", or "unknown" where nothing is known that could bind or where
    the credit ran out within the trial; `limit` is the lowest limit, whether or not it binds, with its value
    in its own unit and as IOPS of this block size. Limits are nominal: Azure lets about 2 % more pass.
    """
    totals = trial_totals(trials)
    if totals.empty:
        return pd.DataFrame(columns=PREDICTED_COLUMNS)
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
    words = cells[["by", "limit"]].agg(_most_frequent)
    return cells.median(numeric_only=True).join(words).reset_index()[PREDICTED_COLUMNS]


def _lowest_limit(totals: pd.DataFrame, free: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Column of the lowest limit in force on each trial, its IOPS (NaN where none is known) and its value."""
    rates = np.column_stack([_in_force(totals, limit, free) for limit in LIMITS])
    values = np.column_stack([limit_values(totals, limit.column) for limit in LIMITS])
    place = np.where(np.isnan(rates), np.inf, rates).argmin(axis=1)
    trial = np.arange(len(totals))
    names = np.array([limit.column for limit in LIMITS])[place]
    return names, rates[trial, place], values[trial, place]


def _most_frequent(column: pd.Series) -> str:
    return str(Counter(sorted(column)).most_common(1)[0][0])


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
