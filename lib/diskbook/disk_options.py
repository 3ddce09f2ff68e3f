"""The analysis of `disk-options`: predicted limits beside measured rates, and what nobody can use."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from diskbook import figures, narrative, predict, why
from diskbook.analysis import Analysis
from diskbook.articles import published
from diskbook.azure import cost
from diskbook.azure.prices import PriceList, from_table, table
from diskbook.figures import Picture
from diskbook.limits import LIMITS
from diskbook.scenario import Disk
from diskbook.stats.series import diagnose

PANELS = {
    "max-write-iops": ("iops", "Random writes of 4K, 512 outstanding"),
    "max-throughput": ("mb_s", "Random writes of 128K, 512 outstanding"),
    "max-read-iops": ("iops", "Random reads of 4K, 512 outstanding"),
}
BURST = "burst-until-dry"
SINGLE = "access-time"
_NAMES = {limit.column: limit for limit in LIMITS}


def predictions(a: Analysis) -> pd.DataFrame:
    """What should set the rate of every cell (`predict.predicted`)."""
    return predict.predicted(a.trials, on_demand(a))


def on_demand(a: Analysis) -> list[str]:
    """Arms whose disk bursts on demand, without credit."""
    return [arm.name for arm in a.scenario.arm if a.scenario.disk_named(arm.disk).bursting]


def drives(a: Analysis) -> pd.DataFrame:
    """Cells of many I/Os in flight: predicted and measured rate, limit predicted and limit in the data."""
    found = predictions(a).merge(
        a.cells[["arm", "workload", "label", "limit", "limit_value"]].rename(
            columns={"limit": "binds", "limit_value": "binds_value"}
        ),
        on=["arm", "workload"],
    )
    found = found[found["workload"].isin([*PANELS, BURST])]
    arms, loads = ([item.name for item in items] for items in (a.scenario.arm, a.scenario.workload))
    found["place"] = found["workload"].map(loads.index) * len(arms) + found["arm"].map(arms.index)
    rows = []
    for row in found.sort_values("place").to_dict("records"):
        kind = PANELS.get(row["workload"], ("iops",))[0]
        unit = "MB/s" if kind == "mb_s" else "IOPS"
        rows.append(
            {
                "Load": a.words[row["workload"]],
                "Drive": a.labels[row["arm"]],
                "Predicted limit": _by(row),
                "Predicted": _rate(row[f"predicted_{kind}"], unit),
                "Measured": _rate(row[f"measured_{kind}"], unit),
                "Ratio": row["ratio"],
                "In the data": _binding(row),
            }
        )
    return pd.DataFrame(rows)


def access_times(a: Analysis) -> pd.DataFrame:
    """Latency at queue depth 1 of every drive, in ms."""
    cells = a.cells[a.cells["workload"] == SINGLE].set_index("arm")
    rows = [
        {
            "Drive": label,
            "Latency at depth 1, ms": cells.loc[arm, "lat_mean_ms"],
            "Trials": cells.loc[arm, "n_trials"],
        }
        for arm, label in a.labels.items()
        if arm in cells.index
    ]
    return pd.DataFrame(rows)


def rates(a: Analysis) -> Picture:
    """Figure: rates of all trials beside the predicted limits."""
    found = predictions(a)
    known = found[found["workload"].isin(list(PANELS)) & found["ratio"].notna()]
    near = int(((known["ratio"] - 1).abs() <= 0.05).sum())
    title = f"{near} of {len(known)} rates are those of the lowest limit in force: options buy limits"
    return figures.drives(a.trials, found, a.looks, PANELS, title, a.folder.name)


def access(a: Analysis) -> Picture:
    """Figure: every trial of single reads."""
    title = "Single reads: options change rates, the kind of disk and the host cache change this"
    return figures.strip(a.trials, a.looks, a.words, [SINGLE], title, a.folder.name)


def burst(a: Analysis) -> Picture:
    """Figure: the moment a burst credit runs out."""
    scale = a.scenario.scenario.emulated_credit_scale if a.provenance == "emulated" else 1.0
    return figures.credit(a.trials, a.tables.series, a.looks, BURST, scale, a.folder.name)


def pictures(a: Analysis) -> tuple[Picture, ...]:
    """Figures of this analysis, in the order of the notebook."""
    return (rates(a), access(a), a.ratios, burst(a))


def unusable(a: Analysis) -> list[str]:
    """Say of every disk that is paid for more than its machine lets through."""
    disks, found = a.scenario.disk_named, []
    for arm in a.scenario.arm:
        spec, rows = disks(arm.disk), a.trials[a.trials["arm"] == arm.name]
        if spec.iops is None or rows.empty:
            continue
        limits = {
            kind: _highest(rows, f"cap_{kind}_iops", f"cap_{kind}_burst_iops") for kind in ("disk", "vm")
        }
        if not limits["disk"] > limits["vm"]:
            continue
        base, size = rows["cap_vm_iops"].median(), a.scenario.machine_named(arm.machine).size
        best = a.cells.loc[a.cells["arm"] == arm.name, "iops"].max()
        found.append(
            f"{a.labels[arm.name]}: of the {spec.iops:,} IOPS that are paid for, {size} lets through "
            f"{limits['vm']:,.0f} on credit and {base:,.0f} after it ({100 * base / spec.iops:.0f} %); "
            f"{best:,.0f} were measured"
        )
    return found or ["every disk's limit lies within its machine's"]


def credit_words(a: Analysis) -> list[str]:
    """Say which credit the trials had, since all drives of a machine share its bucket."""
    states = a.trials.drop_duplicates("trial")["credit_state"].value_counts(sort=False)
    shares = (
        a.trials["credit_left_share"].dropna() if "credit_left_share" in a.trials else pd.Series(dtype=float)
    )
    least = (
        f"; least left at the start of a trial: {100 * shares.min():.0f} % of a bucket" if len(shares) else ""
    )
    return [
        "credit of the trials: " + ", ".join(f"{state} {number}" for state, number in states.items()) + least
    ]


PAIRS = (("F", "G"), ("L", "H"))
"""Drives of the article that differ by the label alone."""


def label_claim(a: Analysis) -> list[str]:
    """Set the claim that the label lowers access times against the article's own table and this run."""
    printed = _printed_access_times()
    changes = {one: 100 * (printed[one] / printed[other] - 1) for one, other in PAIRS}
    parts = [
        f"{one} {printed[one]:g} against {other} {printed[other]:g} ms ({changes[one]:+.0f} %)"
        for one, other in PAIRS
    ]
    said = [f"published: {', but '.join(parts)}: the two pairs contradict each other"]
    flagged = {arm.name for arm in a.scenario.arm if a.scenario.disk_named(arm.disk).accelerated_network}
    rows = narrative.chosen(a.comparisons[a.comparisons["workload"] == SINGLE])
    mine = rows[rows["arm"].isin(flagged) & (rows["family"] == "headline")].to_dict("records")
    return said + [f"{row['provenance']}: {narrative.sentence(row, a.scenario)}" for row in mine]


