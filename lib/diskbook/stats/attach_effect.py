"""What an attach does to a disk: trials right after one against trials of the same visit after settling.

Where one kind of disk is slow after an attach, a comparison of trials right after one prints that as the cost
of the kind. Balanced attaches do not help. So arms are compared after settling, and trials right after the
attach show whether that matters (`scenario.early`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from diskbook.design import held_rate
from diskbook.design.grid import Key
from diskbook.design.schema import EARLY
from diskbook.design.totals import measured_rows
from diskbook.stats import intervals
from diskbook.stats.intervals import Interval

LEVEL = 0.90
"""Level of the intervals: two one-sided tests at 5 % each."""
LATE = "late"


class Effect(NamedTuple):
    """Late over early of two arms, over the visits in which both have trials right after an attach.

    Attributes
    ----------
    change
        Logs of late over early with their intervals at `LEVEL`, fields of shape [3]: of the arm, of its base
        arm, and of their ratio.
    early, late
        Ratio of the arms right after an attach, and after settling.
    visits
        Number of visits of each arm.
    """

    change: Interval
    early: float
    late: float
    visits: int


def visits(trials: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Logs of a metric right after an attach and after settling, by visit.

    Returns
    -------
    pandas.DataFrame
        A row a replicate, block and repeat; columns (`EARLY` or `LATE`, arm, workload, direction). Without
        columns where no trial came right after an attach.
    """
    early = trials["trial"][trials["status"] == EARLY]
    if early.empty:
        return pd.DataFrame()
    rows = measured_rows(trials.assign(status=trials["status"].replace(EARLY, "ok")))
    values = held_rate.latency(rows, metric)
    logs = np.log(np.where(np.isfinite(values) & (values > 0), values, np.nan))
    rows = rows.assign(log=logs, when=np.where(rows["trial"].isin(early), EARLY, LATE))
    cell = ["when", "arm", "workload", "direction"]
    return rows.groupby(["replicate", "block", "repeat", *cell])["log"].mean().unstack(cell)


def effect(by_visit: pd.DataFrame, arm: Key, base: Key) -> Effect | None:
    """Compare late with early for two arms.

    Parameters
    ----------
    by_visit
        As `visits` returns it.
    arm, base
        Arm, workload and direction of both.

    Returns
    -------
    Effect or None
        None where no visit has early and late trials of both.
    """
    names = [(when, *key) for when in (EARLY, LATE) for key in (arm, base)]
    if not all(name in by_visit for name in names):
        return None
    early, late = by_visit[names].dropna().to_numpy(float).reshape(-1, 2, 2).transpose(1, 2, 0)
    return of_logs(early, late) if early.size else None


def of_logs(early: np.ndarray, late: np.ndarray) -> Effect:
    """Compare logs of late trials with early ones, each of shape [2, visit]: of an arm and its base arm."""
    change = late - early
    interval = intervals.t_interval(np.vstack([change, change[0] - change[1]]), LEVEL)
    of_early, of_late = (math.exp(float((logs[0] - logs[1]).mean())) for logs in (early, late))
    return Effect(interval, of_early, of_late, early.shape[1])
