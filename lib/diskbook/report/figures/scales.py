"""Axes of figures: changes in percent, equal units on panels, and intervals drawn over their marks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, to_rgb
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from diskbook.facts import quantities
from diskbook.report.figures import style

EDGE_PT, LINE_PT = 3.2, 1.4
OVER_MARKS = 5.0
"""Above every mark's zorder."""


def upright(axes: Axes, places: ArrayLike, low: ArrayLike, high: ArrayLike) -> None:
    """Draw an interval of the vertical axis at each place, with a white edge that parts it from marks."""
    axes.vlines(places, low, high, color=style.GROUND, linewidth=EDGE_PT, zorder=OVER_MARKS)
    axes.vlines(places, low, high, color=style.INK, linewidth=LINE_PT, zorder=OVER_MARKS + 1)


def level(axes: Axes, places: ArrayLike, low: ArrayLike, high: ArrayLike) -> None:
    """Draw an interval of the horizontal axis at each place, as `upright` does."""
    axes.hlines(places, low, high, color=style.GROUND, linewidth=EDGE_PT, zorder=OVER_MARKS)
    axes.hlines(places, low, high, color=style.INK, linewidth=LINE_PT, zorder=OVER_MARKS + 1)


APART = 10.0
"""A change that is so many times the median change lies beyond the axis: it would make dots of the others."""
LEAST_PCT, LEAST_SPAN_PCT = 5.0, 8.0
"""A median below the first counts as that. An axis spans the second: a percent is not blown up to fill it."""
FASTER, SLOWER = "← faster", "slower →"
_ENDS = ("ratio", "ci_low", "ci_high")


def percent(ratio: float) -> float:
    """Return the change in percent that a ratio is."""
    return 100 * (ratio - 1)


def in_percent(ratio: float) -> str:
    """Write a change in whole percents, e.g. "+146"; "0" where it rounds to nothing."""
    return f"{round(percent(ratio)):+d}".replace("+0", "0")


def reach(rows: Sequence[Mapping[Any, Any]]) -> tuple[float, float]:
    """Return from where to where an axis reaches, in percent: 0, and all that is not ten times as far."""
    known = [row for row in rows if not np.isnan(row["ratio"])]
    median = np.median([abs(percent(row["ratio"])) for row in known]) if known else 0.0
    furthest = APART * max(LEAST_PCT, float(median))
    near = [row for row in known if abs(percent(row["ratio"])) <= furthest]
    edges = [0.0, *(percent(row[name]) for row in near for name in _ENDS if not np.isnan(row[name]))]
    low, high = min(edges), max(edges)
    room = max(0.07 * (high - low), (LEAST_SPAN_PCT - (high - low)) / 2)
    return low - room, high + room


def set_axis(axes: Axes, limits: tuple[float, float], name: str, ends: tuple[str, str]) -> None:
    """Scale an axis and name it and its ends; 0, no change, is a line."""
    axes.set_xlim(*limits)
    axes.xaxis.set_major_locator(MaxNLocator(3 if style.is_narrow() else 4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+.3g} %" if value else "0"))
    axes.grid(axis="x", color=style.FAINT, linewidth=0.7, zorder=-1)
    axes.set_axisbelow(True)
    axes.axvline(0.0, color=style.INK, linewidth=1, zorder=0)
    axes.set_xlabel(name, labelpad=16)
    for where, (side, words) in enumerate(zip(("left", "right"), ends, strict=True)):
        axes.annotate(words, (where, 0), xycoords="axes fraction", xytext=(0, -20), va="top", ha=side,
                      textcoords="offset points", fontsize=10, color=style.INK)  # fmt: skip


def bar(axes: Axes, place: float, row: Mapping[Any, Any], is_difference: bool) -> bool:
    """Draw a change with its interval, filled where it is a difference; return whether the axis holds it.

    One that lies beyond the axis is an arrow at its end.
    """
    colour, marks = style.verdict_look(is_difference)
    change, (low, high) = percent(row["ratio"]), axes.get_xlim()
    if not low <= change <= high:
        above = change > high
        axes.text(0.99 if above else 0.01, place, "→" if above else "←", va="center", fontsize=12,
                  ha="right" if above else "left", color=colour, fontweight="bold",
                  transform=axes.get_yaxis_transform())  # fmt: skip
        return False
    axes.plot([change], [place], linestyle="none", markersize=7, **marks)
    if not np.isnan(row["ci_low"]):
        level(axes, [place], [percent(row["ci_low"])], [percent(row["ci_high"])])
    return True


def colour_key(axes: Axes, colours: Colormap, doublings: float, lines: int = 1) -> None:
    """Set the key of colours below a panel: from halving to doubling, or as far as they reach."""
    steps = np.linspace(-doublings, doublings, 5)
    patches = [Patch(facecolor=colours((step / doublings + 1) / 2), edgecolor=style.GREY) for step in steps]
    labels = [f"{percent(2.0**step):+.0f} %" if step else "0" for step in steps]
    style.legend_below(axes, patches, labels, 3 if style.is_narrow() else 5, lines)


def ink(face: Any) -> str:
    """Return the colour of letters that can be read on a cell."""
    red, green, blue = to_rgb(face)
    return style.INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 else style.ON_COLOUR


def value_words(row: Mapping[Any, Any]) -> str:
    """Change with its interval, without the level, e.g. "+146 %, 138 to 155 %"."""
    value, interval = quantities.change_parts(row["ratio"], row["ci_low"], row["ci_high"])
    return f"{value}, {interval.partition('CI ')[2] or 'no interval'}"


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
