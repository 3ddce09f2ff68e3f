"""Where more I/Os in flight stop giving more rate: latency, cap and knee of a curve over depths. Pure.

A closed loop gives N / L while nothing limits it, and the cap C from N* = C x L on (Little's law; asymptotic
bounds: Denning and Buzen, 1978). No data reach that corner: a real curve bends below it, so a fitted
min(N / L, C) is pulled by the points near the bend. Hence L from cells under half of the cap, C from cells
that sit on it, and N* from both; how deep 95 % of the cap takes is read off the measured curve itself.

That holds for limits that cut a rate off, as token buckets do (`SHARP_LIMITS`).
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from diskbook.design.vocabulary import Label, Scope
from diskbook.facts.units import MS_PER_S
from diskbook.stats.intervals import LEVEL, Interval, over_replicates, within_replicates

HALF = 0.5
"""Share of the cap under which a cell shows the latency of I/Os that do not wait."""
FLAT = 0.99
"""Share of the highest rate on a limit from which on a cell is past the bend: real caps are flat."""
SHARP_LIMITS = (
    "Knees hold for limits that cut off sharply, as caps do. Where the disk itself is the limit, and its "
    "rate bends over many depths, they are up to 5 % too deep."
)
"""I/Os wait a little before such a bend, even under half of the cap (`checks.coverage_knee`)."""
UNEVEN = 0.02
"""How much less than its disks together a pool gives at the depths of a sweep, at most (share of the cap).

Chance loads the disks of a pool unevenly, and those with less to do stand still. A simulation shows 1.0 to
1.9 % for two to four disks and one to three copies (`checks.coverage_knee`); more I/Os in flight give it
back only slowly, so no curve shows its size.
"""
POOLED = (
    f"The upper end of each interval allows for {UNEVEN:.0%} of the cap, which a pool loses at most because "
    "chance loads its disks unevenly."
)
NEARLY = 0.95
APART = 3.0
"""Neighbouring depths that lie further apart say nothing about what is between them."""
LEAST_BLOCKS = 3
"""Blocks from which on a knee has an interval: two have one degree of freedom, and t there is 12.7."""
CURVE = ["arm", "kind", "block_size_bytes"]

NO_CAP = "no cell sits on a limit: more depth would show one"
NO_LATENCY = "no cell is under half of the cap: fewer in flight would show the latency"
FEW_BLOCKS = f"no interval from fewer than {LEAST_BLOCKS} blocks"


Method = Callable[[np.ndarray, float], Interval]


class Curves(NamedTuple):
    """Latency of I/Os that do not wait (ms) and cap (IOPS), each [replicate, block]."""

    latency_ms: np.ndarray
    cap_iops: np.ndarray

    @property
    def log_knees(self) -> np.ndarray:
        """Logs of the I/Os in flight at which latency and cap meet: C x L."""
        with np.errstate(all="ignore"):
            logs: np.ndarray = np.log(self.cap_iops * self.latency_ms / 1000.0)
        return logs


def curves(
    outstanding: np.ndarray,
    iops: np.ndarray,
    latency_ms: np.ndarray,
    on_cap: np.ndarray,
    fill_per_ms: np.ndarray | float = 0.0,
) -> Curves:
    """Read latency and cap off curves over depths.

    Without a ramp nothing ends until the first I/O has, one latency after the start. The cap is the rate over
    the time that is left.

    - `outstanding`, `on_cap`: I/Os in flight of each cell, shape [cell], rising; and whether the cell sits on
      a limit.
    - `iops`, `latency_ms`: shape [..., block, cell]; NaN for what is missing.
    - `fill_per_ms`: part of a trial that a millisecond at its start is, same shape; 0 where a ramp came
      before.

    Returns an array [..., block]: NaN where a block lacks one of them.
    """
    medians = np.array([_median(iops[..., place]) for place in range(len(outstanding))])
    most = np.nanmax(np.where(on_cap, medians, np.nan), initial=-np.inf)
    is_flat = on_cap & (medians >= FLAT * most)
    cap = _mean(np.where(is_flat, iops, np.nan))
    free = medians < HALF * _median(cap)  # by the cell, not by the block: noise chooses nothing
    latency = _mean(np.where(free, latency_ms, np.nan))
    filling = np.fmin(np.nan_to_num(latency)[..., None] * fill_per_ms, HALF)
    return Curves(latency, _mean(np.where(is_flat, iops / (1.0 - filling), np.nan)))


def depths_for(outstanding: np.ndarray, iops: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Depths at which curves [..., cell] reach rates [...], by monotone interpolation of the running maximum.

    NaN where a curve does not reach its rate, has it from the first depth on, or was not measured near it.
    """
    flat, aims = iops.reshape(-1, len(outstanding)), targets.reshape(-1)
    depths = [_depth(outstanding, *pair) for pair in zip(flat, aims.tolist(), strict=True)]
    return np.array(depths, dtype=float).reshape(targets.shape)


