"""Curves over threads: the rate of each load, with the limits in force and the knee of each curve."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many
from diskbook.facts.units import KIB
from diskbook.report.figures import scales, style
from diskbook.stats import knee

LARGE = 32 * KIB
"""Block size from which on a rate is drawn in MB/s: there the limits of bytes bind."""
NEAR = 1.7
"""Limits up to this multiple of the highest rate are drawn."""
CLOSE = 0.12
"""Share of the highest limit by which two must differ for both names to stand above their lines."""
WIDE = 4.5
"""Neighbours that lie further apart are not joined: what is between them was not measured."""
DRAWN = ["arm", "kind", "block_size_bytes", "workload", "trial", "outstanding", "iops", "mb_s", "lat_mean_ms"]
IN_FLIGHT = "I/Os in flight"
"""What is on the axis where each thread has one."""
NOTE = (
    "Latency is the I/Os in flight by the rate: it rises where the rate does not. Marks are medians; lines "
    f"join neighbouring depths. {knee.SHARP_LIMITS}"
)


class Curve(NamedTuple):
    """One panel: what is done, and to which blocks."""

    kind: str
    block_size_bytes: int

    @property
    def words(self) -> str:
        """The panel's title, e.g. "4K read"."""
        return f"{self.block_size_bytes // KIB}K {self.kind}"

    @property
    def unit(self) -> str:
        """Column that is drawn."""
        return "mb_s" if self.block_size_bytes >= LARGE else "iops"


@style.redrawable
def depth_curves(
    totals: pd.DataFrame,
    caps: pd.DataFrame,
    knees: pd.DataFrame,
    looks: Mapping[str, style.ArmLook],
    queue_depth: int,
    title: str,
    run: str,
) -> style.Picture:
    """Draw the rate over threads, a panel a block size and direction.

    - `totals`: trials of the sweep (`totals.trial_totals`).
    - `caps`: lowest limit in force of each curve: `arm, kind, block_size_bytes, iops, mb_s, words`.
    - `knees`: from `knee.knees`, one row a curve.
    - `looks`, `queue_depth`: looks of arms; outstanding a thread, or 1 for a sweep over I/Os in flight.
    """
    data = totals[DRAWN].assign(threads=totals["outstanding"] / queue_depth).reset_index(drop=True)
    places = sorted({Curve(*place) for place in zip(data["kind"], data["block_size_bytes"], strict=True)},
                    key=lambda item: (item.block_size_bytes, item.kind))  # fmt: skip
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, key, axes = _grid(max(1, len(places)))
    with mpl.rc_context(style.RC):
        for panel, place in zip(axes, places, strict=False):
            _panel(panel, place, (data, caps, knees), {arm: looks[arm] for arm in arms}, queue_depth)
        for unit in {place.unit for place in places}:
            scales.equal_y([panel for panel, place in zip(axes, places, strict=False) if place.unit == unit])
        scales.equal_x(axes[: len(places)])
        across = 1 if style.is_narrow() else 2
        for bottom in axes[-across:]:
            bottom.set_xlabel(f"threads of {queue_depth} outstanding" if queue_depth > 1 else IN_FLIGHT)
        _legend(key, [looks[arm] for arm in arms], bool(len(caps)), bool(len(knees)))
    provenance = "+".join(sorted(set(totals["provenance"]))) if len(totals) else ""
    note = NOTE
    style.decorate(figure, title, note, provenance, run)
    emulated = Provenance.EMULATED in provenance
    finding = _finding(knees, looks, queue_depth)
    caption = style.brief(provenance, f"{finding} {note}")
    over = "threads" if queue_depth > 1 else IN_FLIGHT
    alt = f"Lines of {'emulated ' if emulated else ''}rates over {over}, one per arm. {title}."
    short = style.brief(
        provenance, f"Rates of {many(len(data), 'trial')} over {over}, with the limits in force."
    )
    return style.Picture("depth-curves", title, short, alt, figure, data, provenance, run, caption)


def _grid(panels: int) -> tuple[Figure, Axes, list[Axes]]:
    """A figure with room for a key above panels, two a row, which are below each other on a phone."""
    with mpl.rc_context(style.RC):
        across = 1 if style.is_narrow() or panels == 1 else 2
        below, key = -(-panels // across), 0.9 if style.is_narrow() else 0.5
        figure = Figure(figsize=(style.width_in(), 2.9 + 1.9 * below), layout=style.layout())
        grid = figure.add_gridspec(below + 1, across, height_ratios=[key, *[1.0] * below])
        places = [divmod(place, across) for place in range(panels)]
        drawn = [figure.add_subplot(grid[row + 1, column]) for row, column in places]
        # Last, and without a frame: it is no panel.
        return figure, figure.add_subplot(grid[0, :], frameon=False), drawn


def _panel(
    rate: Axes,
    place: Curve,
    tables: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame],
    looks: Mapping[str, style.ArmLook],
    queue_depth: int,
) -> None:
    """One load: the rate of each arm with caps and knees."""
    data, caps, knees = (_of(table, place) for table in tables)
    for arm, look in looks.items():
        _curve(rate, data[data["arm"] == arm], place.unit, look)
        _knee(rate, knees[knees["arm"] == arm], look, queue_depth)
    highest = float(data[place.unit].max())
    near = caps[caps["arm"].isin(list(looks)) & (caps[place.unit] <= NEAR * highest)]
    _limits(rate, near, place, looks)
    rate.set_ylim(0, 1.18 * max([highest, *near[place.unit]]))
    rate.set_title(place.words, loc="left", fontsize=11)
    rate.set_ylabel("MB/s" if place.unit == "mb_s" else "IOPS")
    rate.set_xlim(left=0)
    rate.xaxis.set_major_locator(mpl.ticker.MaxNLocator(6, integer=True))
    rate.grid(axis="y", color=style.FAINT, linewidth=0.7)
    rate.set_axisbelow(True)
    rate.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 10 else f"{value:g}")


