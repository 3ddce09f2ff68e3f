"""Gate on what the platform reports: a limit consumed that our own reading of the rates does not know of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diskbook.design.vocabulary import Label, Verdict
from diskbook.facts.metrics import METRICS
from diskbook.stats.gates import Cell, Gate, not_assessable
from diskbook.stats.gates.limits import CAP
from diskbook.stats.limits import CONSUMED
from diskbook.stats.platform import BURSTS

_NAMES = {metric.limit: metric.name for metric in METRICS if not metric.credit}


def platform_gate(
    arms: Sequence[str], labels: Sequence[Cell], consumed_pct: Mapping[tuple[str, str, str], float]
) -> Gate | None:
    """A cell below all limits we know, of which the platform reports one as consumed, may sit on it.

    Parameters
    ----------
    arms, labels
        Name, and row of `limits.label_cells`, of both cells.
    consumed_pct
        As for `limits.label_cells`. Above `BURSTS` it tells of a burst, and of no limit.

    Returns
    -------
    Gate or None
        None where the platform reports nothing of the kind.
    """
    below = (Label.BELOW_CAP, Label.LIMIT_NOT_KNOWN)
    reported = [
        f"{_NAMES[limit]} {consumed_pct[arm, cell['workload'], limit]:.0f} % of {arm}"
        for arm, cell in zip(arms, labels, strict=True)
        for limit in _NAMES
        if cell["label"] in below
        and CONSUMED <= consumed_pct.get((arm, cell["workload"], limit), 0.0) <= BURSTS
    ]
    if not reported:
        return None
    cause = f"the platform reports {' and '.join(reported)}, though the rate reaches no limit that is known"
    remedy = "compare the limits of this run with those of the machine and the disk, or offer a lower rate"
    return not_assessable(CAP, cause, remedy, Verdict.INCONCLUSIVE)