def interval(log_values: np.ndarray, level: float = LEVEL) -> Interval:
    """Interval of a mean of logs over the blocks [..., replicate, block]: holds for these disks."""
    there = (~np.isnan(log_values)).sum(axis=(-2, -1))
    return _with_enough(within_replicates(log_values, level), there)


def of_pool(bounds: Interval) -> Interval:
    """Move the upper ends of intervals of logs up by what a pool of disks may lose (`UNEVEN`)."""
    return bounds._replace(high=bounds.high + math.log1p(UNEVEN))


def knees(
    totals: pd.DataFrame, cells: pd.DataFrame, level: float = LEVEL, *, pooled: bool = False
) -> pd.DataFrame:
    """Find the knee of every curve over depths.

    - `totals`: from `totals.trial_totals`; trials that held a rate are left out.
    - `cells`: from `limits.label_cells`: which cells sit on a limit.
    - `pooled`: whether the curves are those of volumes, each of several disks (`UNEVEN`).

    Returns one row a curve and scope: `arm, kind, block_size_bytes, scope, latency_ms, cap_iops,
    cap_iops_low, cap_iops_high, limit, knee, low, high, depth_95, depth_95_low, depth_95_high, n_replicates,
    n_blocks, reason`; knee and depth are I/Os in flight. `reason` says what is missing, and why.
    """
    loop = totals[totals["rate_offered"].isna()]
    holds = cells[on_a_limit(cells)]
    rows: list[dict[str, object]] = []
    for place, part in loop.groupby(CURVE, sort=False):
        if part["outstanding"].nunique() > 1:
            of_curve = holds[(holds["arm"] == place[0]) & holds["workload"].isin(part["workload"])]
            common = dict(zip(CURVE, place, strict=True))
            rows += [{**common, **row} for row in _rows(part, of_curve, level, pooled=pooled)]
    return pd.DataFrame(rows)


def caps_by_block(totals: pd.DataFrame, cells: pd.DataFrame) -> pd.Series:
    """Cap of one curve in each block, in IOPS; NaN where no cell sits on a limit. Index: replicate, block."""
    loop = totals[totals["rate_offered"].isna()]
    holds = cells[
        on_a_limit(cells) & cells["arm"].isin(loop["arm"]) & cells["workload"].isin(loop["workload"])
    ]
    index = pd.MultiIndex.from_product([sorted(loop[name].unique()) for name in ("replicate", "block")])
    index = index.set_names(["replicate", "block"])
    if loop.empty or holds.empty:
        return pd.Series(np.nan, index=index, dtype=float)
    return pd.Series(curves(*_arrays(loop, set(holds["workload"]))).cap_iops.reshape(-1), index=index)


def on_a_limit(cells: pd.DataFrame) -> pd.Series:
    """Say for each cell whether its rate is that of a limit.

    Capped ones, those that a limit saturates which is not known, and what lies near a cap at its nominal
    value or above: limits let about 2 % more pass.
    """
    near = (cells["label"] == Label.NEAR_A_CAP) & (cells["share"] >= 1.0)
    return cells["label"].isin([Label.CAPPED, Label.SATURATED]) | near


def _rows(part: pd.DataFrame, holds: pd.DataFrame, level: float, *, pooled: bool) -> list[dict[str, object]]:
    """Knee of one curve, of these disks and, from two replicates on, of disks like these."""
    depths, iops, latency, on_cap, fill = _arrays(part, set(holds["workload"]))
    read = curves(depths, iops, latency, on_cap, fill)
    there = ~np.isnan(read.log_knees)
    sure = holds[holds["label"] == Label.CAPPED]
    limits = sorted(set((sure if len(sure) else holds)["limit"]) - {""})
    latency_ms = _center(read.latency_ms)
    n_replicates, n_blocks = int(there.any(axis=-1).sum()), int(there.sum())
    common = {
        "latency_ms": latency_ms,
        "limit": limits[0] if len(limits) == 1 else "",
        "n_replicates": n_replicates,
        "n_blocks": n_blocks,
        "reason": _reason(latency_ms, _center(read.cap_iops), n_blocks),
    }
    at_95 = depths_for(depths, iops, NEARLY * curves(depths, iops, latency, on_cap).cap_iops)
    logs = {"knee": read.log_knees, "cap_iops": np.log(read.cap_iops), "depth_95": np.log(at_95)}
    rows = [{"scope": Scope.THESE, **common, **_bounds(logs, interval, level, pooled=pooled)}]
    if n_replicates > 1:
        bounds = _bounds(logs, over_replicates, level, pooled=pooled)
        rows.append({"scope": Scope.LIKE_THESE, **common, **bounds})
    return rows


