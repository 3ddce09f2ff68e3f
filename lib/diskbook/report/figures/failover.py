"""The zone drills: a bar a drill, from the last acknowledged write to the first of the other machine."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design.vocabulary import Provenance
from diskbook.report.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    PURPLE,
    RC,
    VERMILLION,
    Picture,
    brief,
    decorate,
    is_narrow,
    legend_below,
    new_figure,
    redrawable,
)

# Colour and hatch of each step: neighbours differ in both, since colours alone are alike in greyscale.
_LOOKS = {
    "noticed": (INK, ""),
    "off": ("white", "////"),
    "detached": (BLUE, ""),
    "started": (VERMILLION, "\\\\"),
    "attached": (GREEN, ""),
    "seen": ("white", "xxxx"),
    "preempted": (PURPLE, ""),
    "verified": (GREY, ""),
    "written": ("white", "||||"),
}
NOTE = (
    "Each bar is one drill; no interval. 'machine off' is Azure's own power-off, which no real failure has."
)
EMULATED = (
    "Azure's operations take the emulator's own delays, unscaled; all else is this machine's work: "
    "no finding about Azure."
)


@redrawable
def drill(
    steps: pd.DataFrame,
    names: Mapping[tuple[int, str], str],
    words: Mapping[str, str],
    provenance: str,
    run: str,
) -> Picture:
    """Draw the steps of every drill as parts of a bar.

    Parameters
    ----------
    steps
        A row a drill and step: `replicate`, `name`, `step`, `begin_s`, `unscaled_s`.
    names
        Label of each drill, by replicate and name, in the order of the figure.
    words
        Steps in words.
    provenance, run
        Where the times come from.
    """
    figure, (axes,) = new_figure(2.9 + 0.55 * max(1, len(names)))
    ends = (steps["begin_s"] + steps["unscaled_s"]).groupby([steps["replicate"], steps["name"]]).max()
    with mpl.rc_context(RC):
        _bars(axes, steps, list(names), words)
        for place, key in enumerate(names):
            axes.annotate(
                f"{ends[key]:.1f} s", (ends[key], place), (4, 0), textcoords="offset points", va="center"
            )
        _frame(axes, ends, list(names.values()))
        if len(steps):
            # Below the axis and its label: by the height of the axes, so that more bars move it no further.
            below = -0.62 / (0.55 * len(names) + 0.1)
            if is_narrow():
                legend_below(axes, *axes.get_legend_handles_labels())
            else:
                axes.legend(
                    loc="upper center", bbox_to_anchor=(0.3, below), ncols=3, frameon=False, fontsize=10
                )
    finding = _finding(ends, names)
    emulated = Provenance.EMULATED in provenance
    note = f"{NOTE} {EMULATED}" if emulated else NOTE
    decorate(figure, finding, note, provenance)
    caption = brief(provenance, f"{finding}. {note}")
    alt = f"Bars of {'emulated ' if emulated else ''}times of zone drills by step, showing: {finding}."
    short = brief(provenance, f"{finding}.")
    return Picture(
        "drills", finding, short, alt, figure, steps.reset_index(drop=True), provenance, run, caption
    )


def _frame(axes: Axes, ends: pd.Series, labels: list[str]) -> None:
    """Scale and label the axes: a place a drill, seconds from 0."""
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(len(labels), 1) - 0.4, -0.6)
    axes.set_xlim(0, 1.15 * (float(ends.max()) if len(ends) else 1.0))
    axes.grid(axis="x", color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel("Seconds after the last acknowledged write")


def _bars(axes: Axes, steps: pd.DataFrame, keys: list[tuple[int, str]], words: Mapping[str, str]) -> None:
    for step, (colour, hatch) in _LOOKS.items():
        rows = steps[steps["step"] == step]
        places = [keys.index(key) for key in zip(rows["replicate"], rows["name"], strict=True)]
        if places:
            axes.barh(
                places,
                rows["unscaled_s"],
                left=rows["begin_s"],
                height=0.5,
                color=colour,
                hatch=hatch,
                edgecolor=INK,
                linewidth=0.6,
                label=words[step],
            )


def _finding(ends: pd.Series, names: Mapping[tuple[int, str], str]) -> str:
    if ends.empty:
        return "No drill to show"
    by_time = ends.sort_values()
    quick, slow = (names[tuple(by_time.index[place])].replace("\n", " ") for place in (0, -1))
    if len(ends) == 1:
        return f"Taken over after {ends.max():.1f} s: {quick}"
    return f"Taken over after {ends.min():.1f} s ({quick}) to {ends.max():.1f} s ({slow})"
