"""Am I throttled, and by which limit? One finding per cell, as text, for any run that has trials.

It stands on what the analysis computes: `limits.label_cells` says which cells sit on a limit and what
corroborates that, `expected.predicted` what should bind. Pure: tables in, words out.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pandas as pd

from diskbook.design.series import diagnose
from diskbook.design.totals import CELL
from diskbook.design.vocabulary import Label
from diskbook.facts.units import MB, percent
from diskbook.stats import expected, limits, saturation


class Diagnosis(StrEnum):
    """Whether a limit holds a cell, from what needs attention to what does not."""

    THROTTLED = "throttled"
    DRAINED = "credit ran out"
    SATURATED = "saturated, limit not known"
    """I/Os wait in a queue, and no limit of any table explains it."""
    PERHAPS = "perhaps"
    """The rate reaches a limit and nothing else speaks for it."""
    UNKNOWN = "unknown"
    """No limit is known, or the one named did not apply, or nothing tells whether another one holds."""
    FREE = "not throttled"


_LARGER_DISK = (
    "a larger disk, performance plus or bursting above 512 GiB, or Premium SSD v2 with a higher limit"
)
_CREDIT = (
    "a larger disk or Premium SSD v2: this is the burst already, and it lasts only as long as its credit"
)
_ON_DEMAND = "Premium SSD v2 with a higher limit: this is on-demand bursting already"
_NAME_IT = (
    "the limits of disk and machine: 'diskbook import' and 'diskbook why' take --disk-sku, --size-gib and "
    "--vm-size"
)
_FIND_IT = (
    "for a latency, queue depth 1 or a held rate well below this one; to find the limit, another disk beside "
    "it (a limit of host or account holds both together) and the platform's own metrics"
)
_SHALLOWER = "the same load at queue depth 1 beside it would tell"
_DEEPER = "the same load at twice the queue depth beside it would tell: below a limit it has a higher rate"
_SUSPECTS = (
    "throttling by the host or the account, a cap of another disk or VM size than the one named, how many "
    "I/Os the disk works on at once, or the processors of the machine that measures"
)
_REMEDIES = {
    "cap_disk_iops": _LARGER_DISK,
    "cap_disk_mb_s": _LARGER_DISK,
    "cap_disk_burst_iops": _CREDIT,
    "cap_disk_burst_mb_s": _CREDIT,
    "cap_vm_iops": "a larger VM size",
    "cap_vm_mb_s": "a larger VM size",
    "cap_vm_burst_iops": "a larger VM size, also since this burst ends when the VM's credit does",
    "cap_vm_burst_mb_s": "a larger VM size, also since this burst ends when the VM's credit does",
    "cap_vm_cached_iops": "a larger VM size or, where a host cache is on, none for this disk",
    "cap_vm_cached_mb_s": "a larger VM size or, where a host cache is on, none for this disk",
    "cap_nic_out_mb_s": "a larger VM size, whose network is faster, or fewer copies on other machines",
    "cap_nic_in_mb_s": "a larger VM size, whose network is faster, or the load on the volume's owner",
}
_LEAST_SAID = 0.005  # share of a rate
_ABOVE_NOMINAL = 1.02
"""Limits in force are seen that much above nominal."""
_STEPS = {"iops": 500, "mb_s": 50}
"""Steps of nominal limits: a rate within a hundredth of one is met by chance two times in a hundred."""
_AT_BASE = 0.1
"""A rate this share around a base limit is at it, once the credit is used up."""


@dataclass(frozen=True)
class Finding:
    """What holds one cell: its verdict, and cause and remedy in words."""

    arm: str
    workload: str
    verdict: Diagnosis
    cause: str
    remedy: str = ""

    @property
    def words(self) -> str:
        """The finding as one line."""
        advice = f" What helps: {self.remedy}." if self.remedy else ""
        return (
            f"{self.arm}, {self.workload}: {self.verdict}. {self.cause[:1].upper()}{self.cause[1:]}.{advice}"
        )


def findings(
    trials: pd.DataFrame,
    series: pd.DataFrame | None = None,
    cells: pd.DataFrame | None = None,
    on_demand: Collection[str] = (),
) -> list[Finding]:
    """Say for every cell whether a limit holds it, which one, and what would help.

    - `cells`: `limits.label_cells(trials, series)`, where it is known already.
    - `on_demand`: arms whose disk bursts on demand, without credit.
    """
    labelled = limits.label_cells(trials, series) if cells is None else cells
    rows = labelled.merge(
        expected.predicted(trials, on_demand), on=["arm", "workload"], suffixes=("", "_predicted")
    )
    caps = _caps(trials)
    fell = _fell(trials, series, on_demand)
    of_fio = trials[(trials["tool"] == "fio") & (trials["ramp_s"] > 0)]
    after_ramp_s = of_fio.groupby(["arm", "workload"])["runtime_s"].median().to_dict()
    by_cell = [
        _finding(
            {
                **row,
                "on_demand": row["arm"] in on_demand,
                "after_ramp_s": after_ramp_s.get((row["arm"], row["workload"]), math.inf),
            },
            caps.get((row["arm"], row["workload"]), {}),
            fell.get((row["arm"], row["workload"])),
        )
        for row in rows.to_dict("records")
    ]
    return sorted(by_cell, key=lambda finding: list(Diagnosis).index(finding.verdict))


def text(cells: list[Finding]) -> str:
    """All findings, one line a cell, under their verdicts; what helps stands below those it helps."""
    lines = []
    for verdict in Diagnosis:
        alike = [finding for finding in cells if finding.verdict == verdict]
        if not alike:
            continue
        lines.append(f"{verdict}: {len(alike)} of {len(cells)} cells")
        for remedy in dict.fromkeys(finding.remedy for finding in alike):
            lines += [
                f"  {finding.arm}, {finding.workload}: {finding.cause}"
                for finding in alike
                if finding.remedy == remedy
            ]
            lines += [f"    what helps: {remedy}"] if remedy else []
    return "\n".join(lines) or "nothing was measured yet"


def _finding(row: Mapping[Any, Any], caps: Mapping[str, float], fall: "_Fall | None") -> Finding:
    name = (str(row["arm"]), str(row["workload"]))
    if fall and fall.base:
        return Finding(
            *name,
            Diagnosis.DRAINED,
            fall.words,
            "a wait for the credit to refill, or a load that stays below the base",
        )
    finding = _ordinary(name, row, caps)
    return replace(finding, cause=f"{finding.cause}; {fall.words}") if fall else finding


def _ordinary(name: tuple[str, str], row: Mapping[Any, Any], caps: Mapping[str, float]) -> Finding:
    """Finding of a cell whose credit did not run out."""
    if row["label"] in (Label.CAPPED, Label.NEAR_A_CAP):
        return _held(name, row, caps)
    if row["label"] == Label.SATURATED:
        remedy = _FIND_IT if row["limit_predicted"] else f"{_NAME_IT}; {_FIND_IT}"
        return Finding(*name, Diagnosis.SATURATED, _queue(row), remedy)
    if row["limit_predicted"] == "":
        cause = f"no limit of this disk or machine is known; {_binds(row)}"
        cause += f"; {row['one_rate']}" if row.get("one_rate") else ""
        return Finding(*name, Diagnosis.UNKNOWN, cause, _NAME_IT)
    if row["label"] == Label.LIMIT_NOT_KNOWN:
        cause = f"{_binds(row)}; {_nearest(row)}; no limit of the machine is known"
        return Finding(
            *name, Diagnosis.UNKNOWN, cause, "a size whose limits Azure names, or a lower rate beside it"
        )
    if row["label"] == Label.UNASSESSED or (row["closed"] and not row["shown"]):
        cause = "; ".join(filter(None, [_binds(row), _nearest(row), row["evidence"]]))
        deeper = not row["evidence"] or saturation.LIMIT_LIKE in row["evidence"]
        return Finding(*name, Diagnosis.UNKNOWN, cause, _DEEPER if deeper else _SHALLOWER)
    return Finding(*name, Diagnosis.FREE, f"{_binds(row)}; {_nearest(row)}", _more(row))


def _its_latency(row: Mapping[Any, Any], verb: str = "are") -> str:
    """Begin a sentence on a cell's latency, which some tools do not record."""
    known = math.isfinite(row["lat_mean_ms"])
    return f"its {row['lat_mean_ms']:.3g} ms {verb}" if known else f"its latencies, not recorded, {verb}"


