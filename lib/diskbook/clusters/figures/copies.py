"""Where the copies of each kind of volume lie: stretches of a volume over the drives of all nodes."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from diskbook.design.vocabulary import Provenance
from diskbook.report.figures.style import (
    BLUE,
    FAINT,
    GREY,
    INK,
    ON_COLOUR,
    RC,
    VERMILLION,
    Picture,
    brief,
    decorate,
    new_figure,
    redrawable,
)

PARITY = "P"
"""What a place of parity is called; data have the letters of their column."""
COLUMNS = ("panel", "node", "drive", "band", "holds")
_DATA = ((BLUE, ON_COLOUR), ("#CFE6F5", INK), ("#56B4E9", INK), ("#0B3C5D", ON_COLOUR))
_GAP = 0.8  # between nodes, in drives
EMULATED = "This is the layout that the emulator plays; which drive a real slab lies on, nobody tells."
BY_RULE = "This is drawn from the rules of each kind; which drive a real slab lies on, nobody tells."


@redrawable
def copies(places: pd.DataFrame, by_rule: bool, title: str, run: str, provenance: str) -> Picture:
    """Draw where a few stretches of each kind of volume lie, a panel a kind or tier.

    Parameters
    ----------
    places
        A row a panel, drive and stretch: `panel` (its title), `node` and `drive` by number, `band`, and what
        it `holds`: the letter of a column of data, `PARITY`, or nothing.
    by_rule
        Whether the rules say so, and not a layout.
    title, run, provenance
        Its finding, name of the run, and where the layout comes from.
    """
    names = list(dict.fromkeys(places["panel"]))
    bands = [places.loc[places["panel"] == name, "band"].nunique() for name in names]
    figure, drawn = new_figure(1.5 + sum(0.95 + 0.26 * count for count in bands), max(1, len(names)))
    with mpl.rc_context(RC):
        for axes, name in zip(drawn, names, strict=False):
            _panel(axes, places[places["panel"] == name])
            axes.set_title(name, loc="left", fontsize=11)
    note = (
        "Each row is a stretch of the volume, each box a drive. Alike letters are copies of the same data; "
        f"{PARITY}, hatched, is the parity of the letters on its node. {BY_RULE if by_rule else EMULATED}"
    )
    decorate(figure, title, note, provenance)
    emulated = "Emulated, not measured on Azure. " if Provenance.EMULATED in provenance else ""
    grids = "Grids of emulated drives" if emulated else "Grids of drives"
    alt = f"{grids} by node, with the data that each holds, showing: {title}."
    data = places[list(COLUMNS)].reset_index(drop=True)
    description = f"{emulated}{title}. {note}"
    return Picture(
        "copies", title, brief(provenance, f"{title}."), alt, figure, data, provenance, run, description
    )


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    drives = int(rows["drive"].max()) + 1
    nodes, bands = sorted(set(rows["node"])), sorted(set(rows["band"]))
    for row in rows.to_dict("records"):
        _box(axes, _place(row["node"], row["drive"], drives), bands.index(row["band"]), str(row["holds"]))
    ticks = {_place(node, drive, drives): str(drive + 1) for node in nodes for drive in range(drives)}
    axes.set_xticks(list(ticks), list(ticks.values()))
    for node in nodes:
        middle = _place(node, (drives - 1) / 2, drives)
        below = len(bands) + 0.25
        axes.text(
            middle, below, f"node {node + 1}, drives", ha="center", va="center", fontsize=10, color=GREY
        )
    axes.set_yticks([])
    axes.tick_params(length=0, pad=1)
    axes.set_xlim(-0.7, _place(nodes[-1], drives - 1, drives) + 0.7)
    axes.set_ylim(len(bands) - 0.4, -0.55)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _place(node: float, drive: float, drives: int) -> float:
    return node * (drives + _GAP) + drive


def _box(axes: Axes, across: float, down: int, holds: str) -> None:
    corner, size = (across - 0.45, down - 0.43), (0.9, 0.86)
    if not holds:
        axes.add_patch(Rectangle(corner, *size, facecolor="white", edgecolor=FAINT, linewidth=0.8))
        return
    parity = holds == PARITY
    face, ink = ("white", INK) if parity else _DATA[(ord(holds) - ord("A")) % len(_DATA)]
    edge = VERMILLION if parity else INK
    axes.add_patch(Rectangle(corner, *size, facecolor=face, edgecolor=edge, linewidth=0.8))
    if parity:
        hatched = Rectangle(corner, *size, fill=False, hatch="////", edgecolor=VERMILLION, linewidth=0)
        axes.add_patch(hatched)
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if parity else None
    axes.text(across, down, holds, ha="center", va="center", fontsize=10, color=ink, bbox=behind)
