"""Which limit binds: a strip of cells over threads for every curve, each with what sets its rate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from diskbook.design.vocabulary import Label, Provenance
from diskbook.facts.quantities import many
from diskbook.facts.units import KIB
from diskbook.report.figures.style import (
    BLUE,
    FAINT,
    GREY,
    INK,
    ON_COLOUR,
    PURPLE_DARK,
    RC,
    VERMILLION,
    ArmLook,
    Picture,
    brief,
    decorate,
    new_figure,
    redrawable,
)

KINDS: Mapping[str, tuple[str, str, str]] = {
    "disk": (BLUE, ON_COLOUR, ""),
    "VM": (VERMILLION, ON_COLOUR, "//"),
    "burst": (PURPLE_DARK, ON_COLOUR, ".."),
    "network": ("#005A46", ON_COLOUR, "xx"),
    "unknown": (GREY, ON_COLOUR, "\\\\"),
    "loop": ("white", INK, ""),
    "open": (FAINT, INK, ""),
}
_WORDS = {
    "loop": "the tool's own concurrency",
    "disk": "a disk limit",
    "VM": "a VM limit",
    "burst": "a burst limit",
    "network": "a network limit",
    "unknown": "a limit that is not known",
    "open": "nothing that is known",
}
NOTE = (
    "N/L: the tool's own concurrency, outstanding / latency; VM, disk: that limit's base; +: its burst, "
    "while "
    "credit lasts; none: a queue that no known limit explains; '?': not corroborated, or not assessable."
)


def kind_of(cell: Mapping[Any, Any]) -> tuple[str, str]:
    """What sets a cell's rate, as a key of `KINDS` and in letters, e.g. ("VM", "VM?")."""
    if cell["label"] == Label.SATURATED:
        return "unknown", "none"
    if cell["label"] in (Label.CAPPED, Label.NEAR_A_CAP):
        limit = str(cell["limit"])
        whose = "disk" if "disk" in limit else "network" if "nic" in limit else "VM"
        kind = "burst" if "burst" in limit else whose
        words = f"{whose}+" if kind == "burst" else {"network": "net"}.get(whose, whose)
        return kind, words + "?" * (cell["label"] == Label.NEAR_A_CAP)
    unlimited = math.isnan(cell.get("share", 1.0)) and str(cell["binds"]).startswith("not known")
    return ("open", "?") if unlimited or cell["label"] == Label.UNASSESSED else ("loop", "N/L")


@redrawable
def binding(
    cells: pd.DataFrame, looks: Mapping[str, ArmLook], queue_depth: int, title: str, run: str, provenance: str
) -> Picture:
    """Draw what sets the rate of every cell of a sweep.

    Parameters
    ----------
    cells
        From `limits.label_cells`, those of the sweep.
    looks, queue_depth
        Looks of arms; outstanding a thread.
    title, run, provenance
        Finding, name of the run, and where its numbers come from.
    """
    names = ["arm", "kind", "block_size_bytes", "outstanding", "label", "limit", "binds"]
    data = cells[names].reset_index(drop=True)
    heights = _heights(cells, list(looks))
    loads = {place[1:] for place in heights}
    figure, (axes,) = new_figure(1.9 + 0.33 * (len(heights) + len(loads)))
    with mpl.rc_context(RC):
        _grid(axes, cells, heights, looks, queue_depth)
    decorate(figure, title, NOTE, provenance)
    emulated = Provenance.EMULATED in provenance
    finding = _finding(cells)
    caption = brief(provenance, f"{finding} {NOTE}")
    alt = f"Grid of {'emulated ' if emulated else ''}cells by curve and threads, showing: {finding}"
    short = brief(provenance, finding)
    return Picture("which-limit-binds", title, short, alt, figure, data, provenance, run, caption)


def _heights(cells: pd.DataFrame, arms: list[str]) -> dict[tuple[str, str, int], float]:
    """Height of each curve's row, with room for a heading above those of a load."""
    every = set(zip(cells["arm"], cells["kind"], cells["block_size_bytes"], strict=True))
    places = sorted(every, key=lambda item: (item[2], item[1], arms.index(item[0])))
    loads = list(dict.fromkeys(place[1:] for place in places))
    return {place: row + 0.9 * (1 + loads.index(place[1:])) for row, place in enumerate(places)}


def _grid(
    axes: Axes,
    cells: pd.DataFrame,
    heights: Mapping[tuple[str, str, int], float],
    looks: Mapping[str, ArmLook],
    queue_depth: int,
) -> None:
    """Rows of cells, a heading above those of each load."""
    depths = sorted(set(cells["outstanding"]))
    headed: set[tuple[str, int]] = set()
    for place, height in heights.items():
        _row(axes, height, _of(cells, place), depths)
        kind, block = place[1:]
        if (kind, block) not in headed:
            heading = f"{int(block) // KIB}K {kind}"
            axes.text(-0.5, height - 0.75, heading, fontsize=10, fontweight="bold", va="center")
            headed.add((kind, block))
    axes.set_yticks(list(heights.values()), [looks[arm].label for arm, _, _ in heights])
    axes.set_xticks(range(len(depths)), [f"{depth / queue_depth:g}" for depth in depths])
    axes.set_xlabel(f"threads of {queue_depth} outstanding")
    axes.tick_params(length=0)
    axes.set_xlim(-0.5, max(1, len(depths)) - 0.5)
    axes.set_ylim(max(heights.values(), default=0) + 0.5, -0.2)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _row(axes: Axes, row: float, cells: pd.DataFrame, depths: list[float]) -> None:
    for cell in cells.to_dict("records"):
        place = depths.index(cell["outstanding"])
        kind, words = kind_of(cell)
        colour, ink, hatch = KINDS[kind]
        box = Rectangle(
            (place - 0.47, row - 0.43), 0.94, 0.86, facecolor=colour, edgecolor=INK, linewidth=0.6
        )
        axes.add_patch(box)
        if hatch:
            axes.add_patch(Rectangle((place - 0.47, row - 0.43), 0.94, 0.86, fill=False, hatch=hatch,
                                     edgecolor=ON_COLOUR, linewidth=0, alpha=0.25))  # fmt: skip
        axes.text(place, row, words, ha="center", va="center", fontsize=10, color=ink)


def _of(cells: pd.DataFrame, place: tuple[str, str, int]) -> pd.DataFrame:
    arm, kind, block = place
    return cells[(cells["arm"] == arm) & (cells["kind"] == kind) & (cells["block_size_bytes"] == block)]


def _finding(cells: pd.DataFrame) -> str:
    kinds = [kind_of(cell)[0] for cell in cells.to_dict("records")]
    parts = [f"{kinds.count(kind)} by {name}" for kind, name in _WORDS.items() if kind in kinds]
    return (
        f"Of {many(len(kinds), 'cell')} the rate is set: {', '.join(parts)}." if kinds else "No cell to show."
    )