def _reason(latency_ms: float, cap_iops: float, n_blocks: int) -> str:
    """Say what a knee lacks; empty where it has an interval."""
    if math.isnan(cap_iops):
        return NO_CAP
    if math.isnan(latency_ms):
        return NO_LATENCY
    return FEW_BLOCKS if n_blocks < LEAST_BLOCKS else ""


def _bounds(
    logs: Mapping[str, np.ndarray], method: Method, level: float, *, pooled: bool
) -> dict[str, float]:
    """Knee, cap and depth for 95 %, with their intervals."""
    named: dict[str, float] = {}
    for name, of_blocks in logs.items():
        bounds = method(of_blocks, level)
        bounds = of_pool(bounds) if pooled and name != "depth_95" else bounds
        low, high = ("low", "high") if name == "knee" else (f"{name}_low", f"{name}_high")
        named |= {name: _exp(bounds.mean), low: _exp(bounds.low), high: _exp(bounds.high)}
    return named


def _arrays(part: pd.DataFrame, capped: set[str]) -> tuple[np.ndarray, ...]:
    """A curve as the arrays that `curves` takes, [replicate, block, depth] where it has one per trial."""
    depths = np.sort(part["outstanding"].unique())
    index = pd.MultiIndex.from_product([sorted(part[name].unique()) for name in ("replicate", "block")])
    fill = (1.0 / (MS_PER_S * part["runtime_s"])).where(part["ramp_s"] == 0, 0.0)
    names = ["iops", "lat_mean_ms", "fill"]
    means = part.assign(fill=fill).groupby(["replicate", "block", "outstanding"])[names].mean()
    shape = (*(len(level) for level in index.levels), len(depths))
    iops, latency, fill_per_ms = (
        means[name].unstack().reindex(index=index, columns=depths).to_numpy(float).reshape(shape)
        for name in names
    )
    on_cap = np.isin(depths, part.loc[part["workload"].isin(capped), "outstanding"])
    return depths.astype(float), iops, latency, on_cap, fill_per_ms


def _depth(outstanding: np.ndarray, iops: np.ndarray, target: float) -> float:
    """Depth at which one curve reaches a rate."""
    there = ~np.isnan(iops)
    depths, rates = outstanding[there], np.maximum.accumulate(iops[there])
    if math.isnan(target) or len(rates) < 2 or not rates[0] < target <= rates[-1]:
        return math.nan
    last = int(np.argmax(rates >= target))
    if depths[last] > APART * depths[last - 1]:
        return math.nan
    depths, rates = depths[: last + 1], rates[: last + 1]  # what lies beyond does not bend the curve
    if len(rates) == 2:
        return float(np.interp(target, rates, depths))
    from scipy.interpolate import PchipInterpolator  # takes half a second to import

    crossing = PchipInterpolator(depths, rates).solve(target, extrapolate=False)
    return float(crossing[0]) if len(crossing) else float(depths[-1])


def _with_enough(bounds: Interval, blocks: np.ndarray) -> Interval:
    enough = blocks >= LEAST_BLOCKS
    low, high = (np.where(enough, bound, np.nan) for bound in (bounds.low, bounds.high))
    return bounds._replace(low=low, high=high)


def _mean(values: np.ndarray) -> np.ndarray:
    """Geometric mean over the last axis, NaN left out; NaN where nothing is there."""
    there = ~np.isnan(values)
    with np.errstate(all="ignore"):
        logs = np.where(there, np.log(np.where(there, values, 1.0)), 0.0)
        mean: np.ndarray = np.exp(logs.sum(axis=-1) / there.sum(axis=-1))
    return mean


def _median(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan


def _center(values: np.ndarray) -> float:
    return float(_mean(values.reshape(-1)))


def _exp(log: np.ndarray) -> float:
    return math.exp(float(log)) if np.isfinite(log) else math.nan
