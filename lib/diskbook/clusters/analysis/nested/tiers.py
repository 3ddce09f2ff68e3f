"""Where writes to accelerated parity went: the data set inside the mirror tier against outside, and counters.

A write goes to the mirror tier while that has room, else in place to parity; from a fill of 85 % on data
rotate from mirror to parity. Reads never move data back, and with one kind of drive reading parity is as fast
("Mirror-accelerated parity", windowsserverdocs, read 2026-11-21).
"""

from typing import Any

import pandas as pd

from diskbook.clusters.analysis.nested import arms, saturated
from diskbook.clusters.design import fleets
from diskbook.clusters.design.counters import FILL, SLOW_TIER
from diskbook.clusters.stats.cell_ratios import cell_ratios
from diskbook.design.totals import trial_totals
from diskbook.facts import quantities
from diskbook.facts.units import GIB, KIB
from diskbook.report.show.analysed import Analysed

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
    sets = fleets.data_sets(a.scenario) if a.scenario.volume else {}
    for name in arms.kinds(a):
        made = arms.volume(a.scenario, name)
        if made is not None and made.mirror_gib and made.name in sets:
            data = sets[made.name].size_bytes / GIB
            rows.append({
                "Arm": arms.words(a, name),
                "Mirror + parity, GiB": f"{made.mirror_gib:g} + {made.parity_gib or 0:g}",
                "Stays in the mirror up to, GiB": fleets.ROTATE_AT * made.mirror_gib,
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
