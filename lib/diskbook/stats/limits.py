"""Which limit a trial sits on, and what sets the rate of a cell.

A closed loop on a cap has latency = outstanding / cap: the latency then says nothing about the disk. So every
cell gets a label before anything is compared. All functions here are pure: tables in, tables out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design.series import Samples, flat_trials, moving_trials
from diskbook.design.totals import (
    CELL,
    LITTLE_TOLERANCE,
    little_error,
    little_ok,
    little_tolerance,
    measured_rows,
    paced,
    rate_kept,
    trial_totals,
)
from diskbook.design.vocabulary import CreditState, Label
from diskbook.facts.units import MB
from diskbook.stats import saturation

__all__ = [
    "LIMITS",
    "Limit",
    "binding_limit",
    "cell_codes",
    "flat_trials",
    "label_cells",
    "limit_values",
    "limit_words",
    "little_error",
    "little_ok",
    "little_tolerance",
    "measured_rows",
    "predicted_latency_ms",
    "trial_totals",
]

ON_LIMIT = 0.95
"""Share of a limit above which a trial may sit on it."""
OVERSHOOT = 1.05
"""Caps are seen about 2 % above nominal; a base limit exceeded by more than this is not in force."""
CONSUMED = 99.0
"""Percentage of a limit from which on the platform's metric says that it is reached."""
_MEDIANS = ["outstanding", "block_size_bytes", "iops", "mb_s", "lat_mean_ms", "share", "rate_offered"]
BY_PLATFORM = "the platform reports"
"""How evidence begins that the platform's metrics give."""
KNEE_FACTOR = 2.0
"""Multiple of the depth that a rate needs at the unqueued latency, beyond which depth buys nothing."""

SHOWS_A_CAP = "a second depth, or rates logged over 30 s and more (fio: --write_iops_log; DiskSpd: -D)"

Cell = Mapping[Any, Any]
"""A row of the table of cells."""


@dataclass(frozen=True)
class Limit:
    """A limit of a disk or a VM: its column in `trials`, its name in words, and what it counts."""

    column: str
    name: str
    counts: str
    burst_column: str | None = None

    @property
    def unit(self) -> str:
        """Unit in words."""
        return "IOPS" if self.counts == "iops" else "MB/s"

    def words(self, value: float) -> str:
        """Name the limit with its value, e.g. "disk limit of 5,000 IOPS"."""
        return f"{self.name} of {value:,.0f} {self.unit}"


LIMITS = (
    Limit("cap_disk_iops", "disk limit", "iops", "cap_disk_burst_iops"),
    Limit("cap_disk_mb_s", "disk limit", "mb_s", "cap_disk_burst_mb_s"),
    Limit("cap_disk_burst_iops", "disk burst limit", "iops"),
    Limit("cap_disk_burst_mb_s", "disk burst limit", "mb_s"),
    Limit("cap_vm_iops", "VM uncached limit", "iops", "cap_vm_burst_iops"),
    Limit("cap_vm_mb_s", "VM uncached limit", "mb_s", "cap_vm_burst_mb_s"),
    Limit("cap_vm_burst_iops", "VM burst limit", "iops"),
    Limit("cap_vm_burst_mb_s", "VM burst limit", "mb_s"),
    # Set only for disks whose host cache is on (their I/O counts against this limit as well), and for a
    # machine's local disk, which has no other.
    Limit("cap_vm_cached_iops", "VM cached/local limit", "iops"),
    Limit("cap_vm_cached_mb_s", "VM cached/local limit", "mb_s"),
    # Of the machines that keep copies of a volume (`volume_bound`).
    Limit("cap_nic_out_mb_s", "network limit for what is sent", "mb_s"),
    Limit("cap_nic_in_mb_s", "network limit for what is received", "mb_s"),
)

BY_COLUMN = {limit.column: limit for limit in LIMITS}


@dataclass(frozen=True)
class Rival:
    """A limit so close to the one that a cell sits on that the measured rate cannot tell them apart."""

    limit: Limit
    value: float
    share: float

    @property
    def words(self) -> str:
        """Name it with its value."""
        return self.limit.words(self.value)


