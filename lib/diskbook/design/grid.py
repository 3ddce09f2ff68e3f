"""A metric of all cells as one array [cell, replicate, block, repeat]: sorted once, compared by indexing."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from diskbook.design import held_rate

Key = tuple[str, str, str]
"""Arm, workload, direction."""


@dataclass(frozen=True)
class Grid:
    """A metric by cell and direction, replicate and block.

    - `keys`: place of each (arm, workload, direction) on the first axis.
    - `replicates`, `blocks`: their numbers, in the order of the second and third axis; replicates of several
      runs are distinguished.
    - `values`: the metric, [cell, replicate, block, repeat]; NaN where there is none, or none that has a
      logarithm (missing, zero, negative, infinite): `gates.data.values_gate` says so.
    - `bad`: finished trials without a usable value, by key.
    """

    keys: dict[Key, int]
    replicates: np.ndarray
    blocks: np.ndarray
    values: np.ndarray
    bad: dict[Key, int]


def grid(rows: pd.DataFrame, metric: str) -> Grid:
    """Sort a metric of measured rows (`totals.measured_rows`) into a grid; see `held_rate.latency`."""
    parts = [pd.factorize(rows[name]) for name in ("arm", "workload", "direction")]
    sizes = [max(len(names), 1) for _, names in parts]
    code = (parts[0][0].astype(np.int64) * sizes[1] + parts[1][0]) * sizes[2] + parts[2][0]
    cell, codes = pd.factorize(code)
    keys: dict[Key, int] = {}
    for place, number in enumerate(np.asarray(codes, dtype=int).tolist()):
        pair, way = divmod(number, sizes[2])
        at = (*divmod(pair, sizes[1]), way)
        arm, load, direction = (str(names[i]) for (_, names), i in zip(parts, at, strict=True))
        keys[(arm, load, direction)] = place
    replicates, replicate = _replicates(rows)
    blocks, block = np.unique(rows["block"].to_numpy(), return_inverse=True)
    bin_ = (cell * len(replicates) + replicate) * len(blocks) + block
    repeat = _running_number(bin_)
    shape = (len(keys), len(replicates), len(blocks), int(repeat.max(initial=0)) + 1)
    values, numbers = np.full(shape, np.nan), held_rate.latency(rows, metric)
    usable = np.isfinite(numbers) & (numbers > 0)
    values.reshape(-1, shape[-1])[bin_[usable], repeat[usable]] = numbers[usable]
    bad = np.bincount(cell[~usable], minlength=len(keys))
    return Grid(keys, replicates, blocks, values, dict(zip(keys, bad.tolist(), strict=True)))


def _replicates(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the replicates, those of a second run counted on, and the place of each row's among them."""
    number = rows["replicate"].to_numpy()
    run = pd.factorize(rows["run"])[0] if "run" in rows else np.zeros(len(rows), dtype=int)
    span = number.max(initial=0) + 1
    pairs, place = np.unique(run * span + number, return_inverse=True)
    return pairs, place


def mean_over_repeats(values: np.ndarray) -> np.ndarray:
    """Mean over the last axis, NaN left out; NaN where nothing is there.

    >>> mean_over_repeats(np.array([[1.0, 3.0], [2.0, np.nan], [np.nan, np.nan]])).tolist()
    [2.0, 2.0, nan]
    """
    there = ~np.isnan(values)
    with np.errstate(all="ignore"):
        mean: np.ndarray = np.where(there, values, 0.0).sum(axis=-1) / there.sum(axis=-1)
    return mean


def _running_number(place: np.ndarray) -> np.ndarray:
    """Number the rows that share a place: 0, 1, 2 ..."""
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(place) else np.array([], int)
    lengths = np.diff(np.r_[starts, len(place)])
    number = np.empty(len(place), dtype=int)
    number[order] = np.arange(len(place)) - np.repeat(starts, lengths)
    return number


BEYOND = 10
"""I/Os that must lie beyond a percentile: p99.9 needs 10,000 in all."""
START_S = 1.0
"""How long a load takes to get going: its first I/Os come at once and find everything cold."""
START_SHARE = 0.5
"""Part of what lies beyond a percentile that may be from the start: a p99 is then at worst a p99.5."""
FEW, START = "too few I/Os", "its start is in it"


def tail_needs(quantile: float) -> int:
    """Number of I/Os that a percentile needs, so that 10 lie beyond it."""
    return math.ceil(round(BEYOND / (1.0 - quantile), 6))


def tail_lacks(rows: pd.DataFrame, quantile: float) -> np.ndarray:
    """Say why a trial's tail percentile is not shown, "" where it is.

    The I/Os of a start are slow together: of a short trial they alone are those beyond p99, and the fewer
    I/Os it has, the more they weigh. So a ramp must have left the first second out, or the trial be so long
    that this second is at most half of what lies beyond. The rule looks at the plan, never at a latency.

    - `rows`: `ios`, `ramp_s` and `runtime_s`; what is not known counts as nothing.
    - `quantile`: e.g. 0.99.
    """
    ios, ramp, runtime = (rows[name].fillna(0.0).to_numpy(float) for name in ("ios", "ramp_s", "runtime_s"))
    starts = np.clip(START_S - ramp, 0.0, None) > START_SHARE * (1.0 - quantile) * runtime
    return np.where(ios < tail_needs(quantile), FEW, np.where(starts, START, ""))
