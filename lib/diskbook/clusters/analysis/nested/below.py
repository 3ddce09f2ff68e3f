"""Below all limits: latencies of kinds of volumes, and what the slowest of more copies would take.

Single I/Os of every machine, and rates that all kinds hold: the only place where a difference is one of the
volumes themselves. `compare` judges them; this puts the expectation beside.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from diskbook.clusters.analysis.nested import arms
from diskbook.clusters.design.volume_rules import COPIES
from diskbook.clusters.stats import fleet
from diskbook.design.model import Workload
from diskbook.design.vocabulary import WITHHELD, Verdict
from diskbook.facts.quantities import many
from diskbook.report.show import sentences
from diskbook.report.show.analysed import Analysed
from diskbook.stats import percentiles

SIGMA = 0.2
"""Deviation of the log of a drive's latency for which the expectation is given: chosen (data/profiles)."""
_WAITS = 2
"""Waits of a write in place to parity in turn: old data and parity are read, then both are written."""


def loads(a: Analysed) -> list[Workload]:
    """Loads that are to leave no queue: a single I/O in each machine, and held rates."""
    return [
        item for item in a.scenario.workload if item.rate is not None or item.threads * item.queue_depth == 1
    ]


def comparisons(a: Analysed) -> pd.DataFrame:
    """Latency comparisons of kinds with each other under these loads, one row each."""
    names = {item.name for item in loads(a)}
    of_kinds = {name for name in arms.kinds(a) if not arms.is_moved(a.scenario.arm_named(name))}
    rows = sentences.chosen(a.comparisons)
    rows = rows[rows["base_arm"].isin(of_kinds) & rows["arm"].isin(of_kinds) & (rows["family"] != "control")]
    return rows[rows["workload"].isin(names) & (rows["metric"] == "lat_mean_ms")].reset_index(drop=True)


def own_sigma(a: Analysed) -> float:
    """Deviation of the log of a single read's latency in this run, on the two-way mirror; NaN of none."""
    singles = [item.name for item in loads(a) if item.rate is None]
    trials = a.trials[(a.trials["arm"] == arms.base(a)) & a.trials["workload"].isin(singles)]
    trials = trials[trials["direction"] == "read"]
    if trials.empty or a.tables.bins.empty:
        return math.nan
    least = trials["block_size_bytes"].min()
    merged = percentiles.merge(a.tables.bins, trials[trials["block_size_bytes"] == least])
    merged = merged[merged["direction"] == "read"]
    return fleet.spread(merged["lat_ms"].to_numpy(float), merged["count"].to_numpy(float))


def expected(of: str, base: str, direction: str, sigma: float) -> str:
    """Latency ratio of two kinds that the slowest copy alone would give, in words; empty for reads.

    All copies alike and without a network. A write in place waits twice, for two to four drives each time;
    data inside a mirror tier are those of a nested mirror.
    """
    if (
        direction != "write"
        or math.isnan(sigma)
        or base == "nested-parity"
        or not {of, base} <= COPIES.keys()
    ):
        return ""
    times = fleet.of_copies(COPIES[of], sigma) / fleet.of_copies(COPIES[base], sigma)
    if of != "nested-parity":
        return f"{times:.2f}"
    least = _WAITS * fleet.of_copies(2, sigma) / fleet.of_copies(COPIES[base], sigma)
    return f"{times:.2f} into the mirror tier, {least:.2f} to {_WAITS * times:.2f} in place"


def table(a: Analysed) -> pd.DataFrame:
    """Ratios below all limits beside their expectation, one row a comparison."""
    sigma = own_sigma(a)
    return pd.DataFrame([_row(a, row, sigma) for row in comparisons(a).to_dict("records")])


def _row(a: Analysed, row: dict[Any, Any], sigma: float) -> dict[str, Any]:
    withheld = Verdict.of(row["verdict"]) in WITHHELD or math.isnan(row["ratio"])
    shown = "none" if withheld else f"{sentences.ratio_words(row)} ({sentences.basis_words(row, a.scenario)})"
    place = _writes_as(a, row["arm"]), _writes_as(a, row["base_arm"]), row["direction"]
    both = {f"By the slowest copy, sigma {SIGMA:g}": expected(*place, SIGMA)}
    if not math.isnan(sigma):
        both[f"by this run's own, {sigma:.2f}"] = expected(*place, sigma)
    return {
        "Arms": f"{arms.words(a, row['arm'])} / {arms.words(a, row['base_arm'])}",
        "Load": f"{a.words[row['workload']]}: {row['direction']}",
        "Latency ratio": shown,
        **both,
        "Verdict": row["verdict"],
    }


def _writes_as(a: Analysed, name: str) -> str:
    return "nested-mirror" if arms.is_inside(a.scenario, name) else arms.kind(a.scenario, name)


def words(a: Analysed) -> list[str]:
    """Say how many such comparisons there are, and how many were refused since a limit held a side."""
    rows = comparisons(a)
    if rows.empty:
        return [
            "no kinds were compared by single I/Os or at a held rate, so that nothing is "
            "known of the volumes themselves: a full queue shows limits"
        ]
    refused = int(rows["verdict"].map(lambda verdict: Verdict.of(verdict) in WITHHELD).sum())
    four, two = (fleet.of_copies(copies, SIGMA) for copies in (4, 2))
    lines = [
        f"a write waits for the slowest of its copies: {four:.3f} / {two:.3f} = {four / two:.2f} with four "
        f"instead of two at sigma {SIGMA:g}, as an expectation, and more where copies differ or a network is "
        "between them"
    ]
    if refused:
        whole = f"{refused} of {many(len(rows), 'comparison')} {'has' if refused == 1 else 'have'}"
        lines.append(f"{whole} no latency ratio: a limit or a queue held a side")
    return lines


def judged(a: Analysed, arm: str | None, direction: str) -> pd.DataFrame:
    """Comparisons of an arm with the two-way mirror below all limits that were not refused."""
    rows = comparisons(a)
    rows = rows[(rows["arm"] == arm) & (rows["base_arm"] == arms.base(a)) & rows["ratio"].notna()]
    rows = rows[rows["direction"] == direction]
    kept = np.array([Verdict.of(verdict) not in WITHHELD for verdict in rows["verdict"]], dtype=bool)
    return rows[kept]
