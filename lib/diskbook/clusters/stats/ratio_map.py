"""The map of ratios that documented limits alone predict, before anything is measured.

Where both sit on limits, their ratio is the ratio of these; a comparison that shows no more than this map has
not measured what it compares. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from diskbook.clusters.stats import volume_bound
from diskbook.clusters.stats.volume_bound import Bound, Load, Setup
from diskbook.facts.units import MB
from diskbook.stats import intervals


@dataclass(frozen=True)
class Predicted:
    """Two set-ups under one load: what binds each, and their rates as `other` / `base`.

    In a closed loop latency is outstanding / IOPS and MB/s are IOPS x block size, so that the ratios of all
    three are one finding (Little's law).
    """

    load: Load
    other: Bound
    base: Bound

    @property
    def ratio(self) -> float:
        """IOPS ratio, which is that of MB/s, and the inverse of that of latencies."""
        return self.other.iops / self.base.iops

    @property
    def limits_only(self) -> bool:
        """Whether limits hold both, so that the ratio says nothing about what lies below them."""
        return self.other.limit is not None and self.base.limit is not None

    @property
    def latencies_ms(self) -> tuple[float, float]:
        """Mean latencies of both, other first: outstanding / IOPS."""
        n = self.load.outstanding or 1
        return 1000.0 * n / self.other.iops, 1000.0 * n / self.base.iops

    @property
    def mb_s(self) -> tuple[float, float]:
        """MB/s (10^6 bytes) of both, other first."""
        size = self.load.block_bytes / MB
        return self.other.iops * size, self.base.iops * size


def ratio_map(
    other: Setup, base: Setup, loads: Iterable[Load], latency_ms: float, *, spent: bool = False
) -> list[Predicted]:
    """Predict each load's ratio from the limits of both set-ups, and from one latency that both share.

    - `other`, `base`: set-ups that are compared.
    - `loads`: cells of the map, each with its number outstanding.
    - `latency_ms`: of an I/O that does not wait: the same on both sides, since a difference of theirs is what
      is asked.
    - `spent`: whether burst credit is used up.
    """
    return [
        Predicted(
            load,
            *(volume_bound.bound(setup, load, spent=spent, latency_ms=latency_ms) for setup in (other, base)),
        )
        for load in loads
    ]


LOAD = ["workload", "kind", "block_size_bytes", "outstanding"]
_OF_METRIC = {"iops": "ratio", "lat_mean_ms": "latency_ratio"}


def log_ratios(totals: pd.DataFrame, arm: str, base_arm: str) -> pd.DataFrame:
    """Logs of `ratio` (IOPS) and `latency_ratio` of two arms, by load, replicate and block.

    - `totals`: from `totals.trial_totals`.
    - `arm`, `base_arm`: what is divided by what.

    Returns indexed by `LOAD`, replicate and block; NaN where one arm lacks a load; empty where one lacks all.
    """
    rates = totals[totals["arm"].isin([arm, base_arm])]
    index = [*LOAD, "replicate", "block"]
    tables = {name: rates.pivot_table(index=index, columns="arm", values=name) for name in _OF_METRIC}
    if any({arm, base_arm} - set(table.columns) for table in tables.values()):
        return pd.DataFrame(columns=list(_OF_METRIC.values()))
    return pd.DataFrame(
        {_OF_METRIC[name]: np.log(table[arm] / table[base_arm]) for name, table in tables.items()}
    )


def cell_ratios(totals: pd.DataFrame, arm: str, base_arm: str) -> pd.DataFrame:
    """Ratio of IOPS of every load that both arms have, with its interval, and of latency.

    Returns `LOAD`, `ratio, low, high, latency_ratio, n_replicates, n_blocks`: over replicates from two on,
    else over blocks, of these very disks; NaN bounds with one block.
    """
    logs = log_ratios(totals, arm, base_arm).dropna()
    rows = [
        {**dict(zip(LOAD, load, strict=True)), **_estimate(part)}
        for load, part in (logs.groupby(level=LOAD, sort=False) if len(logs) else ())
    ]
    names = ["ratio", "low", "high", "latency_ratio", "n_replicates", "n_blocks"]
    return pd.DataFrame(rows, columns=[*LOAD, *names])


def _estimate(part: pd.DataFrame) -> dict[str, float]:
    by_block = part["ratio"].unstack("block")
    several = len(by_block) > 1
    method = intervals.over_replicates if several else intervals.within_replicates
    interval = method(by_block.to_numpy(float))
    mean, low, high = (float(np.exp(value)) for value in interval[:3])
    latency = float(np.exp(part["latency_ratio"].groupby(level="replicate").mean().mean()))
    return {
        "ratio": mean, "low": low, "high": high, "latency_ratio": latency,
        "n_replicates": len(by_block), "n_blocks": len(part),
    }  # fmt: skip
