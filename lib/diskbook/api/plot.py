"""A plot of changes in percent: values by row, and the intervals of both scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from diskbook.api import card
from diskbook.api.scope import ScopeEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def changes(
    rows: Mapping[str, np.ndarray],
    scopes: Sequence[ScopeEstimate],
    title: str,
    provenance: str,
    ax: Axes | None,
    ranges: Sequence[tuple[float, float]] = (),
) -> Axes:
    """Draw rows of changes, and below them the interval of each scope that has one.

    Parameters
    ----------
    rows
        Changes in percent, by the name of their row.
    scopes
        Estimates, whose intervals are drawn where they have one.
    title, provenance
        What is compared, and where the numbers come from.
    ax
        Axes to draw into; by default new ones.
    ranges
        Interval of each row; NaN for none.
    """
    axes = ax or _new()
    for place, values in enumerate(rows.values()):
        axes.plot(values, np.full(len(values), place), "o", alpha=0.7)
    for place, reach in enumerate(ranges):
        axes.plot(reach, [place, place], "-", color="grey", linewidth=1.5, zorder=1)
    drawn = [estimate for estimate in scopes if estimate.has_interval]
    for place, estimate in enumerate(drawn, len(rows)):
        axes.plot(estimate.ci_pct, [place, place], "-", color="black", linewidth=2)
        axes.plot([estimate.change_pct], [place], "d", color="black")
    names = [*rows, *(estimate.scope for estimate in drawn)]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names), -0.5)  # the mark below has a row of its own
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("change, %")
    axes.set_title(title, loc="left", fontsize="medium")
    if card.source(provenance):
        axes.text(0.995, 0.03, "EMULATED", transform=axes.transAxes, ha="right", fontsize="small")
    return axes


def _new() -> Axes:
    import matplotlib.pyplot as plt

    axes: Axes = plt.subplots(figsize=(7.2, 2.8), layout="constrained")[1]
    return axes
