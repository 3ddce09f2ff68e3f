"""The sweep over threads of a run on volumes: its trials, cells, knees, and the limits of each curve."""

import pandas as pd

from diskbook.design.model import Workload
from diskbook.design.totals import trial_totals
from diskbook.facts.units import MB
from diskbook.report.analysis.run import once
from diskbook.report.show.analysed import Analysed
from diskbook.stats import expected, knee
from diskbook.stats.limits import LIMITS

CURVE = knee.CURVE


def queue_depth(a: Analysed) -> int:
    """Outstanding a thread of the loads that run in several threads."""
    depths = [item.queue_depth for item in a.scenario.workload if item.threads > 1] or [1]
    return max(set(depths), key=depths.count)


def loads(a: Analysed) -> list[str]:
    """Closed loops of the sweep; of two alike the shorter, since a long one is to see credit run out."""
    kept: dict[tuple[object, ...], Workload] = {}
    for item in sorted(a.scenario.workload, key=lambda load: load.runtime_s):
        if item.rate is None and item.queue_depth == queue_depth(a) and item.sync != "fdatasync":
            arms = tuple(arm.name for arm in a.scenario.arm if item.meets(arm.name))
            for arm in arms:
                kept.setdefault((arm, item.block_size, item.write_pct, item.outstanding), item)
    return list(dict.fromkeys(item.name for item in kept.values()))


@once
def totals(a: Analysed) -> pd.DataFrame:
    every = trial_totals(a.trials)
    return every[every["workload"].isin(loads(a))]


@once
def cells(a: Analysed) -> pd.DataFrame:
    return a.cells[a.cells["workload"].isin(loads(a))]


@once
def knees(a: Analysed) -> pd.DataFrame:
    """Knee of every curve, one row a scope (`knee.knees`)."""
    return knee.knees(totals(a), cells(a), pooled=True)


def chosen_knees(a: Analysed) -> pd.DataFrame:
    """One row a curve: of disks like these where that has an interval, else of these disks."""
    every = knees(a)
    if every.empty:
        return every
    ranked = every.assign(known=every["low"].notna()).iloc[::-1]
    return ranked.sort_values("known", ascending=False, kind="stable").drop_duplicates(CURVE).sort_index()


def caps(a: Analysed) -> pd.DataFrame:
    """Lowest limit in force of each curve, nominal, as IOPS and MB/s."""
    rows = expected.predicted(a.trials).merge(cells(a)[["arm", "workload", "kind", "block_size_bytes"]])
    rows = rows[rows["limit_iops"].notna()].drop_duplicates(CURVE)
    mb_s = rows["limit_iops"] * rows["block_size_bytes"] / MB
    named = {limit.column: limit for limit in LIMITS}
    pairs = zip(rows["limit"], rows["limit_value"], strict=True)
    words = [named[column].words(value) for column, value in pairs]
    return rows.assign(iops=rows["limit_iops"], mb_s=mb_s, words=words)[[*CURVE, "iops", "mb_s", "words"]]


def single_ios(a: Analysed) -> pd.DataFrame:
    """Latency of single I/Os by arm, kind and block size, in ms: medians over trials."""
    every = a.cells
    return every[(every["outstanding"] == 1) & every["rate_offered"].isna()]
