"""Whether enough was measured for a percentile: I/Os beyond it, and a start that does not make it. Pure."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

BEYOND = 10
"""I/Os that must lie beyond a percentile: p99.9 needs 10,000 in all."""
START_S = 1.0
"""How long a load takes to get going: its first I/Os come at once and find everything cold."""
START_SHARE = 0.5
"""Part of what lies beyond a percentile that may be from the start: a p99 is then at worst a p99.5."""
FEW, START = "too few I/Os", "its start is in it"


def needed(quantile: float) -> int:
    """Number of I/Os that a percentile needs, so that 10 lie beyond it."""
    return math.ceil(round(BEYOND / (1.0 - quantile), 6))


def lacks(rows: pd.DataFrame, quantile: float) -> np.ndarray:
    """Say why a trial's tail percentile is not shown, "" where it is.

    The I/Os of a start are slow together: of a short trial they alone are those beyond p99, and the fewer
    I/Os it has, the more they weigh. So a ramp must have left the first second out, or the trial be so long
    that this second is at most half of what lies beyond. The rule looks at the plan, never at a latency.

    Parameters
    ----------
    rows
        `ios`, `ramp_s` and `runtime_s`; what is not known counts as nothing.
    quantile
        E.g. 0.99.
    """
    ios, ramp, runtime = (rows[name].fillna(0.0).to_numpy(float) for name in ("ios", "ramp_s", "runtime_s"))
    starts = np.clip(START_S - ramp, 0.0, None) > START_SHARE * (1.0 - quantile) * runtime
    return np.where(ios < needed(quantile), FEW, np.where(starts, START, ""))