def _queue(row: Mapping[Any, Any]) -> str:
    """Say what shows a queue of a cell whose limit no table names, and what may be behind it."""
    known = f"; {_nearest(row)}" if row["limit_predicted"] else ""
    latency = f"{_its_latency(row)} those of a queue, not of the disk"
    evidence = "; ".join(dict.fromkeys(filter(None, [row["evidence"], row.get("one_rate", "")])))
    return f"{_binds(row)}{known}; {evidence}; {latency}. Suspects: {_SUSPECTS}{_round_limit(row)}"


def _round_limit(row: Mapping[Any, Any]) -> str:
    """Point at a round number that the rate lies above as far as rates lie above their limits."""
    for column, words in (("iops", "IOPS"), ("mb_s", "MB/s")):
        steps = row[column] / _ABOVE_NOMINAL / _STEPS[column]
        if round(steps) > 0 and abs(steps - round(steps)) <= 0.01:
            nominal = round(steps) * _STEPS[column]
            return f"; {row[column]:,.0f} {words} are {_ABOVE_NOMINAL} x {nominal:,}, as of a cap"
    return ""


def _held(name: tuple[str, str], row: Mapping[Any, Any], caps: Mapping[str, float]) -> Finding:
    limit, rivals = limits.BY_COLUMN[row["limit"]], row["rivals"]
    measured = row["iops"] if limit.counts == "iops" else row["mb_s"]
    shares = [row["share"], *(rival.share for rival in rivals)]
    of_each = zip(shares, limits.limit_names(row), strict=True)
    share = f"{measured:,.0f} {limit.unit}, " + " and ".join(
        f"{100 * n:,.0f} % of the {words}" for n, words in of_each
    )
    share += _too_low(row) + ", too close to tell which one holds" * bool(rivals)
    if row["share"] > limits.OVERSHOOT:
        why = "it did not apply: a cache answered, or disk or machine are not the ones named"
        return Finding(*name, Diagnosis.UNKNOWN, f"{share}, so {why}")
    if row["label"] == Label.NEAR_A_CAP:
        remedy = f"{limits.SHOWS_A_CAP} would show it"
        return Finding(*name, Diagnosis.PERHAPS, f"{share}, but nothing else speaks for it", remedy)
    latency = (
        f"{_its_latency(row, 'say')} nothing of the disk: at that limit "
        f"{row['outstanding']:.0f} in flight take {row['predicted_lat_ms']:.3g} ms"
    )
    on_demand = row["on_demand"] and "disk_burst" in limit.column
    after = "" if on_demand else _after_credit(limit, caps)
    unused = "" if rivals else _unused(limit, caps)
    cause = f"{share}{after}; {row['evidence']}; {latency}{unused}"
    remedies = [_REMEDIES[item.column] for item in (limit, *(rival.limit for rival in rivals))]
    remedy = "; and ".join(dict.fromkeys([_ON_DEMAND, *remedies[1:]] if on_demand else remedies))
    return Finding(*name, Diagnosis.THROTTLED, cause, remedy)


