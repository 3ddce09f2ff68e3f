"""Forest plot over runs: the change in each run, comparison by comparison, on one axis in percent."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.facts import quantities
from diskbook.report.figures import scales, style
from diskbook.report.figures.scales import percent, value_words

ROW_IN, NARROW_ROW_IN, HEAD_IN, LINE_IN = 0.34, 0.5, 1.5, 0.2
NAME_CHARACTERS, HEADING_CHARACTERS = 30, 70


@style.redrawable
def runs_forest(
    rows: Sequence[Mapping[str, Any]],
    spreads: Mapping[str, str],
    names: Mapping[str, str],
    title: str,
    provenance: str,
    source: str,
) -> style.Picture:
    """Draw the ratios of runs with their intervals, one panel a comparison.

    - `rows`: `comparison` in words, `run` (its letter), `ratio`, `ci_low`, `ci_high`, `level`,
      `n_replicates`, `n_blocks`, `scope`, `differs` (from the first run, after adjustment), `is_latency`; the
      first run first.
    - `spreads`: spread between runs in words, by comparison.
    - `names`: names of runs by letter.
    - `title`: states the finding.
    - `provenance`, `source`: where the numbers come from; names of the runs, with the line on their source.
    """
    data = pd.DataFrame(rows)
    groups = {str(name): group for name, group in data.groupby("comparison", sort=False)}
    heights = [len(group) + 2 for group in groups.values()]
    heading_lines = [_heading(name, spreads) for name in groups]
    row_in = NARROW_ROW_IN if style.is_narrow() else ROW_IN
    extra = LINE_IN * sum(text.count("\n") + 1 for text in heading_lines)
    figure, panels = style.new_figure(
        HEAD_IN + row_in * sum(heights) + extra, len(groups), height_ratios=heights
    )
    with mpl.rc_context(style.RC):
        limits = scales.reach(rows)
        for axes, heading, group in zip(panels, heading_lines, groups.values(), strict=True):
            _panel(axes, heading, group, names, limits)
        panels[-1].set_xlabel("Change")
    note = _note(data)
    style.decorate(figure, title, note, provenance, source)
    rows_of = quantities.many(len(groups), "comparison")
    caption = style.brief(
        provenance, f"Changes in {rows_of} of {quantities.many(len(names), 'run')}, the first run above."
    )
    description, alt = _description(groups, spreads, names, note), _alt(groups, names, title)
    return style.Picture("runs", title, caption, alt, figure, data, provenance, source, description)


def _heading(name: str, spreads: Mapping[str, str]) -> str:
    lines = textwrap.wrap(name, HEADING_CHARACTERS)
    return "\n".join([*lines, *textwrap.wrap(spreads.get(name, ""), HEADING_CHARACTERS)])


def _panel(
    axes: Axes, heading: str, group: pd.DataFrame, names: Mapping[str, str], limits: tuple[float, float]
) -> None:
    """One comparison: a row a run, the first run's interval as a band behind all."""
    records = group.to_dict("records")
    first = records[0]
    ends = (scales.FASTER, scales.SLOWER) if first["is_latency"] else ("← less", "more →")
    scales.set_axis(axes, limits, "", ends)
    if not np.isnan(first["ci_low"]):
        axes.axvspan(
            percent(first["ci_low"]), percent(first["ci_high"]), color=style.FAINT, alpha=0.6, linewidth=0
        )
    for place, row in enumerate(records):
        _row(axes, place, row)
    labels = [_name(row["run"], names) for row in records]
    axes.set_yticks(range(len(records)), labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(records) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    axes.set_title(heading, loc="left", fontsize=10, fontweight="bold", wrap=False)
    if style.is_narrow():
        style.rows_above(axes, 1)


def _row(axes: Axes, place: int, row: Mapping[Any, Any]) -> None:
    right = axes.get_yaxis_transform()
    if np.isnan(row["ratio"]):
        axes.text(1.02, place, "refused", transform=right, va="center", fontsize=10, color=style.GREY)
        return
    scales.bar(axes, place, row, bool(row["differs"]))
    axes.text(1.02, place, value_words(row), transform=right, va="center", fontsize=10, color=style.INK)


def _name(letter: str, names: Mapping[str, str]) -> str:
    name = names[letter]
    kept = name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…"
    return f"{letter}  {kept}"


def _note(data: pd.DataFrame) -> str:
    level = 100 * float(data["level"].iloc[0])
    scopes = " or ".join(sorted(set(data["scope"])))
    return (
        f"Bars: {level:.3g} % intervals, {scopes}. Grey band: the first run. Filled: the change differs "
        "from the first run's."
    )


def _description(
    groups: Mapping[str, pd.DataFrame], spreads: Mapping[str, str], names: Mapping[str, str], note: str
) -> str:
    parts = []
    for name, group in groups.items():
        values = "; ".join(
            f"{names[row['run']]} {'refused' if np.isnan(row['ratio']) else value_words(row)}"
            for row in group.to_dict("records")
        )
        parts.append(f"{name}: {values}" + (f" ({spreads[name]})" if name in spreads else ""))
    return f"{'. '.join(parts)}. {note}"


def _alt(groups: Mapping[str, pd.DataFrame], names: Mapping[str, str], title: str) -> str:
    ratios = pd.concat(list(groups.values()))["ratio"].dropna()
    ends = [quantities.change(value) for value in (ratios.min(), ratios.max())] if len(ratios) else []
    span = f", changes {' to '.join(dict.fromkeys(ends))}" if ends else ""
    shown = f"{quantities.many(len(groups), 'comparison')} over {quantities.many(len(names), 'run')}"
    return f"Forest plot of {shown}, showing: {title}{span}."
