"""Gates: what must hold before a number is compared. Values attached to results; none of them drops data.

Each gate says passed, failed or not assessable, why, and what to do, in a sentence each. A failed gate
changes the verdict of every comparison that uses the cell.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from diskbook.design.vocabulary import GateStatus, Verdict
from diskbook.facts.units import percent

Cell = Mapping[Any, Any]
"""Row of `design.cell_checks`."""


@dataclass(frozen=True)
class Gate:
    """What one gate found.

    - `name`, `status`: what was looked at, and how it came out.
    - `cause`, `remedy`: a sentence each; the remedy is empty when nothing needs doing.
    - `verdict`: what a failure makes of the comparison; None when it only warns.
    """

    name: str
    status: GateStatus
    cause: str
    remedy: str = ""
    verdict: Verdict | None = None

    @property
    def words(self) -> str:
        """Cause and remedy as one footnote."""
        return f"{self.cause}: {self.remedy}" if self.remedy else self.cause

    @property
    def decides(self) -> Verdict | None:
        """Verdict that it forces on its comparison; None where it passed or only warns."""
        return None if self.status is GateStatus.PASSED else self.verdict


def passed(name: str, cause: str) -> Gate:
    """Return a gate that holds."""
    return Gate(name, GateStatus.PASSED, cause)


def failed(name: str, cause: str, remedy: str, verdict: Verdict | None = Verdict.INVALID) -> Gate:
    """Return a gate that does not hold; by default the comparison is invalid."""
    return Gate(name, GateStatus.FAILED, cause, remedy, verdict)


def not_assessable(name: str, cause: str, remedy: str = "", verdict: Verdict | None = None) -> Gate:
    """Return a gate of which nothing can be said; by default it only warns."""
    return Gate(name, GateStatus.NOT_ASSESSABLE, cause, remedy, verdict)


def farthest(values: Iterable[Any]) -> float:
    """Value farthest from zero, NaN left out; NaN of nothing."""
    known = [float(value) for value in values if not math.isnan(value)]
    return max(known, key=abs, default=math.nan)


def worst_words(worst: float, digits: int) -> str:
    """Worst relative distance in words; says so where a number is missing."""
    return "numbers are missing" if math.isnan(worst) else f"worst {percent(worst, f'+.{digits}f')}"


def distinct(value: Any) -> tuple[str, ...]:
    """Distinct words of a cell (`design.SETS`); none where it has no trials."""
    return value if isinstance(value, tuple) else ()