def _printed_access_times() -> dict[str, float]:
    """Access times of the article by drive letter, in ms."""
    rows = published.read("disk-options")
    rows = rows[rows["metric"] == "access_time"]
    drives_of = rows["note"].str.extract(r"drive ([A-Z])")[0]
    return dict(zip(drives_of, rows["value"].astype(float), strict=True))


def diagnosed(a: Analysis) -> pd.DataFrame:
    """Time within the trials that burst until their credit is spent (`stats.series.diagnose`)."""
    trials = a.trials.loc[a.trials["workload"] == BURST, "trial"]
    return diagnose(a.tables.series[a.tables.series["trial"].isin(trials)])


def findings(a: Analysis) -> list[why.Finding]:
    """What holds every cell (`why.findings`)."""
    return why.findings(a.trials, a.tables.series, a.cells, on_demand(a))


def costs(a: Analysis) -> pd.DataFrame:
    """List price of every drive a month, and for 1,000 of the IOPS that it did most of."""
    prices = _prices(a)
    rows = []
    for arm in a.scenario.arm:
        cells = a.cells[a.cells["arm"] == arm.name]
        disk = a.scenario.disk_named(arm.disk)
        month = cost.month(disk, prices)
        most = float(cells["iops"].max()) if len(cells) else math.nan
        rows.append(
            {
                "Drive": a.labels[arm.name],
                "USD a month": math.nan if month is None else month,
                "Most IOPS measured": most,
                "USD a month for 1,000 IOPS": math.nan if month is None else 1000 * month / most,
                "Besides": _besides(disk),
            }
        )
    return pd.DataFrame(rows)


def _besides(disk: Disk) -> str:
    if disk.ephemeral:
        return "comes with the machine, and goes with it"
    return "I/Os above the base are billed" if disk.bursting else ""


def price_source(a: Analysis) -> str:
    """Where the prices are from, and their dates."""
    return f"{_prices(a).source}, {a.scenario.region}"


def _prices(a: Analysis) -> PriceList:
    return from_table(a.scenario.region, cost.meters(a.scenario), table())


def _highest(rows: pd.DataFrame, *columns: str) -> float:
    known = [rows[name].median() for name in columns if name in rows]
    return max((float(value) for value in known if not math.isnan(value)), default=math.nan)


def _by(row: dict[Any, Any]) -> str:
    if row["by"] in _NAMES:
        return _NAMES[row["by"]].name
    return {"concurrency": "outstanding / latency", "offered": "offered rate"}.get(row["by"], "not known")


def _binding(row: dict[Any, Any]) -> str:
    if row["binds"] == "":
        return row["label"]
    if row["binds"] == row["by"]:
        return f"{row['label']}, as predicted"
    words = _NAMES[row["binds"]].words(row["binds_value"])
    return f"{row['label']}: {words}"


def _rate(value: float, unit: str) -> str:
    return "" if math.isnan(value) else f"{value:,.0f} {unit}"
