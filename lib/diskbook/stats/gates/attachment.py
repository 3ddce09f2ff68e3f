"""Gate on attachment: were the disks of both arms attached as long ago when measured, and as often?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from diskbook.base.units import span
from diskbook.stats.gates import Cell, Gate, failed, not_assessable, passed

ATTACHMENT = "attachment"
MOST_TIMES, LEAST_S = 2.0, 10.0
"""How much longer ago than the other's an arm's attach may be: chosen. What a fresh attach does to a disk on
Azure, and for how long, is not documented."""


def attachment_gate(arms: Sequence[str], cells: Sequence[Cell]) -> Gate:
    """From attach to trial must pass about as long in both arms, in the median of their trials.

    What sets them apart is then the attach as well: the comparison is invalid where one arm's median is more
    than `MOST_TIMES` and `LEAST_S` above the other's. It is a warning where blocks attach no disk, since that
    is the time in the run then, which interleaved arms share, and where the disks were only attached more
    often, but as long ago.
    """
    since, often = ([float(cell[name]) for cell in cells] for name in ("since_attach_s", "attaches"))
    unknown = [arm for arm, value in zip(arms, since, strict=True) if math.isnan(value)]
    if unknown:
        cause = f"when the disk of {' and '.join(dict.fromkeys(unknown))} was attached is not known"
        return not_assessable(ATTACHMENT, cause)
    words = " and ".join(f"{_ago(value)} ({arm})" for arm, value in zip(arms, since, strict=True))
    cause, low, high = f"from attach to trial passed {words}, medians", min(since), max(since)
    unequal = often[0] != often[1]
    if unequal:
        counts = " and ".join(f"{n:g} times ({arm})" for arm, n in zip(arms, often, strict=True))
        cause += f"; a block attached the disk {counts}"
    if high > MOST_TIMES * low and high - low > LEAST_S:
        return _apart(cause, in_blocks=max(often) >= 1)
    if unequal:
        return failed(ATTACHMENT, cause, "attach the disks of both arms equally often in a block", None)
    return passed(ATTACHMENT, cause)


def _apart(cause: str, in_blocks: bool) -> Gate:
    if not in_blocks:
        cause += "; disks stay attached over blocks, so that is the time in the run"
        return failed(ATTACHMENT, cause, "measure more blocks, in which arms lead in turn", None)
    remedy = (
        "measure anew: disks that comparisons join are attached equally often, right before an arm's trials; "
        "or let them settle (design.settle_s)"
    )
    return failed(ATTACHMENT, cause, remedy)


def _ago(seconds: float) -> str:
    """A time to compare: exact to the second where that is little."""
    if seconds >= 1000:
        return span(seconds)
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"
