"""Forest plot over runs: the ratio of one comparison in each run, comparison by comparison, on a log axis."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from diskbook.facts import quantities
from diskbook.facts.quantities import many
from diskbook.report.figures.style import (
    FAINT,
    GREY,
    INK,
    RC,
    Picture,
    brief,
    decorate,
    new_figure,
    redrawable,
    verdict_look,
)

ROW_IN, HEAD_IN, LINE_IN = 0.34, 1.5, 0.2
NAME_CHARACTERS, HEADING_CHARACTERS = 30, 70
LEAST_REACH = 0.04
"""Logs that the axis reaches beyond what is drawn at least."""


@redrawable
def runs_forest(
    rows: Sequence[Mapping[str, Any]],
    spreads: Mapping[str, str],
    names: Mapping[str, str],
    title: str,
    provenance: str,
) -> Picture:
    """Draw the ratios of runs with their intervals, one panel a comparison.

    Parameters
    ----------
    rows
        `comparison` in words, `run` (its letter), `ratio`, `ci_low`, `ci_high`, `level`, `n_replicates`,
        `n_blocks`, `scope`, `differs` (from the first run, after adjustment); the first run first.
    spreads
        Spread between runs in words, by comparison.
    names
        Names of runs by letter.
    title
        States the finding.
    provenance
        Where the numbers come from.
    """
    data = pd.DataFrame(rows)
    groups = {str(name): group for name, group in data.groupby("comparison", sort=False)}
    heights = [len(group) + 2 for group in groups.values()]
    heading_lines = [_heading(name, spreads) for name in groups]
    extra = LINE_IN * sum(text.count("\n") + 1 for text in heading_lines)
    figure, panels = new_figure(HEAD_IN + ROW_IN * sum(heights) + extra, len(groups), height_ratios=heights)
    with mpl.rc_context(RC):
        for axes, heading, group in zip(panels, heading_lines, groups.values(), strict=True):
            _panel(axes, heading, group, names)
        panels[-1].set_xlabel("Ratio (log axis)")
    note = _note(data)
    decorate(figure, title, note, provenance)
    rows_of = many(len(groups), "comparison")
    caption = brief(provenance, f"Ratios of {rows_of} in {many(len(names), 'run')}, the first run above.")
    description, alt = _description(groups, spreads, names, note), _alt(groups, names, title)
    run = " ".join(names.values())
    return Picture("runs", title, caption, alt, figure, data, provenance, run, description)


def _heading(name: str, spreads: Mapping[str, str]) -> str:
    lines = textwrap.wrap(name, HEADING_CHARACTERS)
    return "\n".join([*lines, *textwrap.wrap(spreads.get(name, ""), HEADING_CHARACTERS)])


def _panel(axes: Axes, heading: str, group: pd.DataFrame, names: Mapping[str, str]) -> None:
    """One comparison: a row a run, the first run's interval as a band behind all."""
    records = group.to_dict("records")
    first = records[0]
    if not np.isnan(first["ci_low"]):
        axes.axvspan(first["ci_low"], first["ci_high"], color=FAINT, alpha=0.6, linewidth=0)
    for place, row in enumerate(records):
        _row(axes, place, row)
    labels = [_name(row["run"], names) for row in records]
    axes.set_yticks(range(len(records)), labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(records) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    # Room above for the mark of provenance.
    axes.set_title(heading, loc="left", fontsize=10, fontweight="bold", pad=18, wrap=False)
    _axis(axes, group)


def _row(axes: Axes, place: int, row: Mapping[Any, Any]) -> None:
    right = axes.get_yaxis_transform()
    if np.isnan(row["ratio"]):
        axes.text(1.02, place, "refused", transform=right, va="center", fontsize=10, color=GREY)
        return
    colour, marks = verdict_look(bool(row["differs"]))
    if not np.isnan(row["ci_low"]):
        ends = [row["ci_low"], row["ci_high"]]
        axes.plot(ends, [place, place], color=colour, linewidth=2, solid_capstyle="butt")
    axes.plot([row["ratio"]], [place], linestyle="none", markersize=6, **marks)
    axes.text(1.02, place, _value(row), transform=right, va="center", fontsize=10, color=INK)


def _value(row: Mapping[Any, Any]) -> str:
    """Change and interval of a run, without the level, which the note has."""
    value, interval = quantities.change_parts(row["ratio"], row["ci_low"], row["ci_high"], row["level"])
    return f"{value}, {interval.partition('CI ')[2]}" if interval else f"{value}, no interval"


def _name(letter: str, names: Mapping[str, str]) -> str:
    name = names[letter]
    kept = name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…"
    return f"{letter}  {kept}"


def _axis(axes: Axes, group: pd.DataFrame) -> None:
    """A log axis around what is drawn; 1 is marked where it lies in there."""
    edges = np.concatenate([group[name].dropna().to_numpy(float) for name in ("ratio", "ci_low", "ci_high")])
    edges = edges if len(edges) else np.ones(1)
    low, high = np.log(edges.min()), np.log(edges.max())
    reach = max(0.15 * (high - low), LEAST_REACH)
    limits = np.exp([low - reach, high + reach])
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    ticks = [tick for tick in MaxNLocator(5).tick_values(*limits) if limits[0] <= tick <= limits[1]]
    axes.set_xticks(ticks, [f"{tick:.3g}×" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(axis="x", color=FAINT, linewidth=0.7, zorder=-1)
    axes.set_axisbelow(True)
    if limits[0] <= 1 <= limits[1]:
        axes.axvline(1.0, color=INK, linewidth=1, zorder=0)


def _note(data: pd.DataFrame) -> str:
    level = 100 * float(data["level"].iloc[0])
    scopes = " or ".join(sorted(set(data["scope"])))
    return (
        f"Bars: {level:.3g} % intervals, {scopes}. Grey band: the first run. Filled: the ratio differs "
        "from the first run's."
    )


def _description(
    groups: Mapping[str, pd.DataFrame], spreads: Mapping[str, str], names: Mapping[str, str], note: str
) -> str:
    parts = []
    for name, group in groups.items():
        values = "; ".join(
            f"{names[row['run']]} {'refused' if np.isnan(row['ratio']) else _value(row)}"
            for row in group.to_dict("records")
        )
        parts.append(f"{name}: {values}" + (f" ({spreads[name]})" if name in spreads else ""))
    return f"{'. '.join(parts)}. {note}"


def _alt(groups: Mapping[str, pd.DataFrame], names: Mapping[str, str], title: str) -> str:
    ratios = pd.concat(list(groups.values()))["ratio"].dropna()
    span = f", ratios {quantities.reach(ratios.min(), ratios.max(), '.2f')}" if len(ratios) else ""
    shown = f"{many(len(groups), 'comparison')} over {many(len(names), 'run')}"
    return f"Forest plot of {shown}, showing: {title}{span}."
