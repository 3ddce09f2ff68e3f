"""Which limit a trial sits on, and whether its numbers agree with each other (Little's law).

A closed loop on a cap has latency = outstanding / cap: the latency then says nothing about the disk. So every
cell gets a label before anything is compared. All functions here are pure: tables in, tables out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

ON_LIMIT = 0.95
"""Share of a limit above which a trial may sit on it."""
OVERSHOOT = 1.05
"""Caps are seen about 2 % above nominal; a base limit exceeded by more than this is not in force."""
LITTLE_TOLERANCE = 0.01
CLIENT_MS = 0.02
"""Time a client may take for itself between two operations; seen with fio: 2 to 10 microseconds."""
RATE_TOLERANCE = 0.005
FLAT_CV = 0.003
FLAT_SAMPLES = 30
KNEE_FACTOR = 2.0
"""Multiple of the depth that a rate needs at the unqueued latency, beyond which depth buys nothing."""

TRIAL_COLUMNS = [
    "trial",
    "replicate",
    "block",
    "position",
    "arm",
    "workload",
    "machine_id",
    "disk_id",
    "physical_zone",
    "runtime_s",
    "outstanding",
    "block_size_bytes",
    "rate_offered",
    "credit_state",
]


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
)


def predicted_latency_ms(outstanding: float, cap_iops: float) -> float:
    """Latency of a closed loop on a cap, in ms: outstanding / cap (Little's law)."""
    return 1000.0 * outstanding / cap_iops if cap_iops > 0 else float("nan")


def measured_rows(trials: pd.DataFrame) -> pd.DataFrame:
    """Keep what the load waited for: rows of finished trials, and of a commit trial the commit row alone.

    A commit is a write and the sync that makes it durable; its write and sync rows are parts of one wait.
    Repeated rows of a trial and direction are dropped, the last attempt kept.
    """
    rows = trials[(trials["status"] == "ok") & trials["direction"].isin(["read", "write", "commit"])]
    if "attempt" in rows:
        rows = rows.sort_values("attempt", kind="stable")
    rows = rows.drop_duplicates(["trial", "direction"], keep="last")
    commits = rows.loc[rows["direction"] == "commit", "trial"]
    return rows[(rows["direction"] == "commit") | ~rows["trial"].isin(commits)]


def trial_totals(trials: pd.DataFrame) -> pd.DataFrame:
    """Add reads and writes of each trial, since limits and Little's law hold for both together.

    Returns
    -------
    pandas.DataFrame
        One row a finished trial: its keys and limits, `iops`, `mb_s`, `in_flight` (IOPS x mean total latency,
        by Little's law the mean number of I/Os in flight), `lat_mean_ms` (weighted by rate) and `operations`
        (that one unit of the rate consists of: 2 for a commit).
    """
    rows = measured_rows(trials).copy()
    rows["in_flight"] = rows["iops"] * rows["lat_mean_ms"] / 1000.0
    rows["mb_s"] = rows["throughput_mb_s"].fillna(rows["iops"] * rows["block_size_bytes"] / 1e6)
    wanted = [*TRIAL_COLUMNS, *(limit.column for limit in LIMITS)]
    for column in wanted:
        if column not in rows:
            rows[column] = np.nan
    groups = rows.groupby("trial", sort=False)
    # A missing number must stay missing: a sum over NaN would pass as a small one.
    sums = groups[["iops", "mb_s", "in_flight"]].sum(min_count=1)
    sums = sums.where(groups[["iops", "mb_s", "in_flight"]].count().eq(groups.size(), axis=0))
    firsts = rows.drop_duplicates("trial").set_index("trial")[[name for name in wanted if name != "trial"]]
    totals = firsts.join(sums).reset_index()
    commits = rows.loc[rows["direction"] == "commit", "trial"]
    totals["operations"] = np.where(totals["trial"].isin(commits), 2, 1)
    totals["lat_mean_ms"] = 1000.0 * totals["in_flight"] / totals["iops"].where(totals["iops"] > 0)
    return totals


def little_error(totals: pd.DataFrame) -> pd.Series:
    """Relative distance of the I/Os in flight from the outstanding ones: (IOPS x latency - N) / N."""
    return totals["in_flight"] / totals["outstanding"] - 1.0


def little_tolerance(totals: pd.DataFrame) -> pd.Series:
    """Tolerated relative distance: 1 % + latency / runtime, since a trial ends with its queue draining.

    Seen at a cap of 5,100 with 256 outstanding: 249 in flight over 1 s, 252.7 over 2 s, 255.4 over 10 s.
    At depth 1 nothing is in flight while the client prepares its next operation, twice in a commit: 20
    microseconds each are allowed for (1.5 % at 1.3 ms, nothing to speak of in a queue).
    """
    drain = totals["lat_mean_ms"] / 1000.0 / totals["runtime_s"]
    return LITTLE_TOLERANCE + drain + CLIENT_MS * totals["operations"] / totals["lat_mean_ms"]


def little_ok(totals: pd.DataFrame) -> pd.Series:
    """Say for each trial whether it kept its queue full, or kept its rate where a rate was offered.

    A closed loop holds `outstanding` I/Os in flight. A rate-limited trial must reach the rate within 0.5 %
    with clearly fewer in flight than it may have, else it was a closed loop after all.
    """
    closed = little_error(totals).abs() <= little_tolerance(totals)
    offered = totals["rate_offered"]
    on_rate = (totals["iops"] / offered - 1.0).abs() <= RATE_TOLERANCE
    on_rate &= totals["in_flight"] < 0.9 * totals["outstanding"]
    return closed.where(offered.isna(), on_rate).astype(bool)


def binding_limit(totals: pd.DataFrame) -> pd.DataFrame:
    """Find for each trial the limit it may sit on.

    A limit may bind above 95 % of it. A base limit that is exceeded by more than 5 % while a burst limit is
    known is not in force: credit carries the trial above it.

    Returns
    -------
    pandas.DataFrame
        Index as `totals`; `limit` (column of the limit, or ""), `limit_value`, `share` of that limit;
        without a limit, `share` is the largest share of any known limit.
    """
    shares = np.full((len(totals), len(LIMITS)), np.nan)
    on_limit = np.zeros_like(shares, dtype=bool)
    values = np.column_stack([totals[limit.column].astype(float) for limit in LIMITS])
    for position, limit in enumerate(LIMITS):
        value = np.where(values[:, position] > 0, values[:, position], np.nan)
        share = totals[limit.counts].to_numpy(float) / value
        shares[:, position] = share
        on_limit[:, position] = share >= ON_LIMIT
        if limit.burst_column is not None:
            bursts = totals[limit.burst_column].to_numpy(float) > value
            on_limit[:, position] &= ~(bursts & (share > OVERSHOOT))
    found = on_limit.any(axis=1)
    best = np.where(on_limit, shares, -1.0).argmax(axis=1)
    rows = np.arange(len(totals))
    known = np.where(np.isnan(shares), -1.0, shares).max(axis=1, initial=-1.0)
    return pd.DataFrame(
        {
            "limit": np.where(found, np.array([limit.column for limit in LIMITS])[best], ""),
            "limit_value": np.where(found, values[rows, best], np.nan),
            "share": np.where(found, shares[rows, best], np.where(known < 0, np.nan, known)),
        },
        index=totals.index,
    )


def flat_trials(series: pd.DataFrame | None) -> set[str]:
    """Trials whose one-second rate hardly moves (CV under 0.3 % over 30 samples or more): a cap's mark."""
    if series is None or series.empty:
        return set()
    rows = series[series["direction"].isin(["read", "write"])]
    per_second = rows.groupby(["trial", "second"])["iops"].sum()
    stats = per_second.groupby(level=0).agg(["mean", "std", "count"])
    flat = (stats["count"] >= FLAT_SAMPLES) & (stats["std"] < FLAT_CV * stats["mean"])
    return set(stats.index[flat])


def label_cells(
    trials: pd.DataFrame,
    series: pd.DataFrame | None = None,
    consumed_pct: Mapping[tuple[str, str], float] | None = None,
) -> pd.DataFrame:
    """Label every cell (arm x workload) `below cap`, `capped` or `near a cap`, with the limit and why.

    `capped` needs more than a rate above 95 % of a limit: more depth must give no more rate, or the
    one-second rate must be flat, or the platform must report the limit as consumed. Without that the label
    is `near a cap`.

    Parameters
    ----------
    trials, series
        Tables of a run.
    consumed_pct
        Azure's consumed-percentage metric by (arm, workload), where it was fetched.

    Returns
    -------
    pandas.DataFrame
        One row a cell: `arm, workload, n_trials, n_on_limit, outstanding, iops, mb_s, lat_mean_ms, label,
        limit, limit_value, share, evidence, predicted_lat_ms`.
    """
    totals = trial_totals(trials)
    totals = totals.join(binding_limit(totals))
    totals["kind"] = _kinds(trials, totals["trial"])
    totals["flat"] = totals["trial"].isin(flat_trials(series))
    cells = _cells(totals)
    cells["label"], cells["evidence"] = "below cap", ""
    for index, cell in cells[cells["n_on_limit"] > 0].iterrows():
        evidence = _evidence(cell, cells, (consumed_pct or {}).get((cell["arm"], cell["workload"])))
        cells.loc[index, ["label", "evidence"]] = "capped" if evidence else "near a cap", evidence
    iops_limit = _limit_as_iops(cells)
    cells["predicted_lat_ms"] = 1000.0 * cells["outstanding"] / iops_limit.where(cells["n_on_limit"] > 0)
    return cells


def limit_words(cell: Mapping[Any, Any] | pd.Series) -> str:
    """Name the limit a cell sits on, e.g. "disk limit of 5,000 IOPS"."""
    limit = next(item for item in LIMITS if item.column == cell["limit"])
    return limit.words(float(cell["limit_value"]))


def _kinds(trials: pd.DataFrame, order: pd.Series) -> np.ndarray:
    """Directions of each trial as one word, so that only like loads are compared over depth."""
    rows = measured_rows(trials)
    bits = rows["direction"].map({"read": 1, "write": 2, "commit": 4}).groupby(rows["trial"]).sum()
    words = bits.map({1: "read", 2: "write", 3: "read+write", 4: "commit"})
    return words.reindex(order).to_numpy()


def _cells(totals: pd.DataFrame) -> pd.DataFrame:
    """Medians over the trials of each cell, and the limit that most of its trials sit on."""
    keys = ["arm", "workload"]
    groups = totals.groupby(keys, sort=False)
    medians = groups[["outstanding", "block_size_bytes", "iops", "mb_s", "lat_mean_ms", "share"]].median()
    cells = groups.agg(n_trials=("trial", "size"), kind=("kind", "first")).join(medians)
    on_limit = totals[totals["limit"] != ""]
    cells["n_on_limit"] = on_limit.groupby(keys).size().reindex(cells.index, fill_value=0)
    per_limit = on_limit.groupby([*keys, "limit"], as_index=False).agg(
        n=("trial", "size"),
        limit_value=("limit_value", "median"),
        on_share=("share", "median"),
        flat=("flat", "all"),
    )
    most = per_limit.sort_values("n", ascending=False, kind="stable").drop_duplicates(keys).set_index(keys)
    cells = cells.join(most[["limit", "limit_value", "on_share", "flat"]])
    cells["share"] = cells.pop("on_share").fillna(cells["share"])
    cells["limit"] = cells["limit"].fillna("")
    cells["flat"] = cells["flat"].eq(True)
    return cells.reset_index()


def _limit_as_iops(cells: pd.DataFrame) -> pd.Series:
    mb_s = {limit.column for limit in LIMITS if limit.counts == "mb_s"}
    as_iops = cells["limit_value"] * 1e6 / cells["block_size_bytes"]
    return cells["limit_value"].where(~cells["limit"].isin(mb_s), as_iops)


def _evidence(cell: pd.Series, cells: pd.DataFrame, consumed: float | None) -> str:
    """Say what corroborates that a cell sits on its limit; empty when nothing does."""
    if consumed is not None and consumed >= 100 * ON_LIMIT:
        return f"the platform reports {consumed:.0f} % of the limit as consumed"
    if cell["flat"]:
        return "its one-second rate varies by less than 0.3 %"
    like = cells[
        (cells["arm"] == cell["arm"])
        & (cells["kind"] == cell["kind"])
        & (cells["block_size_bytes"] == cell["block_size_bytes"])
    ]
    return _depth_evidence(cell, like)


def _depth_evidence(cell: pd.Series, like: pd.DataFrame) -> str:
    """Look for a second depth that shows that more depth gives no more rate."""
    other = like[(like["limit"] == cell["limit"]) & (like["outstanding"] != cell["outstanding"])]
    if ((other["iops"] / cell["iops"] - 1.0).abs() <= 0.03).any():
        return "more depth gives no more rate"
    below = like[(like["n_on_limit"] == 0) & (like["outstanding"] < cell["outstanding"])]
    if below.empty:
        return ""
    shallow = below.loc[below["outstanding"].idxmin()]
    needed = cell["iops"] * shallow["lat_mean_ms"] / 1000.0
    if cell["outstanding"] < KNEE_FACTOR * needed:
        return ""
    return (
        f"this rate needs {needed:.1f} I/Os in flight at the {shallow['lat_mean_ms']:.2f} ms of depth "
        f"{shallow['outstanding']:.0f}; {cell['outstanding']:.0f} give no more"
    )
