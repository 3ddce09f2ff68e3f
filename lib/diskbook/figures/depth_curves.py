"""Curves over threads: rate and latency of volumes, with the limits in force and the knee of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diskbook.base.units import KIB
from diskbook.figures.style import FAINT, RC, WIDTH_IN, ArmLook, Picture, decorate
from diskbook.tables.vocabulary import Provenance

LARGE = 32 * KIB
"""Block size from which on a rate is drawn in MB/s: there the limits of bytes bind."""
NOTE = (
    "Small marks are trials, lines join their medians. Dotted: the lowest limit in force. Triangles on the "
    "axis: the knee, latency x cap, with its interval where there are three blocks or more."
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
        Lowest limit in force of each curve: `arm, kind, block_size_bytes, iops, mb_s`.
    knees
        From `knee.knees`, one row a curve.
    looks, queue_depth
        Looks of arms; outstanding a thread.
    title, run
        Finding and name of the run.
    """
    names = [
        "arm",
        "kind",
        "block_size_bytes",
        "workload",
        "trial",
        "outstanding",
        "iops",
        "mb_s",
        "lat_mean_ms",
    ]
    data = totals[names].assign(threads=totals["outstanding"] / queue_depth).reset_index(drop=True)
    places = sorted({Curve(*place) for place in zip(data["kind"], data["block_size_bytes"], strict=True)},
                    key=lambda item: (item.block_size_bytes, item.kind))  # fmt: skip
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, axes = _grid(max(1, len(places)))
    with mpl.rc_context(RC):
        for (rate, latency), place in zip(axes, places, strict=False):
            _panels(rate, latency, place, (data, caps, knees), {arm: looks[arm] for arm in arms}, queue_depth)
        _legend(figure, axes, [looks[arm] for arm in arms])
    provenance = "+".join(sorted(set(totals["provenance"]))) if len(totals) else ""
    decorate(figure, title, NOTE, provenance)
    emulated = Provenance.EMULATED in provenance
    finding = _finding(knees, looks, queue_depth)
    caption = f"{'Emulated, not measured on Azure. ' if emulated else ''}{finding} {NOTE}"
    alt = f"Line plots of {'emulated ' if emulated else ''}rate and latency over threads, showing: {finding}"
    return Picture("depth-curves", title, caption, alt, figure, data, provenance, run)


def _grid(rows: int) -> tuple[Figure, np.ndarray]:
    with mpl.rc_context(RC):
        figure = Figure(figsize=(WIDTH_IN, 1.9 + 1.9 * rows), layout="constrained")
        return figure, figure.subplots(rows, 2, squeeze=False)


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
        for cap in caps.loc[caps["arm"] == arm, place.unit].dropna().head(1):
            rate.axhline(cap, color=look.colour, linestyle=":", linewidth=1.4, zorder=0)
        _knee(rate, knees[knees["arm"] == arm], look, queue_depth)
    unit = "MB/s" if place.unit == "mb_s" else "IOPS"
    for axes, words in ((rate, unit), (latency, "mean latency, ms")):
        axes.set_title(f"{place.words}: {words}", loc="left", fontsize=11)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.grid(axis="y", color=FAINT, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.set_xlabel(f"threads of {queue_depth} outstanding")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 10 else f"{value:g}")


def _curve(axes: Axes, rows: pd.DataFrame, column: str, look: ArmLook) -> None:
    medians = rows.groupby("threads")[column].median()
    axes.plot(rows["threads"], rows[column], **look.marks(2.5), alpha=0.6)
    if len(medians) > 1:
        axes.plot(medians.index, medians, color=look.colour, linestyle=look.line, linewidth=1.6)
    axes.plot(medians.index, medians, **look.marks(5.5))


def _knee(axes: Axes, rows: pd.DataFrame, look: ArmLook, queue_depth: int) -> None:
    """A triangle on the axis where latency and cap meet, with its interval as a bar."""
    for low, middle, high in (rows[["low", "knee", "high"]] / queue_depth).dropna(subset=["knee"]).to_numpy():
        bottom = axes.get_xaxis_transform()
        axes.plot([middle], [0.03], marker="^", markersize=9, color=look.colour, transform=bottom, zorder=5)
        if np.isfinite([low, high]).all():
            axes.plot([low, high], [0.03, 0.03], color=look.colour, linewidth=2.5, transform=bottom, zorder=4)


def _legend(figure: Figure, axes: np.ndarray, looks: Sequence[ArmLook]) -> None:
    handles = [
        mpl.lines.Line2D([], [], color=look.colour, **{**look.marks(6), "linestyle": look.line})
        for look in looks
    ]
    if handles:
        figure.legend(handles, [look.label for look in looks], loc="outside upper left", ncols=2,
                      frameon=False, fontsize=10, handlelength=3.2, borderaxespad=0.2)  # fmt: skip


def _of(table: pd.DataFrame, place: Curve) -> pd.DataFrame:
    if table.empty:
        return table.reindex(columns=["arm", "iops", "mb_s", "knee", "low", "high", *table.columns])
    return table[(table["kind"] == place.kind) & (table["block_size_bytes"] == place.block_size_bytes)]


def _finding(knees: pd.DataFrame, looks: Mapping[str, ArmLook], queue_depth: int) -> str:
    known = knees[knees["knee"].notna()] if len(knees) else knees
    parts = [
        f"{looks[row['arm']].label}, {Curve(row['kind'], row['block_size_bytes']).words}: knee at "
        f"{row['knee'] / queue_depth:.1f} threads"
        for row in known.to_dict("records")
    ]
    return (
        "; ".join(parts) + "."
        if parts
        else "No curve reaches a limit and shows its latency, so none has a knee."
    )