def _too_low(row: Mapping[Any, Any]) -> str:
    """Say how far fio's rate is too low: after a ramp it counts only what it sent since."""
    share = row["lat_mean_ms"] / 1000 / row["after_ramp_s"]
    why = f" (up to {percent(share, '.2g')} too low: fio leaves out what was in flight when its ramp ended)"
    return why if share >= _LEAST_SAID else ""


def _after_credit(limit: limits.Limit, caps: Mapping[str, float]) -> str:
    """Say what is left of a burst once its credit is used up."""
    base = caps.get(limit.column.replace("_burst", ""), math.nan)
    return f" ({base:,.0f} without credit)" if "burst" in limit.column and base > 0 else ""


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
    binds = str(row["binds"])
    rate = f"{row['iops']:,.0f} IOPS" if row["iops"] >= 10 else f"{row['iops']:.2g} IOPS"
    return f"{rate}; what sets it is {binds}" if binds.startswith("not known") else f"{rate}, set by {binds}"


def _nearest(row: Mapping[Any, Any]) -> str:
    limit = limits.BY_COLUMN[row["limit_predicted"]]
    share = 100 * row["iops"] / row["limit_iops"]
    rate = f"{row['mb_s']:,.0f} MB/s are " if limit.counts == "mb_s" else ""
    return f"{rate}{share:.0f} % of the lowest limit, the {limit.words(row['limit_value_predicted'])}"


