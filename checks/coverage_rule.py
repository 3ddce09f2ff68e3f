"""The rule of `make coverage`: what a nominal 95 % interval may cover, beyond what a simulation may err.

Also what the rows of every part have in common.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from diskbook.stats.intervals import Interval

LOWEST, HIGHEST = 0.93, 0.98
WIDE = 0.97
"""Coverage from which an interval is marked as conservative; above `HIGHEST` it needs a reason for that."""
SURE = 3.0
"""Standard errors of the simulation by which a cell must fall short, or be too wide, to fail."""
OFTEN_REFUSED = 0.2
"""Share of runs without a judged interval from which docs/explanation/coverage.md says why."""
LIMITED = "known limit: "


class Cell(NamedTuple):
    """One design under one condition, or one noise, which has a name."""

    condition: Any
    replicates: int
    blocks: int

    @property
    def name(self) -> str:
        """Name of the condition."""
        return str(self.condition.name)

    @property
    def size(self) -> str:
        """Replicates and blocks."""
        return f"{self.replicates} x {self.blocks}"


@dataclass(frozen=True)
class Row:
    """What the simulated runs of a cell gave for a claim.

    Each part adds its shares, and says when they are off. A cell has a `name`, its condition, and a `size`.
    """

    cell: Any
    claim: str
    n_runs: int

    limit = ""
    """Why it may fall short where nothing in the data can show it."""

    @property
    def is_off(self) -> bool:
        """Whether the shares are not as they are to be, beyond what the simulation may err."""
        raise NotImplementedError

    @property
    def is_known_limit(self) -> bool:
        """Whether it falls short where nothing in the data can show it."""
        return False

    @property
    def is_refused(self) -> bool:
        """Whether too few intervals are printed to judge them."""
        return False

    def said(self) -> list[str]:
        """What is said of it where it falls short, or is refused."""
        return ["FAILED"] * self.is_off + [f"{LIMITED}{self.limit}"] * self.is_known_limit

    def shares(self) -> dict[str, float]:
        """Its shares by name; numbers of runs are none."""
        shares = {}
        for name, value in vars(self).items():
            if isinstance(value, float):
                shares[name.replace("_", " ")] = value
            elif isinstance(value, Mapping):
                shares |= value
        return shares


def error(share: float, n: float) -> float:
    """`SURE` standard errors of a share that was counted in `n` simulated runs."""
    return SURE * math.sqrt(share * (1 - share) / max(1.0, n))


def is_more(share: float, most: float, n: float) -> bool:
    """Whether a share is larger than it may be."""
    return share > most + error(most, n)


def is_less(share: float, least: float, n: float) -> bool:
    """Whether a share is smaller than it is to be."""
    return share < least - error(least, n)


def is_short(coverage: float, n: float) -> bool:
    """Whether intervals cover too little."""
    return is_less(coverage, LOWEST, n)


def is_wide(coverage: float, n: float) -> bool:
    """Whether intervals cover so much that they say less than they could."""
    return is_more(coverage, HIGHEST, n)


def covered(interval: Interval, truth: Any, of: Any = True) -> tuple[float, float]:
    """Share of intervals that hold the truth, and their median half-width (relative).

    - `interval`, `truth`: of logs.
    - `of`: the intervals that count; both numbers are NaN where none does.
    """
    counts = np.broadcast_to(of, interval.low.shape)
    if not counts.any():
        return math.nan, math.nan
    covers = (interval.low <= truth) & (truth <= interval.high)
    return float(covers[counts].mean()), float(
        np.median(np.expm1((interval.high - interval.low)[counts] / 2))
    )
