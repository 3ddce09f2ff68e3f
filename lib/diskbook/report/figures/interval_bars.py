"""Intervals drawn over their marks, so that a mark never hides the interval that is narrower than it."""

from __future__ import annotations

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from diskbook.report.figures.style import GROUND, INK

EDGE_PT, LINE_PT = 3.2, 1.4
OVER_MARKS = 5.0
"""Above every mark's zorder."""


def upright(axes: Axes, places: ArrayLike, low: ArrayLike, high: ArrayLike) -> None:
    """Draw an interval of the vertical axis at each place, with a white edge that parts it from marks."""
    axes.vlines(places, low, high, color=GROUND, linewidth=EDGE_PT, zorder=OVER_MARKS)
    axes.vlines(places, low, high, color=INK, linewidth=LINE_PT, zorder=OVER_MARKS + 1)


def level(axes: Axes, places: ArrayLike, low: ArrayLike, high: ArrayLike) -> None:
    """Draw an interval of the horizontal axis at each place, as `upright` does."""
    axes.hlines(places, low, high, color=GROUND, linewidth=EDGE_PT, zorder=OVER_MARKS)
    axes.hlines(places, low, high, color=INK, linewidth=LINE_PT, zorder=OVER_MARKS + 1)
