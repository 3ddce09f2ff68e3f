"""Where writes to accelerated parity went: the data set inside the mirror tier against outside, and counters.

A write goes to the mirror tier while that has room, else in place to parity; from a fill of 85 % on data
rotate from mirror to parity. Reads never move data back, and with one kind of drive reading parity is as fast
("Mirror-accelerated parity", windowsserverdocs, read 2026-11-21).
"""

from typing import Any

import pandas as pd

from diskbook.clusters.analysis.nested import arms, saturated
from diskbook.clusters.design import rules
from diskbook.clusters.design.counters import FILL, SLOW_TIER
from diskbook.clusters.stats import fleet
from diskbook.clusters.stats.ratio_map import cell_ratios
from diskbook.design.model import Workload
from diskbook.design.totals import measured_rows, trial_totals
from diskbook.facts import quantities
from diskbook.facts.units import GIB, KIB
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.lead import arms_in_words

_COUNTED = ["trial", "arm", "workload", "kind", "replicate", "block", "ios", "allocations", "fill"]
_OF_FILL = 1e4
"""Units of the counter of the fill that are the whole tier."""


def pair(a: Analysed) -> tuple[str, str] | None:
    """Accelerated parity with its data inside the mirror tier, and outside; None where one is missing."""
    inside, outside = (arms.first(a, "nested-parity", inside=place) for place in (True, False))
    return (inside, outside) if inside and outside else None


def ratios(a: Analysed) -> pd.DataFrame:
    """IOPS inside the mirror tier over those outside, cell by cell (`cell_ratios`); empty without both."""
    both = pair(a)
    names = [item.name for item in saturated.loads(a)]
    totals = trial_totals(a.trials)
    totals = totals[totals["workload"].isin(names)]
    return cell_ratios(totals, *(both or ("", "")))


def sets_table(a: Analysed) -> pd.DataFrame:
    """Data set and mirror tier of every arm that has one."""
    rows = []
    sets = rules.data_sets(a.scenario) if a.scenario.volume else {}
    for name in arms.kinds(a):
        made = arms.volume(a.scenario, name)
        if made is not None and made.mirror_gib and made.name in sets:
            data = sets[made.name].size_bytes / GIB
            rows.append({
                "Arm": arms.words(a, name),
                "Mirror + parity, GiB": f"{made.mirror_gib:g} + {made.parity_gib or 0:g}",
                "Stays in the mirror up to, GiB": rules.ROTATE_AT * made.mirror_gib,
                "Data on each volume, GiB": data,
                "Data set": "inside" if arms.is_inside(a.scenario, name) else "outside",
            })  # fmt: skip
    return pd.DataFrame(rows)


def words(a: Analysed) -> list[str]:
    """Say what it brings that the data set fits into the mirror tier."""
    if pair(a) is None:
        return [
            "accelerated parity was not measured both with its data inside the mirror tier and outside, so "
            "that nothing is known of what the tier brings"
        ]
    cells = ratios(a)
    if cells.empty:
        return ["no load was measured both inside the mirror tier and outside"]
    return [_sentence(row) for row in cells.to_dict("records")]


def _sentence(row: dict[Any, Any]) -> str:
    times = quantities.change(row["ratio"], row["low"], row["high"])
    without = "no interval, " * bool(pd.isna(row["low"]))
    blocks = f"{row['n_blocks']:.0f} block{'s' * (row['n_blocks'] != 1)}"
    return (
        f"{row['block_size_bytes'] / KIB:.0f}K {row['kind']}: IOPS inside the mirror tier, "
        f"to those outside: {times} ({without}{blocks})"
    )


def counted(a: Analysed) -> pd.DataFrame:
    """Mirror fill and slow-tier allocations of every trial, from table `counters`.

    Returns `trial, arm, workload, kind, replicate, block, allocations` (clusters, all nodes), `fill` (share
    of the tier after the trial, the highest); NaN where a counter is not there; empty where none are.
    """
    counters = a.tables.counters
    slow, fill = (counters[counters["counter"] == name] for name in (SLOW_TIER, FILL))
    if slow.empty and fill.empty:
        return pd.DataFrame(columns=_COUNTED)
    allocations = (slow["after"] - slow["before"]).groupby(slow["trial"]).sum()
    highest = fill["after"].groupby(fill["trial"]).max() / _OF_FILL
    totals = trial_totals(a.trials)
    totals = totals.assign(allocations=totals["trial"].map(allocations), fill=totals["trial"].map(highest))
    return totals[_COUNTED].dropna(subset=["allocations", "fill"], how="all").reset_index(drop=True)


