"""How evenly a fleet's machines were served, and what VMFleet's own summary makes of their percentiles.

The trial is the unit: its machines share drives, nodes and hour, so that their spread is no interval.
"""

import pandas as pd

from diskbook.clusters.analysis.nested import arms, saturated
from diskbook.clusters.stats import fleet
from diskbook.design.model import Workload
from diskbook.design.totals import measured_rows
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.lead import arms_in_words

NO_FLEET = "no results of single machines were kept, so that nothing is known of how evenly they were served"


def by_trial(a: Analysed) -> pd.DataFrame:
    """Fairness of every trial's machines (`stats.fleet.fairness`), reads and writes added."""
    return fleet.fairness(_both_ways(a)).merge(_trials(a), on="trial")


def table(a: Analysed) -> pd.DataFrame:
    """Medians over the trials of every arm, full queues only."""
    rows = arms.in_order(a, _full(a, by_trial(a)))
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


def _both_ways(a: Analysed) -> pd.DataFrame:
    """Table of machines with reads and writes of each added."""
    grouped = a.tables.fleet.groupby(["trial", "vm"], sort=False)
    added = grouped.agg(iops=("iops", "sum"), started_s=("started_s", "min"), runtime_s=("runtime_s", "max"))
    return added.reset_index().assign(direction="both")


def _trials(a: Analysed) -> pd.DataFrame:
    """Arm, load and place of every finished trial."""
    rows = measured_rows(a.trials).drop_duplicates("trial")
    return rows[["trial", "arm", "workload", "replicate", "block"]]


def _full(a: Analysed, rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["workload"].isin([item.name for item in saturated.loads(a)])]