def _limits(axes: Axes, caps: pd.DataFrame, place: Curve, looks: Mapping[str, style.ArmLook]) -> None:
    """Limits that are near enough to matter, as dotted lines with their names."""
    values = sorted(set(caps[place.unit].astype(float)))
    for value in values:
        close = any(value < other < value + CLOSE * values[-1] for other in values)
        rows = caps[caps[place.unit] == value]
        colour = looks[rows["arm"].iloc[0]].colour if rows["arm"].nunique() == 1 else style.INK
        axes.axhline(value, color=colour, linestyle=":", linewidth=1.4, zorder=0)
        words = " / ".join(dict.fromkeys(rows["words"])).replace(" limit of", ":")  # its line says so
        axes.text(
            0.02,
            value,
            words,
            transform=axes.get_yaxis_transform(),
            va="top" if close else "bottom",
            fontsize=10,
            color=colour,
            bbox={"facecolor": style.GROUND, "edgecolor": "none", "pad": 0.6},
            zorder=1,  # behind what was measured
        )


def _curve(axes: Axes, rows: pd.DataFrame, column: str, look: style.ArmLook) -> None:
    by_depth = rows.groupby("threads")[column]
    medians = by_depth.median()
    scales.upright(axes, medians.index, by_depth.min(), by_depth.max())
    threads = medians.index.to_numpy(float)
    for place in range(len(threads) - 1):
        if threads[place + 1] <= WIDE * threads[place]:
            two = slice(place, place + 2)
            axes.plot(threads[two], medians.iloc[two], color=look.colour, linestyle=look.line, linewidth=1.6)
    axes.plot(medians.index, medians, **look.marks(5.5))


def _knee(axes: Axes, rows: pd.DataFrame, look: style.ArmLook, queue_depth: int) -> None:
    """A triangle on the axis where latency and cap meet, with its interval as a bar."""
    for low, middle, high in (rows[["low", "knee", "high"]] / queue_depth).dropna(subset=["knee"]).to_numpy():
        bottom = axes.get_xaxis_transform()
        axes.plot([middle], [0.03], marker="^", markersize=9, color=look.colour, transform=bottom, zorder=5)
        if np.isfinite([low, high]).all():
            axes.plot([low, high], [0.03, 0.03], color=look.colour, linewidth=2.5, transform=bottom, zorder=4)


def _legend(key: Axes, looks: Sequence[style.ArmLook], has_caps: bool, has_knees: bool) -> None:
    """Name arms, and what is drawn besides: bars, limits and knees."""
    line = mpl.lines.Line2D
    handles = [line([], [], color=look.colour, **{**look.marks(6), "linestyle": look.line}) for look in looks]
    bar = {"linestyle": "none", "color": style.INK, "marker": "|", "markersize": 11, "markeredgewidth": 1.4}
    shown: list[tuple[bool, str, dict[str, Any]]] = [(True, "lowest to highest trial", bar)]
    shown += [(has_caps, "lowest limit in force", {"linestyle": ":", "color": style.INK})]
    knees = {"linestyle": "-", "color": style.GREY, "marker": "^", "markersize": 9}
    shown += [(has_knees, "knee: latency x limit, 95 % interval", knees)]
    named = [(words, line([], [], **look)) for is_there, words, look in shown if is_there]
    key.set_axis_off()
    key.legend([*handles, *(handle for _, handle in named)],
               [*(look.label for look in looks), *(words for words, _ in named)], loc="center left",
               frameon=False, fontsize=10, handlelength=3.2, borderaxespad=0,
               ncols=1 if style.is_narrow() else 2)  # fmt: skip


def _of(table: pd.DataFrame, place: Curve) -> pd.DataFrame:
    if table.empty:
        return table.reindex(columns=["arm", "iops", "mb_s", "words", "knee", "low", "high"])
    return table[(table["kind"] == place.kind) & (table["block_size_bytes"] == place.block_size_bytes)]


def _finding(knees: pd.DataFrame, looks: Mapping[str, style.ArmLook], queue_depth: int) -> str:
    known = knees[knees["knee"].notna()] if len(knees) else knees
    parts = [
        f"{looks[row['arm']].label}, {Curve(row['kind'], row['block_size_bytes']).words}: knee at "
        f"{row['knee'] / queue_depth:.1f} {'threads' if queue_depth > 1 else IN_FLIGHT}"
        for row in known.to_dict("records")
    ]
    return (
        "; ".join(parts) + "."
        if parts
        else "No curve reaches a limit and shows its latency, so none has a knee."
    )
