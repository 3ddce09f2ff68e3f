"""Public measurements of how much Azure varies: components, hours apart, and what sits on a cap."""

import textwrap
from collections.abc import Sequence

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from diskbook.facts import noise_series
from diskbook.facts.quantities import reach
from diskbook.facts.table_writers import capital
from diskbook.report.figures import scales
from diskbook.report.figures.style import (
    BLUE,
    FAINT,
    INK,
    RC,
    VERMILLION,
    ArmLook,
    Picture,
    RunSource,
    brief,
    decorate,
    is_narrow,
    left_edge,
    legend_below,
    new_figure,
    redrawable,
)

LOOKS = {
    ("D8s_v5", "eastus"): ArmLook("D8s_v5, East US", BLUE, "o", "-"),
    ("D8s_v5", "westus2"): ArmLook("D8s_v5, West US 2", BLUE, "^", (0, (1, 1.2)), filled=False),
    ("B8ms", "eastus"): ArmLook("B8ms, East US", VERMILLION, "s", (0, (5, 2))),
    ("B8ms", "westus2"): ArmLook("B8ms, West US 2", VERMILLION, "D", (0, (7, 2, 1, 2)), filled=False),
}
PLAIN = ArmLook("", INK, "v", ":")
"""Of cells that the public tables do not have."""
SHOWN = ("nugget", "run-robust", "day", "week", "fresh-robust", "fresh")
LOADS = {
    "randread-8k-sync-qd1": "8K read, depth 1",
    "seqwrite-8k-sync-buffered": "8K sequential write",
    "randread-8k-aio-qd64": "8K read, depth 64",
    "randwrite-8k-aio-qd64": "8K write, depth 64",
    "seqread-64k-aio-qd64": "64K read, depth 64",
}


@redrawable
def spreads(data: pd.DataFrame, source: str, provenance: str) -> Picture:
    """Draw the components of the latency-bound cells (`noise_series`) with their intervals, one row each."""
    data = data[data["component"].isin(SHOWN) & (data["sd_log"] > 0)].reset_index(drop=True)
    names = [name for name in SHOWN if name in set(data["component"])]
    figure, (axes,) = new_figure(1.9 + 0.55 * len(names))
    with mpl.rc_context(RC):
        _dots(axes, data, "component", names)
        labels = ["\n".join(textwrap.wrap(capital(noise_series.WORDS[name]), 26)) for name in names]
        axes.set_yticks(range(len(names)), labels)
        _percent_axis(axes, "Standard deviation of the rate")
        _legend(figure, axes, data)
    core = data.loc[(data["size"] == noise_series.PLANNED_SIZE), ["component", "sd_log"]].groupby(
        "component"
    )["sd_log"]
    means = {str(name): float(value) for name, value in core.mean().items()}
    title = "How much real Azure disks vary, one I/O at a time"
    if {"run-robust", "fresh-robust"} <= means.keys():
        times = means["fresh-robust"] / means["run-robust"]
        title = f"Fresh {noise_series.PLANNED_SIZE} machines differ {times:.1f} times as much as runs of one"
    note = "Premium SSD v2, 8 KiB random reads, one at a time, buffered. Bars: 95 % intervals."
    return _finished(
        "real-noise-spreads", title, note, source, provenance, figure, data, "components of noise"
    )


@redrawable
def apart(data: pd.DataFrame, source: str, provenance: str) -> Picture:
    """Draw how far two runs of one machine lie apart, against the hours between them."""
    data = data[data["component"] == "apart"].sort_values(["size", "region", "hours"]).reset_index(drop=True)
    figure, (axes,) = new_figure(4.0)
    with mpl.rc_context(RC):
        for number, ((size, region), rows) in enumerate(data.groupby(["size", "region"], sort=True)):
            look, shift = _look((str(size), str(region))), 1.04 ** (number - 1.5)
            at = rows["hours"] * shift
            scales.upright(axes, at, rows["ci_low_log"], rows["ci_high_log"])
            axes.plot(at, rows["sd_log"], **{**look.marks(5), "linestyle": look.line}, color=look.colour)
        axes.set_xscale("log")
        hours = sorted(set(data["hours"]))
        axes.set_xticks(hours, [_span(value) for value in hours])
        axes.set_xticks([], minor=True)
        axes.set_yscale("log")
        axes.set_yticks([0.005, 0.01, 0.02, 0.05], ["0.5 %", "1 %", "2 %", "5 %"])
        axes.set_yticks([], minor=True)
        axes.grid(axis="y", color=FAINT, linewidth=0.7)
        axes.set_xlabel("Time between two runs of one machine")
        axes.set_ylabel("S.d. of their difference")
        _legend(figure, axes, data)
    own = data[data["size"] == noise_series.PLANNED_SIZE].groupby("hours")["sd_log"].mean()
    title = "Two runs of one machine"
    if len(own) > 1:
        title = (
            f"Two runs of a {noise_series.PLANNED_SIZE} differ by {100 * own.iloc[0]:.1f} % after "
            f"{_span(own.index[0])}, by {100 * own.iloc[-1]:.1f} % after {_span(own.index[-1])}"
        )
    note = "Robust (1.4826 MAD), so without rare slow runs. Bars: 95 % intervals, points set apart."
    return _finished(
        "real-noise-apart", title, note, source, provenance, figure, data, "differences of two runs"
    )


