"""The rule of `make coverage`: what a nominal 95 % interval may cover, beyond what a simulation may err."""

import math

LOWEST, HIGHEST = 0.93, 0.98
WIDE = 0.97
"""Coverage from which an interval is marked as conservative; above `HIGHEST` it needs a reason for that."""
SURE = 3.0
"""Standard errors of the simulation by which a cell must fall short, or be too wide, to fail."""
OFTEN_REFUSED = 0.2
"""Share of runs without a judged interval from which docs/explanation/coverage.md says why."""


def error(share: float, n: float) -> float:
    """`SURE` standard errors of a share that was counted in `n` simulated runs."""
    return SURE * math.sqrt(share * (1 - share) / max(1.0, n))


def is_short(coverage: float, n: float) -> bool:
    """Whether intervals cover too little."""
    return coverage < LOWEST - error(LOWEST, n)


def is_wide(coverage: float, n: float) -> bool:
    """Whether intervals cover so much that they say less than they could."""
    return coverage > HIGHEST + error(HIGHEST, n)