def predicted_latency_ms(outstanding: float, cap_iops: float) -> float:
    """Latency of a closed loop on a cap, in ms: outstanding / cap (Little's law)."""
    return 1000.0 * outstanding / cap_iops if cap_iops > 0 else float("nan")


def binding_limit(totals: pd.DataFrame) -> pd.DataFrame:
    """Find for each trial the limit it may sit on.

    A limit may bind above 95 % of it. A base limit that is exceeded by more than 5 % while a burst limit is
    known is not in force: credit carries the trial above it. While credit is full, one that is exceeded at
    all gives way to any other that explains the rate. Nor is one of disk or uncached I/O in force that a disk
    with host cache exceeds: the cache answered.

    Returns by trial: `limit` (column of the limit, or ""), `limit_value`, `share` of that limit;
    without a limit, `share` is the largest share of any known limit.
    """
    shares = np.full((len(totals), len(LIMITS)), np.nan)
    on_limit = np.zeros_like(shares, dtype=bool)
    values = np.column_stack([limit_values(totals, limit.column) for limit in LIMITS])
    cached = ~np.isnan(limit_values(totals, "cap_vm_cached_iops"))
    full = (totals["credit_state"] == CreditState.FULL).to_numpy()
    weights = np.zeros_like(shares)
    for position, limit in enumerate(LIMITS):
        value = np.where(values[:, position] > 0, values[:, position], np.nan)
        share = totals[limit.counts].to_numpy(float) / value
        shares[:, position] = share
        on_limit[:, position] = share >= ON_LIMIT
        if limit.burst_column is not None:
            bursts = limit_values(totals, limit.burst_column) > value
            on_limit[:, position] &= ~(bursts & (share > OVERSHOOT))
            carried = bursts & full & (share > 1.0)
            share = np.where(carried, ON_LIMIT, share)
        weights[:, position] = share
        if "cached" not in limit.column:
            on_limit[:, position] &= ~(cached & (share > OVERSHOOT))
    return _chosen(on_limit, weights, shares, values, totals.index)


def _chosen(
    on_limit: np.ndarray, weights: np.ndarray, shares: np.ndarray, values: np.ndarray, index: pd.Index
) -> pd.DataFrame:
    """Of the limits that each trial may sit on, that of the greatest weight; arrays are [trial, limit]."""
    binds = on_limit.any(axis=1)
    best = np.where(on_limit, weights, -1.0).argmax(axis=1)
    rows = np.arange(len(index))
    known = np.where(np.isnan(shares), -1.0, shares).max(axis=1, initial=-1.0)
    return pd.DataFrame(
        {
            "limit": np.where(binds, np.array([limit.column for limit in LIMITS])[best], ""),
            "limit_value": np.where(binds, values[rows, best], np.nan),
            "share": np.where(binds, shares[rows, best], np.where(known < 0, np.nan, known)),
        },
        index=index,
    )


def _machine_unknown(totals: pd.DataFrame) -> np.ndarray:
    """Trials whose disk has limits, and whose machine has none that is known: neither IOPS nor MB/s."""
    disk: np.ndarray = ~np.isnan(limit_values(totals, "cap_disk_iops"))
    for column in ("cap_vm_iops", "cap_vm_mb_s", "cap_vm_cached_iops"):
        disk &= np.isnan(limit_values(totals, column))
    return disk


def limit_values(totals: pd.DataFrame, column: str) -> np.ndarray:
    """Values of a limit, one a trial; NaN where it is not known or the table has no such column."""
    if column not in totals:
        return np.full(len(totals), np.nan)
    return totals[column].to_numpy(float, na_value=np.nan)


