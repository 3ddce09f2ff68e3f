"""Main figures of what public measurements answer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import pandas as pd

from diskbook.design.vocabulary import Provenance
from diskbook.report.figures import Picture, scales
from diskbook.report.figures.style import (
    BLUE,
    FAINT,
    INK,
    RC,
    VERMILLION,
    ArmLook,
    RunSource,
    brief,
    decorate,
    legend_below,
    new_figure,
    redrawable,
)

LOOKS = {
    "read": ArmLook("reads", BLUE, "o", "-"),
    "write": ArmLook("writes", VERMILLION, "s", (0, (5, 2))),
}


@redrawable
def changes(
    slug: str, title: str, rows: Sequence[Mapping[Any, Any]], axis: str, note: str, source: RunSource
) -> Picture:
    """Draw changes in percent, one per row; without an interval, whose ends are NaN then, as marks alone."""
    figure, (axes,) = new_figure(1.5 + 0.3 * len(rows))
    with mpl.rc_context(RC):
        scales.set_axis(axes, scales.reach(rows), axis, ("← fewer", "more →"))
        for place, row in enumerate(rows):
            scales.bar(axes, place, row, is_difference=False)  # no verdict: nothing alternated
        axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    words = "; ".join(f"{row['name']} {_words(row)}" for row in rows)
    data = pd.DataFrame([{key: row[key] for key in ("name", "ratio", "ci_low", "ci_high")} for row in rows])
    return _finished(slug, title, note, source, (figure, data), "Dot plot of changes in percent", words)


@redrawable
def rates(
    slug: str, title: str, cells: pd.DataFrame, caps: Mapping[str, float], source: RunSource
) -> Picture:
    """Draw rates of reads and writes over threads (`questions.cells`) with the disk's caps in IOPS."""
    figure, (axes,) = new_figure(4.0)
    with mpl.rc_context(RC):
        for operation, look in LOOKS.items():
            rows = cells.loc[operation]
            scales.upright(axes, rows.index, rows["iops_low"], rows["iops_high"])
            axes.plot(
                rows.index, rows["iops"], **{**look.marks(6), "linestyle": look.line}, color=look.colour
            )
        for name, value in caps.items():
            axes.axhline(value, color=INK, linestyle=":", linewidth=1.3)
            words = f"{name} {value:.0f}"
            axes.annotate(
                words, (1, value), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=10
            )
        threads = sorted(set(cells.index.get_level_values("threads")))
        axes.set_xscale("log", base=2)
        axes.set_xticks(threads, [str(number) for number in threads])
        axes.set_ylim(0, 1.2 * max(caps.values()))
        axes.grid(axis="y", color=FAINT, linewidth=0.7)
        axes.set_xlabel("Threads, one I/O each")
        axes.set_ylabel("IOPS")
        marks = axes.get_lines()[:2]
        legend_below(axes, marks, [look.label for look in LOOKS.values()])
    note = "Sequential, 64 KiB, 2 or 3 repeats; bars: 95 % intervals. Dotted: documented limits of an E10."
    data = cells.reset_index()
    words = "; ".join(
        f"{row['operation']}, {row['threads']} threads: {row['iops']:.0f} IOPS"
        for row in data.to_dict("records")
    )
    return _finished(slug, title, note, source, (figure, data), "Line plot of IOPS", words)


def _words(row: Mapping[Any, Any]) -> str:
    value = f"{scales.percent(row['ratio']):+.1f} %"
    if math.isnan(row["ci_low"]):
        return value
    low, high = (scales.percent(row[name]) for name in ("ci_low", "ci_high"))
    return f"{value} ({low:+.1f} to {high:+.1f})"


def _finished(
    slug: str,
    title: str,
    note: str,
    source: RunSource,
    drawn: tuple[Any, pd.DataFrame],
    kind: str,
    words: str,
) -> Picture:
    figure, data = drawn
    decorate(figure, title, note, Provenance.IMPORTED, source)
    caption = brief(Provenance.IMPORTED, f"{title}. {note}")
    alt = f"{kind}, showing {words}"
    return Picture(slug, title, caption, alt, figure, data, Provenance.IMPORTED, source, f"{title}: {words}")
