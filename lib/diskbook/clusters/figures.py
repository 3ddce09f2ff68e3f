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


CAPACITY_NOTE = (
    "Rates with full queues, of the smallest blocks; bars: 95 % intervals. Short lines: what disk I/Os and "
    "limits alone predict. Arrows: capacity with seven drives a node or more."
)
_LOOKS = (("o", style.BLUE), ("s", style.GREEN), ("D", style.VERMILLION), ("^", style.PURPLE_DARK))
APART = 0.5
"""Points of capacity that marks of one kind stand apart."""


@style.redrawable
def capacity(points: pd.DataFrame, title: str, run: str, provenance: str) -> style.Picture:
    """Draw rates in percent of the two-way mirror's over usable capacity, a mark a share of writes.

    - `points`: `arm, label, capacity_pct, most_pct, write_pct, ratio, low, high, bound`.
    - `title`, `run`, `provenance`: finding, name of the run, and where its numbers come from.
    """
    figure, (axes,) = style.new_figure(4.9)
    scaled = points.assign(**{name: 100 * points[name] for name in ("ratio", "low", "high", "bound")})
    shares = sorted(set(points["write_pct"]))
    with mpl.rc_context(style.RC):
        for place, share in enumerate(shares):
            shift = APART * (place - (len(shares) - 1) / 2)
            _marks(axes, scaled[scaled["write_pct"] == share], shift, place, share)
        _names(axes, scaled)
        _frame(axes, scaled)
    style.decorate(figure, title, CAPACITY_NOTE, provenance, run)
    emulated = Provenance.EMULATED in provenance
    finding = _capacity_finding(points)
    caption = style.brief(provenance, f"{finding} {CAPACITY_NOTE}")
    made = "emulated " if emulated else ""
    alt = f"Dots of {made}rates over usable capacity by kind of volume. {title}."
    kinds = many(points["arm"].nunique(), "kind")
    short = style.brief(provenance, f"IOPS of {kinds} of volume over what of their drives can be used.")
    return style.Picture(
        "capacity", title, short, alt, figure, points.reset_index(drop=True), provenance, run, caption
    )


def _marks(axes: Axes, rows: pd.DataFrame, shift: float, place: int, share: float) -> None:
    marker, colour = _LOOKS[place % len(_LOOKS)]
    places = rows["capacity_pct"] + shift
    for at, bound in zip(places, rows["bound"], strict=True):
        axes.plot([at - 0.4, at + 0.4], [bound, bound], color=style.INK, linewidth=1.4, zorder=1)
    scales.upright(axes, places, rows["low"].astype(float), rows["high"].astype(float))
    words = {0: "reads", 100: "writes"}.get(int(share), f"{share:g} % writes")
    axes.plot(
        places,
        rows["ratio"],
        linestyle="none",
        marker=marker,
        color=colour,
        markersize=7,
        label=words,
        zorder=3,
    )


def _names(axes: Axes, points: pd.DataFrame) -> None:
    """Name each kind above its marks, kinds of nearly one capacity at different heights."""
    kinds = points.drop_duplicates("arm").sort_values("capacity_pct")
    above, last = 0, -100.0
    for row in kinds.to_dict("records"):
        above = (above + 1) % 3 if row["capacity_pct"] - last < 12 else 0
        last = row["capacity_pct"]
        height = 116 + 9 * above
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.text(
            last, height, row["label"], ha="center", va="bottom", fontsize=10, color=style.INK, bbox=box
        )
        axes.plot([last, last], [0, height], color=style.FAINT, linewidth=0.8, zorder=0)
        if row["most_pct"] - last > 0.5:
            arrow = {"arrowstyle": "->", "color": style.GREY}
            axes.annotate("", (row["most_pct"], height - 1), (last, height - 1), arrowprops=arrow)


def _frame(axes: Axes, points: pd.DataFrame) -> None:
    low, high = (points["capacity_pct"].min(), points["capacity_pct"].max()) if len(points) else (25, 50)
    axes.set_xlim(low - 6, high + 8)
    most = max([145.0, *(1.1 * points["ratio"])])
    axes.set_ylim(0, most)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.grid(axis="y", color=style.FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel("Usable share of the drives, %")
    axes.set_ylabel("IOPS, % of the two-way mirror's")
    if len(points) and style.is_narrow():
        style.legend_below(axes, *axes.get_legend_handles_labels(), columns=3, lines=2)
    elif len(points):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4, frameon=False, fontsize=10)


def _capacity_finding(points: pd.DataFrame) -> str:
    parts = []
    for _, rows in points.groupby("arm", sort=False):
        first = rows.iloc[0]
        done = ", ".join(
            f"{100 * row['ratio']:.0f} % of the IOPS with {row['write_pct']:g} % writes"
            for row in rows.to_dict("records")
        )
        parts.append(f"{first['label']} has {first['capacity_pct']:.1f} % of its drives to use, and {done}")
    return f"{'; '.join(parts) or 'Nothing was measured'}."
