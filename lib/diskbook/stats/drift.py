"""Drift over a run: did a cell get faster or slower from block to block, alone or with all others?

A drift that arms share is removed by interleaving and does no harm to a ratio; one that belongs to one arm
does. So both are distinguished: the slope of each arm, and the slope common to all arms of a workload.
"""

from enum import StrEnum

import numpy as np
import pandas as pd

from diskbook.design.grid import grid, mean_over_repeats
from diskbook.design.totals import measured_rows
from diskbook.design.vocabulary import GateStatus
from diskbook.stats.intervals import LEVEL, Interval, p_difference, student
from diskbook.stats.ratios import benjamini_hochberg

COMMON = "all arms"


class DriftVerdict(StrEnum):
    """What a slope over the blocks of a run supports."""

    DRIFTS = "drifts"
    NONE_SEEN = "no drift seen"
    NOT_ASSESSABLE = GateStatus.NOT_ASSESSABLE.value
    """There are fewer than 3 blocks."""


COLUMNS = [
    "workload",
    "direction",
    "arm",
    "metric",
    "n_replicates",
    "n_blocks",
    "change_per_block",
    "ci_low",
    "ci_high",
    "p_adjusted",
    "verdict",
]
ALPHA = 0.05


def drift(trials: pd.DataFrame, metric: str = "lat_mean_ms", level: float = LEVEL) -> pd.DataFrame:
    """Slope of a metric over the blocks of a run, for each arm and common to the arms of each workload.

    Returns `COLUMNS`; the relative change from a block to the next with its interval (0.01 is +1 % a block),
    NaN with fewer than 3 blocks. An arm's own slope is that of its distance from the mean of the arms, block
    by block, so that what all share is in "all arms" alone; with a single arm it is its plain slope.
    `verdict` is a `DriftVerdict`; since a run has many slopes, by Benjamini-Hochberg over all of them.
    """
    cells = grid(measured_rows(trials), metric)
    logs = mean_over_repeats(np.log(cells.values))
    rows = []
    for load, direction in dict.fromkeys((load, direction) for _, load, direction in cells.keys):
        arms = {key[0]: logs[place] for key, place in cells.keys.items() if key[1:] == (load, direction)}
        # Blocks that lack an arm are left out, else the mean of the arms would jump with the mixture.
        complete = np.isfinite(np.stack(list(arms.values()))).all(axis=0)
        common = np.where(complete, np.mean(list(arms.values()), axis=0), np.nan)
        parts = {COMMON: common} | {arm: values - common * (len(arms) > 1) for arm, values in arms.items()}
        for arm, values in parts.items():
            slope = slopes(values, cells.blocks.astype(float), level)
            counts = {
                "n_replicates": int(np.isfinite(values).any(axis=-1).sum()),
                "n_blocks": int(np.isfinite(values).sum()),
            }
            names = {"workload": load, "direction": direction, "arm": arm, "metric": metric}
            rows.append({**names, **counts, **_change(slope)})
    table = pd.DataFrame(rows, columns=COLUMNS)
    adjusted = benjamini_hochberg(table["p_adjusted"].to_numpy(float))
    judged = np.where(adjusted < ALPHA, DriftVerdict.DRIFTS, DriftVerdict.NONE_SEEN)
    verdict = np.where(np.isnan(adjusted), DriftVerdict.NOT_ASSESSABLE, judged)
    return table.assign(p_adjusted=adjusted, verdict=verdict)


def slopes(values: np.ndarray, blocks: np.ndarray, level: float = LEVEL) -> Interval:
    """Least-squares slope over blocks within replicates, with a Student interval.

    - `values`: shape [..., replicate, block], NaN where there is none; each replicate has a level of its own.
    - `blocks`: number of each block, shape [block].

    Returns an interval of shape [...]: NaN where fewer than 3 blocks leave nothing to judge the slope by.
    """
    there = ~np.isnan(values)
    n = there.sum(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        time = np.where(there, blocks, 0.0)
        time = np.where(there, time - time.sum(axis=-1, keepdims=True) / n, 0.0)
        level_ = np.where(there, values, 0.0).sum(axis=-1, keepdims=True) / n
        moved = np.where(there, values - level_, 0.0)
        squares = (time**2).sum(axis=(-2, -1))
        slope = (time * moved).sum(axis=(-2, -1)) / np.where(squares > 0, squares, np.nan)
        rest = np.where(there, moved - slope[..., None, None] * time, 0.0)
        df = there.sum(axis=(-2, -1)) - (n[..., 0] > 0).sum(axis=-1) - 1.0
        df = np.where(df > 0, df, np.nan)
        se = np.sqrt((rest**2).sum(axis=(-2, -1)) / df / squares)
    return student(slope, se, df, level)


def _change(slope: Interval) -> dict[str, float]:
    """Slope of logs as relative change with its interval, and its p."""
    names = ("change_per_block", "ci_low", "ci_high")
    changes = {name: float(np.expm1(value)) for name, value in zip(names, slope[:3], strict=True)}
    return {**changes, "p_adjusted": float(p_difference(slope))}
