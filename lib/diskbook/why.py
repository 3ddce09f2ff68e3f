"""Am I throttled, and by which limit? One finding a cell, in words, for any run that has trials.

It stands on what the analysis computes: `limits.label_cells` says which cells sit on a limit and what
corroborates that, `predict.predicted` what should bind. Pure but for `of_run`: tables in, words out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from diskbook import limits, predict
from diskbook.errors import unknown
from diskbook.limits import LIMITS
from diskbook.stats.series import diagnose

THROTTLED, PERHAPS, DRAINED, FREE, UNKNOWN = (
    "throttled",
    "perhaps",
    "credit ran out",
    "not throttled",
    "unknown",
)
VERDICTS = (THROTTLED, DRAINED, PERHAPS, UNKNOWN, FREE)
"""From what needs attention to what does not."""

_LARGER_DISK = (
    "a larger disk, performance plus or bursting above 512 GiB, or Premium SSD v2 with a higher limit"
)
_BURST = "nothing while it lasts: this is the burst; Premium SSD v2 holds a rate without one"
_REMEDIES = {
    "cap_disk_iops": _LARGER_DISK,
    "cap_disk_mb_s": _LARGER_DISK,
    "cap_disk_burst_iops": _BURST,
    "cap_disk_burst_mb_s": _BURST,
    "cap_vm_iops": "a larger VM size",
    "cap_vm_mb_s": "a larger VM size",
    "cap_vm_burst_iops": "a larger VM size, also since this burst ends when the VM's credit does",
    "cap_vm_burst_mb_s": "a larger VM size, also since this burst ends when the VM's credit does",
    "cap_vm_cached_iops": "no host cache for this disk, or a larger VM size",
    "cap_vm_cached_mb_s": "no host cache for this disk, or a larger VM size",
}


@dataclass(frozen=True)
class Finding:
    """What holds one cell: `verdict` (one of `VERDICTS`), and cause and remedy in words."""

    arm: str
    workload: str
    verdict: str
    cause: str
    remedy: str = ""

    @property
    def words(self) -> str:
        """The finding as one line."""
        advice = f" What helps: {self.remedy}." if self.remedy else ""
        return (
            f"{self.arm}, {self.workload}: {self.verdict}. {self.cause[:1].upper()}{self.cause[1:]}.{advice}"
        )


def of_run(name: str, arm: str | None = None, workload: str | None = None) -> str:
    """Findings of a run in words, of one arm or workload where they are named.

    Raises
    ------
    UsageError
        When there is no such run, arm or workload.
    """
    from diskbook.analysis import analyse

    run = analyse(name)
    on_demand = [item.name for item in run.scenario.arm if run.scenario.disk_named(item.disk).bursting]
    found = findings(run.trials, run.tables.series, run.cells, on_demand)
    for kind, wanted in (("arm", arm), ("workload", workload)):
        known = sorted({getattr(one, kind) for one in found})
        if wanted is not None and wanted not in known:
            raise unknown(kind, wanted, known, f"run {run.folder.name}")
    mine = [one for one in found if arm in (None, one.arm) and workload in (None, one.workload)]
    return f"{run.provenance}: run {run.folder.name}\n{text(mine)}"


def findings(
    trials: pd.DataFrame,
    series: pd.DataFrame | None = None,
    cells: pd.DataFrame | None = None,
    on_demand: Collection[str] = (),
) -> list[Finding]:
    """Say for every cell whether a limit holds it, which one, and what would help.

    Parameters
    ----------
    trials, series
        Tables of a run.
    cells
        `limits.label_cells(trials, series)`, where it is known already.
    on_demand
        Arms whose disk bursts on demand, without credit.
    """
    labelled = limits.label_cells(trials, series) if cells is None else cells
    rows = labelled.merge(
        predict.predicted(trials, on_demand), on=["arm", "workload"], suffixes=("", "_predicted")
    )
    caps = _caps(trials)
    fell = _fell(trials, series)
    found = [
        _finding(row, caps.get(row["arm"], {}), fell.get((row["arm"], row["workload"]), ""))
        for row in rows.to_dict("records")
    ]
    return sorted(found, key=lambda one: VERDICTS.index(one.verdict))


def text(found: list[Finding]) -> str:
    """All findings, one line a cell, under their verdicts; what helps stands below those it helps."""
    lines = []
    for verdict in VERDICTS:
        mine = [one for one in found if one.verdict == verdict]
        if not mine:
            continue
        lines.append(f"{verdict}: {len(mine)} of {len(found)} cells")
        for remedy in dict.fromkeys(one.remedy for one in mine):
            lines += [f"  {one.arm}, {one.workload}: {one.cause}" for one in mine if one.remedy == remedy]
            lines += [f"    what helps: {remedy}"] if remedy else []
    return "\n".join(lines) or "nothing was measured yet"


def _finding(row: Mapping[Any, Any], caps: Mapping[str, float], fell: str) -> Finding:
    name = (str(row["arm"]), str(row["workload"]))
    if fell:
        return Finding(
            *name, DRAINED, fell, "a wait for the credit to refill, or a load that stays below the base"
        )
    if row["label"] in ("capped", "near a cap"):
        return _held(name, row, caps)
    if row["limit_predicted"] == "":
        return Finding(*name, UNKNOWN, f"no limit of this disk or machine is known; {row['binds']}")
    return Finding(*name, FREE, f"{_binds(row)}; {_nearest(row)}", _more(row))


def _held(name: tuple[str, str], row: Mapping[Any, Any], caps: Mapping[str, float]) -> Finding:
    limit, unit = next((item, item.unit) for item in LIMITS if item.column == row["limit"])
    measured = row["iops"] if limit.counts == "iops" else row["mb_s"]
    share = f"{measured:,.0f} {unit}, {100 * row['share']:.0f} % of the {limits.limit_words(row)}"
    latency = f"its {row['lat_mean_ms']:.1f} ms is waiting for the limit ({row['predicted_lat_ms']:.1f} ms)"
    if row["label"] == "near a cap":
        remedy = "a second depth or a longer trial would show it"
        return Finding(*name, PERHAPS, f"{share}, but nothing else speaks for it", remedy)
    cause = f"{share}; {row['evidence']}; {latency}{_unused(limit, caps)}"
    return Finding(*name, THROTTLED, cause, _REMEDIES[limit.column])


def _unused(limit: limits.Limit, caps: Mapping[str, float]) -> str:
    """Say what the disk is paid for and the machine does not let through."""
    if not limit.column.startswith("cap_vm"):
        return ""
    both = [caps.get(f"cap_disk_{kind}{limit.counts}", math.nan) for kind in ("burst_", "")]
    own = max((value for value in both if not math.isnan(value)), default=math.nan)
    machine = caps.get(limit.column, math.nan)
    return (
        f"; the disk itself may do {own:,.0f} {limit.unit}, which this VM cannot use" if own > machine else ""
    )


def _binds(row: Mapping[Any, Any]) -> str:
    return f"{row['iops']:,.0f} IOPS, set by {row['binds']}"


def _nearest(row: Mapping[Any, Any]) -> str:
    limit = next(item for item in LIMITS if item.column == row["limit_predicted"])
    share = 100 * row["iops"] / row["limit_iops"]
    return f"{share:.0f} % of the lowest limit, the {limit.words(row['limit_value_predicted'])}"


def _more(row: Mapping[Any, Any]) -> str:
    if not str(row["binds"]).startswith("the tool's own concurrency"):
        return ""
    return "more I/Os in flight give more rate, up to that limit"


def _caps(trials: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Limits of each arm."""
    known = [limit.column for limit in LIMITS if limit.column in trials]
    table = trials.groupby("arm")[known].median()
    return {str(arm): {str(name): row[name] for name in known} for arm, row in table.iterrows()}


def _fell(trials: pd.DataFrame, series: pd.DataFrame | None) -> dict[tuple[str, str], str]:
    """Cells of which a trial's rate fell for good while a burst limit is known, in words."""
    if series is None or series.empty:
        return {}
    told = diagnose(series)
    told = told[told["fell_at_s"].notna()].reset_index()
    cells = trials.drop_duplicates("trial").set_index("trial")
    bursts = [limit.column for limit in LIMITS if "burst" in limit.column and limit.column in cells]
    found: dict[tuple[str, str], str] = {}
    for row in told.to_dict("records"):
        cell = cells.loc[row["trial"]]
        if not cell[bursts].notna().any():
            continue
        words = (
            f"in trial {row['trial']} the rate fell from {row['rate_before']:,.0f} to "
            f"{row['rate_after']:,.0f} IOPS after {row['fell_at_s']:.0f} s, as when burst credit ends"
        )
        found.setdefault((str(cell["arm"]), str(cell["workload"])), words)
    return found
