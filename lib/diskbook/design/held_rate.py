"""Latency of a held rate: from when each I/O was due. Pure.

A tool that holds a rate has only so many I/Os in flight. While the disk stands still it sends nothing, and
what it should have sent meanwhile waits unseen: its latencies count from when an I/O was sent. That is
coordinated omission (Gil Tene, "How NOT to Measure Latency", 2012; his wrk2 counts "from the time the
transmission should have occurred", README of giltene/wrk2). A latency from the intended start is the tool's
own and how late it sent; the tool's own is a lower bound of it.

Windows of a held rate in which less was sent than was due. Pure.

Apart from `held_rate`, which needs pandas: the tools judge windows, and every command imports the tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
INTENDED: Mapping[str, str] = MappingProxyType(
    {f"lat_{name}_ms": f"lat_{name}_intended_ms" for name in ("mean", "p50", "p99", "p999")}
)
"""Latency by the tool to the same from the intended start, as columns of trials."""
_LEAST = "lat_mean_least_ms"


class Start(StrEnum):
    """From when the latencies of a held rate count."""

    INTENDED = "from the intended start"
    SENT = "lower bound"
    """From when an I/O was sent: what the tool kept back is not in them."""


def is_told(rows: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether it is told of each row how late the disk made its I/Os.

    Tables of older versions have latencies from the intended start without the least that they can have
    been. In these fio's own doing is mixed with the disk's, so they count as not told.
    """
    if _LEAST not in rows:
        return np.zeros(len(rows), dtype=bool)
    known = rows[INTENDED["lat_mean_ms"]].notna() & rows[_LEAST].notna()
    return known.to_numpy(bool)


def latency(rows: pd.DataFrame, metric: str) -> Floats:
    """Values of a metric as they are compared: latencies of held rates from the intended start.

    Where any finished trial of a workload has none, all of that workload are the tool's own, so that both
    arms count from the same moment.
    """
    own: Floats = rows[metric].to_numpy(float, na_value=np.nan)
    column = INTENDED.get(metric)
    if column is None or column not in rows or not len(rows):
        return own
    intended = np.where(is_told(rows), rows[column].to_numpy(float, na_value=np.nan), np.nan)
    code, _ = pd.factorize(rows["workload"])
    lacks = np.bincount(code, np.isnan(intended) & ~np.isnan(own)) > 0
    return np.where(lacks[code], own, intended)


def starts(rows: pd.DataFrame) -> dict[str, Start]:
    """From when the compared latencies count, of each workload that held a rate; others are not in it."""
    if "rate_offered" not in rows:
        return {}
    held = rows[rows["rate_offered"].notna()]
    every = pd.Series(is_told(held), index=held.index).groupby(held["workload"]).all()
    return {str(name): Start.INTENDED if whole else Start.SENT for name, whole in every.items()}


WINDOW_S = 0.1
LEAST_DUE = 20
"""I/Os that must be due in a window, so that one that comes just after its end is no failure."""
LOW = 0.9
"""Part of what was due in a window, below which the rate was not kept in it."""


def windows(due_s: Floats, sent_s: Floats, runtime_s: float) -> tuple[float, float]:
    """Return the worst window's part of what was due, and the share of windows below 90 % of it.

    Windows are 0.1 s long, longer where fewer than 20 I/Os would be due in one. A schedule of constant gaps
    says exactly how many were due; what was late is sent in another window, which then has more.

    Parameters
    ----------
    due_s, sent_s
        When each I/O was due and when it was sent, from the start of the measurement; in any order.
    runtime_s
        How long was measured.

    Returns
    -------
    worst, low_share
        NaN where less than a window was measured.
    """
    rate = len(due_s) / runtime_s if runtime_s > 0 else 0.0
    length = max(WINDOW_S, LEAST_DUE / rate) if rate else np.inf
    number = int(runtime_s / length + 1e-9)
    if not number:
        return np.nan, np.nan
    edges = np.linspace(0.0, number * length, number + 1)
    due, sent = (np.histogram(times, edges)[0] for times in (due_s, sent_s))
    return _judged(sent / np.maximum(due, 1))


def windows_of_series(second: Floats, iops: Floats, rate: float) -> tuple[float, float]:
    """Judge windows by the rates that a tool says of its intervals, as `windows` does.

    For tools that log no single I/O. They count what ended in an interval. The last one may be cut short, so
    it is left out, and several are taken together where fewer than 20 I/Os are due in one.
    """
    if len(second) < 2 or not rate > 0:
        return np.nan, np.nan
    order = np.argsort(second)
    grain = float(np.median(np.diff(second[order])))
    together = max(1, int(np.ceil(LEAST_DUE / (rate * grain) - 1e-9))) if grain > 0 else 0
    number = (len(second) - 1) // together if together else 0
    if not number:
        return np.nan, np.nan
    kept = iops[order][: number * together].reshape(number, together).mean(axis=1)
    return _judged(kept / rate)


def _judged(achieved: Floats) -> tuple[float, float]:
    return float(achieved.min()), float((achieved < LOW).mean())