def counted_table(a: Analysed) -> pd.DataFrame:
    """Medians of fill and allocations over trials with writes, by arm and load, of volumes with tiers."""
    tiered = [name for name, of in arms.kinds(a).items() if of == "nested-parity"]
    rows = counted(a)
    rows = arms.in_order(a, rows[rows["arm"].isin(tiered) & (rows["kind"] != "read")])
    if rows.empty:
        return pd.DataFrame()
    medians = rows.groupby(["arm", "workload"], sort=False)[["fill", "allocations"]].median().reset_index()
    trials = rows.groupby(["arm", "workload"], sort=False).size().to_numpy()
    return pd.DataFrame({
        "Arm": [arms.words(a, name) for name in medians["arm"]],
        "Load": [a.words[name] for name in medians["workload"]],
        "Mirror fill after it, %": 100 * medians["fill"],
        "Clusters allocated on the slow tier": medians["allocations"],
        "Trials": trials,
    })  # fmt: skip


NO_FLEET = "no results of single machines were kept, so that nothing is known of how evenly they were served"


def by_trial(a: Analysed) -> pd.DataFrame:
    """Fairness of every trial's machines (`stats.fleet.fairness`), reads and writes added."""
    grouped = a.tables.fleet.groupby(["trial", "vm"], sort=False)
    added = grouped.agg(iops=("iops", "sum"), started_s=("started_s", "min"), runtime_s=("runtime_s", "max"))
    return fleet.fairness(added.reset_index().assign(direction="both")).merge(_trials(a), on="trial")


def table(a: Analysed) -> pd.DataFrame:
    """Medians over the trials of every arm, full queues only."""
    rows = by_trial(a)
    rows = arms.in_order(a, rows[rows["workload"].isin([load.name for load in saturated.loads(a)])])
    if rows.empty:
        return pd.DataFrame()
    grouped = rows.groupby("arm", sort=False)
    names = ["machines", "cv", "least_to_most", "window_share", "start_spread_s", "end_spread_s"]
    medians = grouped[names].median()
    return pd.DataFrame({
        "Arm": [arms.words(a, str(name)) for name in medians.index],
        "Machines": medians["machines"].astype(int).to_numpy(),
        "Spread (cv), %": 100 * medians["cv"].to_numpy(),
        "Least / most": medians["least_to_most"].to_numpy(),
        "Measured together, %": 100 * medians["window_share"].to_numpy(),
        "Starts within, s": medians["start_spread_s"].to_numpy(),
        "Ends within, s": medians["end_spread_s"].to_numpy(),
        "Trials": grouped.size().to_numpy(),
    })  # fmt: skip


def percentile_table(a: Analysed) -> pd.DataFrame:
    """VMFleet's mean of the machines' 99th percentiles beside that of all I/Os, medians over trials."""
    plain = [item.name for item in _smallest(a) if item.write_pct in (0, 100)]
    beside = fleet.beside_vmfleet(a.tables.fleet, measured_rows(a.trials)).merge(_trials(a), on="trial")
    beside = arms.in_order(a, beside[beside["workload"].isin(plain)]).dropna(
        subset=["p99_vmfleet_ms", "lat_p99_ms"]
    )
    if beside.empty:
        return pd.DataFrame()
    columns = ["lat_p99_ms", "p99_vmfleet_ms", "p99_ratio"]
    medians = beside.groupby(["arm", "workload"], sort=False)[columns].median().reset_index()
    return pd.DataFrame({
        "Arm": [arms.words(a, name) for name in medians["arm"]],
        "Load": [a.words[name] for name in medians["workload"]],
        "Of all I/Os, ms": medians["lat_p99_ms"],
        "Mean of the machines' own, ms": medians["p99_vmfleet_ms"],
        "Off by, %": 100 * (medians["p99_ratio"] - 1),
    })  # fmt: skip


def moved_words(a: Analysed) -> list[str]:
    """Say what it costs that machines run on other nodes than those that own their volumes."""
    lines = [line for pair in arms.moved(a) for line in arms_in_words(a, *pair)]
    return lines or ["all machines ran beside the owners of their volumes, or no file tells where"]


def _smallest(a: Analysed) -> list[Workload]:
    """Loads of the grid with the smallest blocks, by share of writes."""
    grid = saturated.loads(a)
    least = min((item.block_size for item in grid), default=0)
    return sorted((item for item in grid if item.block_size == least), key=lambda item: item.write_pct)


def _trials(a: Analysed) -> pd.DataFrame:
    """Arm, load and place of every finished trial."""
    rows = measured_rows(a.trials).drop_duplicates("trial")
    return rows[["trial", "arm", "workload", "replicate", "block"]]
