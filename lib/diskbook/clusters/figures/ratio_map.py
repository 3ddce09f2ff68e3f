"""Maps of changes: load against threads or kinds, panels below each other; a star marks capped cells."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.patches import Rectangle

from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many, reach
from diskbook.report.figures import scales, style

NOTE = (
    "with so many I/Os always in flight, MB/s change alike and latency the other way. *: a limit sets one "
    "of both rates, or both, so the change is one of limits."
)


MOST_NARROW = 6
"""Columns that have room for names of the usual size on a phone."""


class Across(NamedTuple):
    """What lies across a map: its column and its name; numbers rise, texts stand in the order they come in.

    `widest` are the doublings at which colours end; `names` are what texts are called below the map.
    """

    column: str = "threads"
    label: str = "threads"
    widest: float = 1.0
    names: Mapping[str, str] = MappingProxyType({})


THREADS = Across()


@style.redrawable
def ratio_map(
    panels: Mapping[str, pd.DataFrame],
    what: str,
    title: str,
    run: str,
    provenance: str,
    across: Across = THREADS,
) -> style.Picture:
    """Draw maps of ratios, a panel each.

    - `panels`: by the panel's title: `load` (row in words), what lies across, `ratio`, `capped`.
    - `what`: the ratio's two sides, e.g. "cluster / server".
    - `title`, `run`, `provenance`: its finding, name of the run, and where its numbers come from.
    - `across`: column of what lies across.
    """
    every = pd.concat([frame.assign(panel=name) for name, frame in panels.items()], ignore_index=True)
    loads, columns = list(dict.fromkeys(every["load"])), list(dict.fromkeys(every[across.column]))
    columns = columns if any(isinstance(name, str) for name in columns) else sorted(columns)
    figure, drawn = style.new_figure(2.4 + len(panels) * (0.75 + 0.34 * len(loads)), len(panels))
    with mpl.rc_context(style.RC):
        colours = mpl.colormaps["PuOr_r"], Normalize(-across.widest, across.widest)
        for axes, (name, frame) in zip(drawn, panels.items(), strict=True):
            _panel(
                axes, frame.rename(columns={across.column: "column"}), loads, columns, *colours, across.names
            )
            axes.set_title(name, loc="left", fontsize=11)
        drawn[-1].set_xlabel(across.label)
        lines = 1 + max((str(across.names.get(name, "")).count("\n") for name in columns), default=0)
        scales.colour_key(drawn[-1], colours[0], across.widest, lines + style.is_narrow())
    note = f"Change of IOPS in percent, {what}; {NOTE}"
    style.decorate(figure, title, note, provenance, run)
    emulated = Provenance.EMULATED in provenance
    finding = " ".join(_finding(name, frame) for name, frame in panels.items())
    caption = style.brief(provenance, f"{finding} {note}")
    made = "emulated " if emulated else ""
    alt = f"Coloured maps of {made}IOPS changes by load and {across.label}. {title}."
    short = style.brief(
        provenance,
        f"Change of IOPS, {what.replace(' / ', ' against ')}, by load and {across.label}: {_limited(every)}.",
    )
    return style.Picture("ratio-map", title, short, alt, figure, every, provenance, run, caption)


def _panel(
    axes: Axes,
    frame: pd.DataFrame,
    loads: list[str],
    columns: list[Any],
    colours: Colormap,
    scale: Normalize,
    names: Mapping[str, str],
) -> None:
    for row, load in enumerate(loads):
        for column, name in enumerate(columns):
            cell = frame[(frame["load"] == load) & (frame["column"] == name)]
            corner = (column - 0.48, row - 0.45)
            if cell.empty or math.isnan(cell["ratio"].iloc[0]):
                axes.add_patch(Rectangle(corner, 0.96, 0.9, facecolor="white", edgecolor=style.FAINT))
                continue
            _cell(axes, corner, float(cell["ratio"].iloc[0]), bool(cell["capped"].iloc[0]), colours, scale)
    axes.set_yticks(range(len(loads)), loads)
    axes.set_xticks(
        range(len(columns)),
        [names.get(name, name) if isinstance(name, str) else f"{name:g}" for name in columns],
    )
    axes.tick_params(length=0)
    if style.is_narrow() and len(columns) > MOST_NARROW:
        axes.tick_params(axis="x", labelsize=8)
    axes.set_xlim(-0.5, max(1, len(columns)) - 0.5)
    axes.set_ylim(max(1, len(loads)) - 0.5, -0.5)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _cell(
    axes: Axes, corner: tuple[float, float], ratio: float, capped: bool, colours: Colormap, scale: Normalize
) -> None:
    face = colours(scale(math.log2(ratio)))
    axes.add_patch(Rectangle(corner, 0.96, 0.9, facecolor=face, edgecolor=style.GREY, linewidth=0.6))
    words = scales.in_percent(ratio) + "*" * capped
    axes.text(corner[0] + 0.48, corner[1] + 0.45, words, ha="center", va="center", fontsize=10,
              color=scales.ink(face))  # fmt: skip


def _limited(cells: pd.DataFrame) -> str:
    known = cells[cells["ratio"].notna()]
    capped = int(known["capped"].sum())
    return (
        f"{capped} of {many(len(known), 'cell')} sit{'s' * (capped == 1)} on a limit"
        if len(known)
        else "no cell"
    )


def _finding(name: str, frame: pd.DataFrame) -> str:
    known = frame[frame["ratio"].notna()]
    if known.empty:
        return f"{name}: no cell."
    free = known[~known["capped"]]
    rest = "in the other" + "s" * (len(free) > 1) if len(free) < len(known) else "there"
    ends = (100 * (free["ratio"].min() - 1), 100 * (free["ratio"].max() - 1))
    below = f"; {reach(*ends, '+.0f')} % {rest}" if len(free) else ""
    return f"{name}: {_limited(known)}{below}."
