"""Latency of a held rate: from when each I/O was due. Pure.

A tool that holds a rate has only so many I/Os in flight. While the disk stands still it sends nothing, and
what it should have sent meanwhile waits unseen: its latencies count from when an I/O was sent. That is
coordinated omission (Gil Tene, "How NOT to Measure Latency", 2012; his wrk2 counts "from the time the
transmission should have occurred", README of giltene/wrk2). A latency from the intended start is the tool's
own and how late it sent; the tool's own is a lower bound of it.
"""

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