def label_cells(
    trials: pd.DataFrame,
    series: pd.DataFrame | list[Samples] | None = None,
    consumed_pct: Mapping[tuple[str, str, str], float] | None = None,
    totals: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Label every cell (arm x workload) by what holds its rate: a limit that is known, or a queue, and why.

    `capped` needs more than a rate above 95 % of a limit: more depth must give no more rate, or the
    one-second rate must be flat, or the platform must report the limit as consumed. Without that the label
    is `near a cap`. A cell below every known limit is still `saturated, limit not known` where twice as many
    I/Os are in flight as its rate needs, and `saturation not assessable` where nothing tells (`saturation`);
    `below cap` are the others, or
    `limit not known` where the disk's limits are known and the machine's are not.

    - `consumed_pct`: Azure's consumed-percentage metric by (arm, workload, column of the base limit), where
      it was fetched.
    - `totals`: `trial_totals(trials)`, where it is known already.

    Returns one row a cell: `arm, workload, n_trials, n_on_limit, outstanding, iops, mb_s, lat_mean_ms, label,
    limit, limit_value, share, rivals, evidence, in_flight, needed, one_rate, shown, closed, predicted_lat_ms,
    binds`. `rivals` are limits within 5 % of the one named (`Rival`). `needed` are the I/Os in flight that
    the rate needs by the latency of a single one. `one_rate` names the depths that give one rate; `shown`
    says whether another load shows that no limit holds it; `binds` says what sets the rate, and only what
    something shows.
    """
    totals = trial_totals(trials) if totals is None else totals
    totals = totals.join(binding_limit(totals))
    totals["flat"] = totals["trial"].isin(flat_trials(series))
    totals["moves"] = totals["trial"].isin(moving_trials(series))
    code, names = cell_codes(totals)
    cells = _cells(totals, code, names)
    cells["rivals"] = pd.Series(_rivals(cells, totals, code), cells.index, dtype=object)
    queues = saturation.judge(totals, code, cells)
    cells = cells.join(queues[["in_flight", "needed", "one_rate", "shown", "closed"]])
    labels = queues["saturation"].where(queues["saturation"] != "", Label.BELOW_CAP).tolist()
    evidence, records = queues["queue"].tolist(), cells.to_dict("records")
    for place, cell in enumerate(records):
        if cell["n_on_limit"] > 0:
            evidence[place] = _evidence(cell, records, _consumed(cell, totals, consumed_pct or {}))
            labels[place] = Label.CAPPED if evidence[place] else Label.NEAR_A_CAP
    cells["label"], cells["evidence"] = labels, evidence
    open_ = (cells.pop("n_unlimited") > 0) & (cells["label"] == Label.BELOW_CAP)
    cells["label"] = cells["label"].mask(open_, Label.LIMIT_NOT_KNOWN)
    iops_limit = _limit_as_iops(cells)
    cells["predicted_lat_ms"] = 1000.0 * cells["outstanding"] / iops_limit.where(cells["n_on_limit"] > 0)
    cells["binds"] = [_binds(cell) for cell in cells.to_dict("records")]
    return cells


def limit_names(cell: Mapping[Any, Any] | pd.Series) -> list[str]:
    """Name the limit that a cell sits on, and any that are too close to tell from it."""
    own = BY_COLUMN[cell["limit"]].words(float(cell["limit_value"]))
    return [own, *(rival.words for rival in cell["rivals"])]


def limit_words(cell: Mapping[Any, Any] | pd.Series) -> str:
    """Name the limit a cell sits on, e.g. "disk limit of 5,000 IOPS", and those too close to tell from it."""
    equal = all(rival.value == cell["limit_value"] for rival in cell["rivals"])
    return (" and the " if equal else " or the ").join(limit_names(cell))


def _binds(cell: Mapping[Any, Any]) -> str:
    """Say what sets the rate of a cell: a limit, the rate offered, or the tool's own concurrency.

    A closed loop below every limit runs at threads x queue depth / latency: more of either gives more rate,
    until a limit is reached, and the rate says nothing that the latency does not. Only a higher rate of
    another load shows that.
    """
    if cell["label"] in (Label.CAPPED, Label.NEAR_A_CAP, Label.SATURATED):
        return _holds(cell)
    if cell["n_rate_kept"] == cell["n_trials"]:
        return f"the offered rate of {cell['rate_offered']:,.0f}/s"
    if cell["n_paced"] == cell["n_trials"]:
        return "the tool's own pauses, syncs or target of latency"
    return _concurrency(cell)


def _concurrency(cell: Mapping[Any, Any]) -> str:
    """Say whether a closed loop runs as fast as its own I/Os in flight let it, where something shows that."""
    in_flight = cell["iops"] * cell["lat_mean_ms"] / 1000
    if cell["n_little_ok"] < cell["n_trials"] and in_flight > (1 + LITTLE_TOLERANCE) * cell["outstanding"]:
        queue = f"{in_flight:,.3g} I/Os in flight, for a queue of {cell['outstanding']:,.0f}"
        return f"not known: rate times latency is {queue}; check the units"
    if cell["n_little_ok"] < cell["n_trials"] or not cell["iops"] > 0:
        return "not known: the queue was not kept full, or the offered rate not reached"
    if cell["one_rate"]:
        return "not known, likely a cap that nobody named"
    if cell["label"] == Label.UNASSESSED or not cell["shown"]:
        return "not known: the tool's own concurrency, or a limit that no table names"
    return f"the tool's own concurrency: {cell['outstanding']:.0f} outstanding / {cell['lat_mean_ms']:.2f} ms"


def _holds(cell: Mapping[Any, Any]) -> str:
    """Name the limit that holds a cell, or may hold it, as far as it is known."""
    if cell["label"] == Label.SATURATED:
        drained = 2 * cell["n_drained"] > cell["n_trials"]
        return "its burst limit, then its base as credit ran out" if drained else "a limit that is not known"
    words = limit_words(cell)
    return words if cell["label"] == Label.CAPPED else f"perhaps the {words}"


def _cells(totals: pd.DataFrame, code: np.ndarray, names: pd.DataFrame) -> pd.DataFrame:
    """Medians over the trials of each cell, and the limit that most of its trials sit on."""
    medians = totals[_MEDIANS].groupby(code).median()
    counts = {
        "n_trials": None,
        "n_rate_kept": rate_kept(totals),
        "n_little_ok": little_ok(totals),
        "n_drained": totals["credit_state"] == CreditState.DRAINED,
        "n_unlimited": _machine_unknown(totals),
        "n_paced": paced(totals),
    }
    cells = names.assign(
        **{name: np.bincount(code, which, len(names)).astype(int) for name, which in counts.items()},
        kind=totals["kind"].to_numpy()[np.unique(code, return_index=True)[1]],
    ).join(medians)
    on_limit = totals[["limit", "limit_value", "share", "flat"]].assign(cell=code)
    on_limit = on_limit[on_limit["limit"] != ""]
    cells["n_on_limit"] = np.bincount(on_limit["cell"], minlength=len(names))
    if on_limit.empty:
        return cells.assign(limit="", limit_value=np.nan, flat=False)
    per_limit = on_limit.groupby(["cell", "limit"])
    most = (
        per_limit[["limit_value", "share"]].median().assign(n=per_limit.size(), flat=per_limit["flat"].min())
    )
    most = most.reset_index().sort_values("n", ascending=False, kind="stable").drop_duplicates("cell")
    cells = cells.join(most.set_index("cell")[["limit", "limit_value", "share", "flat"]], rsuffix="_on")
    cells["share"] = cells.pop("share_on").fillna(cells["share"])
    cells["limit"] = cells["limit"].fillna("")
    cells["flat"] = cells["flat"].eq(True)
    return cells


def _rivals(cells: pd.DataFrame, totals: pd.DataFrame, code: np.ndarray) -> list[tuple[Rival, ...]]:
    """List for each cell the other limits that may hold it, within 5 % of the limit that it sits on.

    A limit that the rate exceeds by more than 5 % is none, nor a base limit that full credit lifts.
    """
    if (cells["limit"] == "").all():
        return [()] * len(cells)
    columns = {limit.column: limit_values(totals, limit.column) for limit in LIMITS}
    full = (totals["credit_state"] == CreditState.FULL).to_numpy()
    for limit in LIMITS:
        if limit.burst_column:
            lifted = full & (columns[limit.burst_column] > columns[limit.column])
            columns[limit.column] = np.where(lifted, np.nan, columns[limit.column])
    values = pd.DataFrame(columns).groupby(code).median().to_dict("records")
    return [_of_cell(cell, of_cell) for cell, of_cell in zip(cells.to_dict("records"), values, strict=True)]


def _of_cell(cell: Cell, values: Mapping[Any, float]) -> tuple[Rival, ...]:
    others = [limit for limit in LIMITS if cell["limit"] not in ("", limit.column)]
    rivals = [
        Rival(limit, values[limit.column], cell[limit.counts] / values[limit.column])
        for limit in others
        if values[limit.column] > 0
    ]
    near = OVERSHOOT - 1
    return tuple(
        rival for rival in rivals if rival.share <= OVERSHOOT and abs(cell["share"] / rival.share - 1) <= near
    )


def cell_codes(totals: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
    """Number the cells of a table in order of appearance: a code a row, and (arm, workload) by code."""
    arms, loads = (pd.factorize(totals[name]) for name in CELL)
    code, cells = pd.factorize(arms[0].astype(np.int64) * max(len(loads[1]), 1) + loads[0])
    pairs = {
        "arm": arms[1].take(cells // max(len(loads[1]), 1)),
        "workload": loads[1].take(cells % max(len(loads[1]), 1)),
    }
    return code, pd.DataFrame(pairs, columns=CELL)


def _limit_as_iops(cells: pd.DataFrame) -> pd.Series:
    mb_s = {limit.column for limit in LIMITS if limit.counts == "mb_s"}
    as_iops = cells["limit_value"] * MB / cells["block_size_bytes"]
    return cells["limit_value"].where(~cells["limit"].isin(mb_s), as_iops)


def _consumed(
    cell: Cell, totals: pd.DataFrame, consumed_pct: Mapping[tuple[str, str, str], float]
) -> float | None:
    """Percentage of its limit that the platform reports; the metric counts against the base limit always."""
    base = str(cell["limit"]).replace("_burst", "")
    percent = consumed_pct.get((cell["arm"], cell["workload"], base))
    if percent is None or base == cell["limit"]:
        return percent
    of_cell = (totals["arm"] == cell["arm"]) & (totals["workload"] == cell["workload"])
    share = float(np.median(limit_values(totals[of_cell], base))) / float(cell["limit_value"])
    return None if np.isnan(share) else percent * share


def _evidence(cell: Cell, cells: Sequence[Cell], consumed: float | None) -> str:
    """Say what corroborates that a cell sits on its limit; empty when nothing does."""
    if consumed is not None and consumed >= CONSUMED:
        return f"{BY_PLATFORM} {consumed:.0f} % of the limit as consumed"
    if cell["flat"]:
        return "its one-second rate varies by less than 0.3 %"
    of_arm = (other for other in cells if other["arm"] == cell["arm"])
    alike = ("kind", "block_size_bytes")
    return _depth_evidence(cell, [other for other in of_arm if all(other[n] == cell[n] for n in alike)])


def _depth_evidence(cell: Cell, like: Sequence[Cell]) -> str:
    """Look for a second depth that shows that more depth gives no more rate.

    Where one I/O at a time has nearly that rate, and is on no limit, the guest may serialise I/Os as well.
    """
    single = [row for row in like if row["outstanding"] == 1 < cell["outstanding"] and not row["n_on_limit"]]
    if any(cell["iops"] < saturation.ONE_AT_A_TIME * row["iops"] for row in single):
        return ""
    other = [
        row for row in like if row["limit"] == cell["limit"] and row["outstanding"] != cell["outstanding"]
    ]
    if any(abs(row["iops"] / cell["iops"] - 1.0) <= 0.03 for row in other):
        return "more depth gives no more rate"
    below = [row for row in like if row["n_on_limit"] == 0 and row["outstanding"] < cell["outstanding"]]
    if not below:
        return ""
    shallow = min(below, key=lambda row: row["outstanding"])
    needed = cell["iops"] * shallow["lat_mean_ms"] / 1000.0
    if not cell["outstanding"] >= KNEE_FACTOR * needed:  # also where no latency was recorded
        return ""
    return (
        f"this rate needs {needed:.1f} I/Os in flight at the {shallow['lat_mean_ms']:.2f} ms of depth "
        f"{shallow['outstanding']:.0f}; {cell['outstanding']:.0f} give no more"
    )
