"""Curves over threads: rate and latency of volumes, with the limits in force and the knee of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many
from diskbook.facts.units import KIB
from diskbook.report.figures import interval_bars
from diskbook.report.figures.equal_axes import equal_x, equal_y
from diskbook.report.figures.style import (
    FAINT,
    GROUND,
    INK,
    RC,
    ArmLook,
    Picture,
    brief,
    decorate,
    is_narrow,
    layout,
    redrawable,
    width_in,
)
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
DOTTED = "Dotted: the lowest limit in force. "
NOTE = (
    "Marks are medians, bars reach from the lowest to the highest trial, lines join neighbouring depths. "
    f"{DOTTED}Triangles on the axis: the knee, latency x cap, with its interval "
    f"where there are three blocks or more. {knee.SHARP_LIMITS}"
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


@redrawable
def depth_curves(
    totals: pd.DataFrame,
    caps: pd.DataFrame,
    knees: pd.DataFrame,
    looks: Mapping[str, ArmLook],
    queue_depth: int,
    title: str,
    run: str,
) -> Picture:
    """Draw rate and latency over threads, a row a block size and direction.

    Parameters
    ----------
    totals
        Trials of the sweep (`totals.trial_totals`).
    caps
        Lowest limit in force of each curve: `arm, kind, block_size_bytes, iops, mb_s, words`.
    knees
        From `knee.knees`, one row a curve.
    looks, queue_depth
        Looks of arms; outstanding a thread, or 1 for a sweep over I/Os in flight.
    title, run
        Finding and name of the run.
    """
    data = totals[DRAWN].assign(threads=totals["outstanding"] / queue_depth).reset_index(drop=True)
    places = sorted({Curve(*place) for place in zip(data["kind"], data["block_size_bytes"], strict=True)},
                    key=lambda item: (item.block_size_bytes, item.kind))  # fmt: skip
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, key, axes = _grid(max(1, len(places)))
    with mpl.rc_context(RC):
        for (rate, latency), place in zip(axes, places, strict=False):
            _panels(rate, latency, place, (data, caps, knees), {arm: looks[arm] for arm in arms}, queue_depth)
        for unit in {place.unit for place in places}:
            equal_y([rate for (rate, _), place in zip(axes, places, strict=False) if place.unit == unit])
        equal_y([latency for _, latency in axes[: len(places)]])
        equal_x(list(axes.flat)[: 2 * len(places)])
        for bottom in axes[-1]:
            bottom.set_xlabel(f"threads of {queue_depth} outstanding" if queue_depth > 1 else IN_FLIGHT)
        _legend(key, [looks[arm] for arm in arms])
    provenance = "+".join(sorted(set(totals["provenance"]))) if len(totals) else ""
    note = NOTE if len(caps) else NOTE.replace(DOTTED, "")
    decorate(figure, title, note, provenance)
    emulated = Provenance.EMULATED in provenance
    finding = _finding(knees, looks, queue_depth)
    caption = brief(provenance, f"{finding} {note}")
    over = "threads" if queue_depth > 1 else IN_FLIGHT
    alt = f"Line plots of {'emulated ' if emulated else ''}rate and latency over {over}, showing: {finding}"
    short = brief(
        provenance, f"Rate and latency of {many(len(data), 'trial')} over {over}, with the limits in force."
    )
    return Picture("depth-curves", title, short, alt, figure, data, provenance, run, caption)


def _grid(rows: int) -> tuple[Figure, Axes, np.ndarray]:
    """A figure with room for a key above rows of two panels, which are below each other on a phone."""
    with mpl.rc_context(RC):
        across = 1 if is_narrow() else 2
        below, key = 2 * rows // across, 0.5 if is_narrow() else 0.3
        figure = Figure(figsize=(width_in(), 2.1 + 1.75 * below), layout=layout())
        grid = figure.add_gridspec(below + 1, across, height_ratios=[key, *[1.0] * below])
        places = [divmod(place, across) for place in range(2 * rows)]
        panels = [figure.add_subplot(grid[row + 1, column]) for row, column in places]
        # Last, and without a frame: what `decorate` writes into panels does not belong to it.
        return figure, figure.add_subplot(grid[0, :], frameon=False), np.array(panels).reshape(rows, 2)


def _panels(
    rate: Axes,
    latency: Axes,
    place: Curve,
    tables: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame],
    looks: Mapping[str, ArmLook],
    queue_depth: int,
) -> None:
    """One row: rate at the left with caps and knees, latency at the right."""
    data, caps, knees = (_of(table, place) for table in tables)
    for arm, look in looks.items():
        rows = data[data["arm"] == arm]
        for axes, column in ((rate, place.unit), (latency, "lat_mean_ms")):
            _curve(axes, rows, column, look)
        _knee(rate, knees[knees["arm"] == arm], look, queue_depth)
    highest = float(data[place.unit].max())
    near = caps[caps["arm"].isin(list(looks)) & (caps[place.unit] <= NEAR * highest)]
    _limits(rate, near, place, looks)
    rate.set_ylim(0, 1.18 * max([highest, *near[place.unit]]))
    latency.set_ylim(0, 1.08 * float(data["lat_mean_ms"].max()))
    rate.set_title(place.words, loc="left", fontsize=11)
    rate.set_ylabel("MB/s" if place.unit == "mb_s" else "IOPS")
    latency.set_ylabel("mean, ms")
    latency.set_title("latency", loc="left", fontsize=11)
    for axes in (rate, latency):
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(6, integer=True))
        axes.grid(axis="y", color=FAINT, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 10 else f"{value:g}")


def _limits(axes: Axes, caps: pd.DataFrame, place: Curve, looks: Mapping[str, ArmLook]) -> None:
    """Limits that are near enough to matter, as dotted lines with their names."""
    values = sorted(set(caps[place.unit].astype(float)))
    for value in values:
        close = any(value < other < value + CLOSE * values[-1] for other in values)
        rows = caps[caps[place.unit] == value]
        colour = looks[rows["arm"].iloc[0]].colour if rows["arm"].nunique() == 1 else INK
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
            bbox={"facecolor": GROUND, "edgecolor": "none", "pad": 0.6},
            zorder=1,  # behind what was measured
        )


def _curve(axes: Axes, rows: pd.DataFrame, column: str, look: ArmLook) -> None:
    by_depth = rows.groupby("threads")[column]
    medians = by_depth.median()
    interval_bars.upright(axes, medians.index, by_depth.min(), by_depth.max())
    threads = medians.index.to_numpy(float)
    for place in range(len(threads) - 1):
        if threads[place + 1] <= WIDE * threads[place]:
            two = slice(place, place + 2)
            axes.plot(threads[two], medians.iloc[two], color=look.colour, linestyle=look.line, linewidth=1.6)
    axes.plot(medians.index, medians, **look.marks(5.5))


def _knee(axes: Axes, rows: pd.DataFrame, look: ArmLook, queue_depth: int) -> None:
    """A triangle on the axis where latency and cap meet, with its interval as a bar."""
    for low, middle, high in (rows[["low", "knee", "high"]] / queue_depth).dropna(subset=["knee"]).to_numpy():
        bottom = axes.get_xaxis_transform()
        axes.plot([middle], [0.03], marker="^", markersize=9, color=look.colour, transform=bottom, zorder=5)
        if np.isfinite([low, high]).all():
            axes.plot([low, high], [0.03, 0.03], color=look.colour, linewidth=2.5, transform=bottom, zorder=4)


def _legend(key: Axes, looks: Sequence[ArmLook]) -> None:
    handles = [
        mpl.lines.Line2D([], [], color=look.colour, **{**look.marks(6), "linestyle": look.line})
        for look in looks
    ]
    key.set_axis_off()
    if handles:
        key.legend(handles, [look.label for look in looks], loc="center left", frameon=False,
                   fontsize=10, handlelength=3.2, borderaxespad=0, ncols=1 if is_narrow() else 2)  # fmt: skip


def _of(table: pd.DataFrame, place: Curve) -> pd.DataFrame:
    if table.empty:
        return table.reindex(columns=["arm", "iops", "mb_s", "words", "knee", "low", "high"])
    return table[(table["kind"] == place.kind) & (table["block_size_bytes"] == place.block_size_bytes)]


def _finding(knees: pd.DataFrame, looks: Mapping[str, ArmLook], queue_depth: int) -> str:
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