def _dots(axes: Axes, data: pd.DataFrame, column: str, names: Sequence[str]) -> None:
    """One dot with its interval for each cell, cells of a row below each other."""
    cells = [cell for cell in LOOKS if cell in set(zip(data["size"], data["region"], strict=True))]
    for row in data.to_dict("records"):
        cell = (row["size"], row["region"])
        step = (cells.index(cell) - (len(cells) - 1) / 2) * 0.17 if cell in cells else 0.0
        place, look = names.index(row[column]) + step, _look(cell)
        ends = [row[name] for name in ("ci_low_log", "ci_high_log")]
        scales.level(axes, [place], ends[:1], ends[1:])
        axes.plot([row["sd_log"]], [place], **look.marks(5))
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _percent_axis(axes: Axes, label: str) -> None:
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    if high / low > 300:
        ticks = [0.0001, 0.001, 0.01, 0.1]
    axes.set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(low, high)
    axes.grid(axis="x", color=FAINT, linewidth=0.7, zorder=-1)
    axes.set_axisbelow(True)
    axes.set_xlabel(label)


def _legend(figure: Figure, axes: Axes, data: pd.DataFrame) -> None:
    """Marks in words above the panel, from the left edge of the figure on, in the order drawn."""
    cells = [cell for cell in LOOKS if cell in set(zip(data["size"], data["region"], strict=True))]
    marks = [Line2D([], [], **LOOKS[cell].marks(5)) for cell in cells]
    if is_narrow():
        legend_below(axes, marks, [LOOKS[cell].label for cell in cells])
        return
    legend = axes.legend(
        marks, [LOOKS[cell].label for cell in cells], loc="lower left", ncols=4, frameon=False, fontsize=10,
        handlelength=1.2, handletextpad=0.3, columnspacing=1.2, borderaxespad=0.3, borderpad=0,
        bbox_to_anchor=(left_edge(), 1.0),
        bbox_transform=blended_transform_factory(figure.transFigure, axes.transAxes),
    )  # fmt: skip
    legend.set_in_layout(False)  # it may be wider than the panel; the blank title keeps its place
    axes.set_title(" ", pad=8)


def _look(cell: tuple[str, str]) -> ArmLook:
    return LOOKS.get(cell, PLAIN)


def _span(hours: float) -> str:
    """Write a time between runs: "30 min", "3 h", "1 day", "7 days"."""
    if hours < 1:
        return f"{60 * hours:.0f} min"
    days = hours / 24
    return f"{hours:g} h" if days < 1 else "1 day" if days == 1 else f"{days:g} days"


def _finished(
    slug: str,
    title: str,
    note: str,
    source: str,
    provenance: str,
    figure: Figure,
    data: pd.DataFrame,
    what: str,
) -> Picture:
    decorate(figure, title, note, provenance, RunSource("", source))
    alt = caption = f"Empty plot: the tables hold no {what}."
    if len(data):
        spread = f"{reach(100 * data['sd_log'].min(), 100 * data['sd_log'].max(), '.2g')} %"
        shown = f"Plot of {len(data)} {what} of public measurements on Azure, {spread}"
        alt = f"{shown}, showing: {title[:1].lower()}{title[1:]}."
        caption = brief(provenance, f"Public measurements on Azure: {len(data)} {what}, {spread} ({source}).")
    description = f"{title}. {note} {source}. Provenance: {provenance}."
    return Picture(slug, title, caption, alt, figure, data, provenance, "", description)
