"""The rule of `make coverage`: what a nominal 95 % interval may cover, beyond what a simulation may err.

Also the table that every part prints.
"""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

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


def table(title: str, rows: Sequence[Any]) -> str:
    """Rows with the fields of their cells, as shares; ` ?` marks a known limit, ` !` what is off."""
    fields = [{**row.cell._asdict(), **row._asdict()} for row in rows]
    names = [{name: getattr(value, "name", value) for name, value in row.items()} for row in fields]
    frame = pd.DataFrame(names).drop(columns="cell")
    head, *lines = frame.to_string(index=False, float_format="%.4g").splitlines()
    marks = (" ?" * getattr(row, "is_known_limit", False) + " !" * row.is_off for row in rows)
    return "\n".join([title, head, *map("".join, zip(lines, marks, strict=True))])
