"""Axes of ratios: which ratios share one, from where to where it reaches, and its ticks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

APART = 8.0
"""Ratios that differ by more stand in panels of their own: on one axis their intervals would be dots."""
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Distances between ticks, in powers of two."""
NARROW = 1.3
"""Powers of two up to which an axis has plain numbers for ticks: 0.9, 1, 1.1."""
LEAST_SPAN = 0.12
"""Powers of two that an axis has at least: an interval of a percent is not blown up to fill it."""
MOST_TICKS = 5
TICK_PT = 46
"""Room that a tick's label needs."""
WIDE_PT = 500.0


def groups(ratios: Sequence[float]) -> list[list[int]]:
    """Split ratios at their widest gaps, until those of a group lie within 8 times of each other.

    Parameters
    ----------
    ratios
        Above 0.

    Returns
    -------
    list of list of int
        Positions of the ratios, largest group of ratios first, within a group by size.
    """
    order = sorted(range(len(ratios)), key=lambda place: -ratios[place])
    return _split(order, np.log2([ratios[place] for place in order])) if order else []


def _split(order: list[int], powers: np.ndarray) -> list[list[int]]:
    if powers[0] - powers[-1] <= np.log2(APART):
        return [order]
    cut = int(np.argmax(powers[:-1] - powers[1:])) + 1
    return _split(order[:cut], powers[:cut]) + _split(order[cut:], powers[cut:])


def span(edges: Sequence[float]) -> tuple[float, float]:
    """Return from where to where an axis reaches, in powers of two: the data, and 1 where it is near.

    1 is near where data and 1 together lie within 8 times.
    """
    if not len(edges):
        return -1.0, 1.0
    powers = np.log2(np.asarray(edges, dtype=float))
    low, high = float(powers.min()), float(powers.max())
    if max(high, 0.0) - min(low, 0.0) <= np.log2(APART):
        low, high = min(low, 0.0), max(high, 0.0)
    room = max(0.07 * (high - low), (LEAST_SPAN - (high - low)) / 2)
    return low - room, high + room


def set_ticks(axes: Axes, low: float, high: float, width_pt: float = WIDE_PT) -> None:
    """Set the ticks of a log axis between two powers of two, as many as a width has room for."""
    most = int(min(MOST_TICKS, max(2, width_pt // TICK_PT)))
    narrow = high - low <= NARROW
    values = _plain(low, high, most) if narrow else _powers(low, high, most)
    halves = not narrow and all(float(np.log2(value)).is_integer() for value in values)
    axes.set_xticks(values, [_tick(value, halves, 3 if narrow else 2) for value in values])
    axes.set_xticks([], minor=True)


def _powers(low: float, high: float, most: int) -> list[float]:
    for step in STEPS:
        least, last = int(np.ceil(low / step)), int(np.floor(high / step))
        # Names of ticks that are further apart are long: 1/256.
        if last - least < (most if step < 2 else min(most, 3)):
            break
    return [float(2.0 ** (step * place)) for place in range(least, last + 1)]


def _plain(low: float, high: float, most: int) -> list[float]:
    """Round numbers within the axis: as many as there is room for, and two at least."""
    least, last = 2.0**low, 2.0**high
    decade = np.floor(np.log10(last - least)) - 1
    finer: list[float] = []
    for step in (times * 10.0 ** (decade + more) for more in range(3) for times in (1, 2, 5)):
        places = range(int(np.ceil(least / step - 1e-9)), int(np.floor(last / step + 1e-9)) + 1)
        values = [float(f"{step * place:.6g}") for place in places]
        if len(values) < 2:
            return [finer[0], finer[-1]]
        if len(values) <= most:
            return values
        finer = values
    return finer


def _tick(value: float, halves: bool, digits: int) -> str:
    """Name a tick: "1/16×", "2×"; with digits where not all of them are powers of two."""
    if halves:
        return f"1/{1 / value:.0f}×" if value < 1 else f"{value:.0f}×"
    return f"{value:.{digits}g}×"