def _more(row: Mapping[Any, Any]) -> str:
    if not str(row["binds"]).startswith("the tool's own concurrency"):
        return ""
    return "more I/Os in flight give more rate, up to that limit"


def _caps(trials: pd.DataFrame) -> dict[tuple[str, str], dict[str, float]]:
    """Limits of each cell: those of a volume depend on what is read and written."""
    known = [limit.column for limit in limits.LIMITS if limit.column in trials]
    table = trials.groupby(CELL)[known].median().reset_index()
    return {
        (str(row["arm"]), str(row["workload"])): {name: row[name] for name in known}
        for row in table.to_dict("records")
    }


@dataclass(frozen=True)
class _Fall:
    """A rate that fell for good within a trial; `base` says whether a base limit explains where to."""

    words: str
    base: bool


def _fell(
    trials: pd.DataFrame, series: pd.DataFrame | None, on_demand: Collection[str]
) -> dict[tuple[str, str], _Fall]:
    """Cells of which a trial's rate fell for good; one that fell to a base limit goes before others."""
    if series is None or series.empty:
        return {}
    falls = diagnose(series)
    falls = falls[falls["fell_at_s"].notna()].reset_index()
    cells = trials.drop_duplicates("trial").set_index("trial")
    by_cell: dict[tuple[str, str], _Fall] = {}
    for row in falls.to_dict("records"):
        cell = cells.loc[row["trial"]]
        place = (str(cell["arm"]), str(cell["workload"]))
        base = _base_reached(cell, row["rate_before"], row["rate_after"], cell["arm"] in on_demand)
        why = f"as when burst credit is used up and the {base} holds" if base else "which no limit explains"
        words = (
            f"in trial {row['trial']} the rate fell from {row['rate_before']:,.0f} to "
            f"{row['rate_after']:,.0f} IOPS after {row['fell_at_s']:.0f} s, {why}"
        )
        if place not in by_cell or (base and not by_cell[place].base):
            by_cell[place] = _Fall(words, bool(base))
    return by_cell


def _base_reached(cell: pd.Series, before: float, after: float, on_demand: bool) -> str:
    """Base limit that a rate fell to from a burst, in words; empty where there is none.

    None of these holds for a read that the host cache may answer.
    """
    if cell["direction"] == "read" and pd.notna(cell.get("cap_vm_cached_iops")):
        return ""
    for limit in limits.LIMITS:
        burst = cell.get(limit.burst_column, math.nan) if limit.burst_column else math.nan
        if not burst > cell.get(limit.column, math.nan) or (on_demand and "disk" in limit.column):
            continue
        base = float(cell[limit.column])
        base_iops = base * (1.0 if limit.counts == "iops" else MB / cell["block_size_bytes"])
        if before > limits.OVERSHOOT * base_iops and abs(after / base_iops - 1.0) <= _AT_BASE:
            return limit.words(base)
    return ""
