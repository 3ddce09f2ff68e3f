"""Published figures beside measured ones, with what each can and cannot support.

A published figure is one run without an interval: it can be shown, checked against Little's law and against
the limits that were in force, and no more. On the emulator the comparison is circular, since its profile was
calibrated on these very figures; such a row is a `calibration input` and is never called reproduced.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook import limits, paths
from diskbook.scenario import Scenario

CALIBRATION = "calibration input"
UNITS = {"iops": "IOPS", "lat_mean": "ms", "lat_mean_ms": "ms"}
CONFIGURATION = [
    "article",
    "vm_size",
    "disk",
    "redundancy",
    "disk_zone_relation",
    "options",
    "tool",
    "block_size",
]
CONFIGURATION += ["pattern", "write_pct", "outstanding_total"]


def read(article: str | None = None, folder: Path = paths.REFERENCE) -> pd.DataFrame:
    """Read the published figures, of one article or of all. Empty fields are empty text."""
    path = folder / "published-figures.csv"
    figures = pd.read_csv(path, dtype=str, keep_default_na=False)
    figures["value"] = pd.to_numeric(figures["value"], errors="coerce")
    figures["outstanding"] = pd.to_numeric(figures["outstanding_total"], errors="coerce")
    return figures if article is None else figures[figures["article"] == article].reset_index(drop=True)


def read_limits(folder: Path = paths.REFERENCE) -> dict[str, tuple[float, float]]:
    """Nominal (IOPS, MB/s) of disk tiers ("P30") and VM sizes, without bursting."""
    disks = pd.read_csv(folder / "disk-skus.csv")
    sizes = pd.read_csv(folder / "vm-sizes.csv")
    known: dict[str, tuple[float, float]] = {}
    for table, names in (
        (disks, ["tier", "iops", "mb_s"]),
        (sizes, ["name", "uncached_iops", "uncached_mb_s"]),
    ):
        for name, iops, mb_s in table[names].dropna().itertuples(index=False, name=None):
            known[name] = (float(iops), float(mb_s))
    return known


def assess(figures: pd.DataFrame, known: dict[str, tuple[float, float]]) -> pd.DataFrame:
    """Add what each figure supports.

    Returns
    -------
    pandas.DataFrame
        `figures` with `little` (the rate that belongs to a latency and the reverse, by Little's law),
        `on_cap` (bool) and `supports` (a sentence).
    """
    assessed = figures.copy()
    found = [_assess(row, figures, known) for row in figures.to_dict("records")]
    for position, name in enumerate(("little", "on_cap", "supports")):
        assessed[name] = [item[position] for item in found]
    return assessed


def _assess(
    row: dict[Any, Any], figures: pd.DataFrame, known: dict[str, tuple[float, float]]
) -> tuple[str, bool, str]:
    rate = _rate(row, figures)
    little, on_cap = _little(row), _on_cap(row, rate, known)
    if row["metric"] not in UNITS or math.isnan(row["outstanding"]):
        says = "a stated number, not a measurement with its load beside it"
    elif on_cap:
        says = f"capped at {on_cap}: says what the limit is, nothing about the latency of this disk"
    elif row["metric"] == "iops":
        says = f"a mean response time of {little} at {row['outstanding']:.0f} outstanding"
    elif row["outstanding"] == 1:
        says = "latency at queue depth 1, below every cap"
    else:
        says = f"latency at {row['outstanding']:.0f} outstanding"
    runs = row["runs"] or "an unknown number of"
    note = f"{runs} run{'' if runs == '1' else 's'}, no spread printed: no interval"
    assumed = f"; rests on an assumption about {row['assumed']}" if row["assumed"] else ""
    return little, bool(on_cap), f"{says}; {note}{assumed}"


def _rate(row: dict[Any, Any], figures: pd.DataFrame) -> float:
    """IOPS of a figure: as printed, or printed beside it for the same set-up, or by Little's law."""
    if row["metric"] == "iops":
        return float(row["value"])
    if row["metric"] != "lat_mean":
        return math.nan
    same = figures[figures["metric"] == "iops"]
    for name in CONFIGURATION:
        same = same[same[name] == row[name]]
    return float(same["value"].iloc[0]) if len(same) else 1000.0 * row["outstanding"] / row["value"]


def _little(row: dict[Any, Any]) -> str:
    """The other side of Little's law in words: latency of a rate, rate of a latency."""
    if math.isnan(row["outstanding"]) or row["metric"] not in UNITS:
        return ""
    other = 1000.0 * row["outstanding"] / row["value"]
    return f"{other:.2f} ms" if row["metric"] == "iops" else f"{other:,.0f} IOPS"


def _on_cap(row: dict[Any, Any], rate: float, known: dict[str, tuple[float, float]]) -> str:
    for name, words in ((row["disk"], "disk"), (row["vm_size"], "VM")):
        limit = known.get(name, (math.nan, math.nan))[0]
        share = rate / limit
        if limits.ON_LIMIT <= share <= limits.OVERSHOOT:
            return f"{100 * share:.0f} % of the {words} limit of {limit:,.0f} IOPS"
    return ""


def beside(
    assessed: pd.DataFrame, cells: pd.DataFrame, scenario: Scenario, provenance: str, calibrated: bool = True
) -> pd.DataFrame:
    """Put measured cells beside the published figures of the same set-up.

    Parameters
    ----------
    assessed
        From `assess`.
    cells
        From `limits.label_cells`.
    scenario
        Says what each arm and workload is.
    provenance
        Of the run; "emulated" gets `calibration input` as verdict.
    calibrated
        Whether the emulator's profile was calibrated on published figures.

    Returns
    -------
    pandas.DataFrame
        `published, load, value, unit, little, on_cap, arm, workload, measured, measured_label, ratio,
        verdict, supports`; one row a published figure that the scenario repeats.
    """
    measured = cells.set_index(["arm", "workload"]).to_dict("index")
    rows = []
    for row in assessed.to_dict("records"):
        match = next(_matches(row, scenario, measured), None)
        if match is None:
            continue
        arm, workload = match
        cell: dict[Any, Any] = measured[match]
        value = float(cell["iops"] if row["metric"] == "iops" else cell["lat_mean_ms"])
        rows.append(
            {
                "published": f"{row['redundancy']}, {row['disk_zone_relation']}",
                "load": workload,
                "value": row["value"],
                "unit": UNITS[row["metric"]],
                "little": row["little"],
                "on_cap": row["on_cap"],
                "arm": arm,
                "measured": value,
                "measured_label": cell["label"],
                "ratio": value / row["value"],
                "verdict": _verdict(row, cell, provenance, calibrated),
                "supports": row["supports"],
            }
        )
    columns = ["published", "load", "value", "unit", "little", "on_cap", "arm", "measured", "measured_label"]
    return pd.DataFrame(rows, columns=[*columns, "ratio", "verdict", "supports"])


def _verdict(row: dict[Any, Any], cell: dict[Any, Any], provenance: str, calibrated: bool) -> str:
    if provenance == "emulated":
        return CALIBRATION if calibrated else "not comparable: this profile plays other numbers"
    if row["on_cap"] or cell["label"] != "below cap":
        return "capped: not comparable as latency"
    return "shown beside: one run without an interval"


def _matches(row: dict[Any, Any], scenario: Scenario, measured: dict[Any, Any]) -> Iterator[tuple[str, str]]:
    """Cells of the scenario with the set-up of a published figure, in the scenario's order."""
    if row["metric"] not in UNITS:
        return
    for arm in scenario.arm:
        machine, disk = scenario.machine_named(arm.machine), scenario.disk_named(arm.disk)
        if row["redundancy"] != disk.sku.rpartition("_")[2]:
            continue
        if row["disk_zone_relation"] != f"vm zone {machine.zone}":
            continue
        for workload in scenario.workload:
            same_load = (
                workload.sync is None
                and str(workload.write_pct) == row["write_pct"]
                and workload.outstanding == row["outstanding"]
                and workload.pattern == row["pattern"]
                and workload.block_size == 1024 * int(row["block_size"].rstrip("K") or 0)
            )
            if same_load and (arm.name, workload.name) in measured:
                yield arm.name, workload.name
