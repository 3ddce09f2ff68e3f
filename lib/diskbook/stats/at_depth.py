"""Whether a ratio of latencies at depth is that of the disks: held against that of their single I/Os. Pure.

A limit that holds one arm, or both, moves the ratio at depth and leaves that of single I/Os. So the two are
compared: where they differ, the ratio at depth cannot be told from a limit. Arms whose own latency grows with
depth unlike look the same, and are refused as well.
"""

from __future__ import annotations

import math

import numpy as np

TOLERANCE = 0.25
"""Share of a comparison's margin by which the two ratios may differ."""
WIDTH = 3.2
"""Standard errors to either side: those of 95 % with two blocks, and for several replicates of more."""


def apart(deep: np.ndarray, single: np.ndarray, margin: float) -> tuple[float, float, float] | None:
    """How far the ratio at depth differs from that of single I/Os, where that is beyond the tolerance.

    Each replicate is looked at by itself, since a limit may be one machine's, and all are together. The four
    cells share one variance, around means of cells and blocks: 3 (n - 1) degrees of freedom in n blocks,
    where differences of ratios alone would leave n - 1. With one block each, replicates stand for blocks.

    Parameters
    ----------
    deep, single
        Log latencies of arm and base arm, [2, replicate, block]; NaN where nothing was measured.
    margin
        Of the comparison, as a relative difference.

    Returns
    -------
    tuple of float or None
        The log of ratio at depth / ratio of single I/Os, low, high: of the replicate that is farthest out,
        or of all; None where none is beyond the tolerance, or there is no spread to judge by.
    """
    logs = np.concatenate([deep, single])
    logs = np.where(np.isfinite(logs).all(axis=0), logs, np.nan)
    if np.isfinite(logs[0]).sum(axis=1).max(initial=0) < 2:
        logs = logs.reshape(4, 1, -1)
    n = np.isfinite(logs[0]).sum(axis=1)
    logs, n = logs[:, n > 0], n[n > 0]
    df = 3 * int((n - 1).sum())
    if not df:
        return None
    around = logs - np.nanmean(logs, axis=2, keepdims=True)
    around = around - around.mean(axis=0)
    variance = 4 * float(np.nansum(around**2)) / df
    of_each = np.nanmean((logs[0] - logs[1]) - (logs[2] - logs[3]), axis=1)
    errors = np.sqrt(variance / n)
    if len(n) > 1:
        of_each = np.append(of_each, of_each.mean())
        errors = np.append(errors, math.sqrt(float((errors**2).sum())) / len(n))
    half = WIDTH * errors
    beyond = np.abs(of_each) - half - TOLERANCE * math.log1p(margin)
    worst = int(np.argmax(beyond))
    if not beyond[worst] > 0:
        return None
    middle, width = float(of_each[worst]), float(half[worst])
    return middle, middle - width, middle + width
