"""Equal axes for panels of one unit that are compared, so that equal lengths mean equal numbers."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

WITHIN = 4.0
"""Panels whose largest values differ by more keep axes of their own: the smaller would be a dot."""


def equal_x(panels: Sequence[Axes]) -> None:
    """Give panels whose axes begin at one place the widest of their horizontal axes.

    Those that reach less than a quarter as far keep their own.
    """
    ends = [axes.get_xlim() for axes in panels]
    for axes, (low, high) in zip(panels, _together(ends), strict=True):
        axes.set_xlim(low, high)


def equal_y(panels: Sequence[Axes]) -> None:
    """Give panels the tallest of their vertical axes, as `equal_x` does."""
    ends = [axes.get_ylim() for axes in panels]
    for axes, (low, high) in zip(panels, _together(ends), strict=True):
        axes.set_ylim(low, high)


def _together(ends: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Each panel's own end, or that of the widest within 4 times of it; groups count from the widest."""
    made = list(ends)
    left = sorted(range(len(ends)), key=lambda place: -ends[place][1])
    while left:
        widest = ends[left[0]][1]
        alike = [place for place in left if WITHIN * ends[place][1] >= widest]
        for place in alike:
            made[place] = (min(ends[other][0] for other in alike), widest)
        left = [place for place in left if place not in alike]
    return made
