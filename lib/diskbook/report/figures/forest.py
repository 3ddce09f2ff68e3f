"""Forest plot: the ratio of every comparison with its interval, on log2 axes that fit the data.

Ratios that lie more than 8 times apart are in panels of their own, and no mark is wider than its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from diskbook.design.vocabulary import WITHHELD, Provenance, Scope, Verdict
from diskbook.facts.quantities import many, telling
from diskbook.report.figures import ratio_axis
from diskbook.report.figures.style import (
    FAINT,
    GREY,
    INK,
    RC,
    ArmLook,
    Picture,
    brief,
    decorate,
    fit_row,
    is_narrow,
    new_figure,
    redrawable,
    rows_above,
    verdict_look,
)
from diskbook.stats.gates.design import unpaired

FAMILIES = {"headline": "Headline", "exploratory": "Exploratory", "control": "Control: two disks of a kind"}
ROW_IN, LINE_IN, NARROW_ROW_IN, HEAD_IN, PANEL_IN = 0.40, 0.18, 0.70, 1.7, 0.55
"""Heights: of a row whose name has two lines or fewer, of each line more, of one on a phone; head; panel."""
LONGEST = 56
"""Letters of two arms that stand in one line; longer ones would leave no room for the intervals."""
MACHINES = "the machines may differ as well"
KEY = "Filled: a difference. Open grey: none shown."
APART = " Each panel has an axis of its own: its ratios lie within 8 times of each other."
MARK_PT = 5.0
LEAST_MARK_PT = 1.5
"""A mark that would have to be smaller, so as not to hide its interval, is left out."""
FILLED = 0.6
"""Part of an interval that its mark may cover; a diamond is 1.4 times as wide as its size says."""


class Bar(NamedTuple):
    """What is drawn of a ratio: its mark, and the ends of its interval."""

    axes: Axes
    mark: Line2D
    low: float
    high: float


@redrawable
def forest(
    table: pd.DataFrame, looks: Mapping[str, ArmLook], words: Mapping[str, str], title: str, run: str
) -> Picture:
    """Draw ratios of latency with their intervals.

    Parameters
    ----------
    table
        Comparisons (`schema.COMPARISONS`).
    looks
        Look of each arm, of which the label is drawn.
    words
        Workloads in words, e.g. "4K random write, depth 1".
    title
        States the finding.
    run
        Name of the run.
    """
    data = rows(table)
    panels = [_layout(part) for part in _panels(data)]
    lines_of = max((_fitted_label(row, looks, words).count("\n") + 1 for row in _records(data)), default=1)
    number = sum(len(lines) for lines in panels)
    height = HEAD_IN + _row_in(lines_of) * number + PANEL_IN * (len(panels) - 1)
    figure, drawn = new_figure(height, len(panels), height_ratios=[len(lines) + 0.2 for lines in panels])
    provenance = "+".join(sorted(set(table["provenance"])))
    bars = []
    with mpl.rc_context(RC):
        for axes, lines in zip(drawn, panels, strict=True):
            records = [(place, line) for place, line in enumerate(lines) if not isinstance(line, str)]
            bars += [bar for place, line in records for bar in _row(axes, place, line)]
            _axis(axes, lines, looks, words)
        drawn[-1].set_xlabel(f"Ratio of mean total latency (log2 scale{'s' * (len(panels) > 1)})")
    scope = _scope_words(data)
    note = f"{_interval_words(data, scope)}. {KEY}{APART * (len(panels) > 1)}"
    decorate(figure, title, note, provenance)
    _fit(figure, drawn, bars)
    description = _description(data, looks, words, note)
    caption = brief(provenance, _caption(data))
    return Picture("ratios", title, caption, _alt(data), figure, data, provenance, run, description)


def _row_in(lines: int) -> float:
    """Height of a row by the lines of its name, which on a phone is above it."""
    return NARROW_ROW_IN if is_narrow() else ROW_IN + LINE_IN * max(0, lines - 2)


def _panels(data: pd.DataFrame) -> list[pd.DataFrame]:
    """Rows by panel, each with ratios within 8 times of each other; that of the first row comes first.

    What is refused stands beside the first of its family, or last.
    """
    known = _drawn(data)
    groups = ratio_axis.groups(known["ratio"].tolist())
    if len(groups) < 2:
        return [data]
    panel_of = {known.index[place]: number for number, group in enumerate(groups) for place in group}
    order = list(dict.fromkeys(panel_of[index] for index in known.index))
    first = {family: panel_of[index] for index, family in known["family"][::-1].items()}
    panel = [panel_of.get(index, first.get(data["family"][index], order[-1])) for index in data.index]
    return [data[np.array(panel) == number] for number in order]


def _fit(figure: Figure, panels: Sequence[Axes], bars: Sequence[Bar]) -> None:
    """Give ticks and marks the room that there is, once it is known how wide the axes are."""
    figure.draw_without_rendering()
    for axes in panels:
        low, high = np.log2(axes.get_xlim())
        ratio_axis.set_ticks(axes, low, high, _width_pt(axes))
    for bar in bars:
        low, high = np.log2(bar.axes.get_xlim())
        wide = _width_pt(bar.axes) * np.log2(bar.high / bar.low) / (high - low)
        size = min(MARK_PT, FILLED * (wide - bar.mark.get_markeredgewidth()))
        bar.mark.set_markersize(size)
        bar.mark.set_visible(size >= LEAST_MARK_PT)


def _width_pt(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return float(axes.get_position().width * figure.get_size_inches()[0] * 72)


def rows(table: pd.DataFrame) -> pd.DataFrame:
    """Rows to draw: the widest scope that has an interval at all, headline first, largest ratio first."""
    table = table[table["metric"] == "lat_mean_ms"]
    general = table[(table["scope"] == Scope.LIKE_THESE) & table["ci_low"].notna()]
    scope = Scope.LIKE_THESE if len(general) else Scope.THESE
    chosen = table[table["scope"] == scope].copy()
    chosen["order"] = chosen["family"].map(list(FAMILIES).index)
    chosen = chosen.sort_values(
        ["order", "ratio"], ascending=[True, False], kind="stable", na_position="last"
    )
    return chosen.drop(columns="order").reset_index(drop=True)


def _layout(data: pd.DataFrame) -> list[Any]:
    lines: list[Any] = []
    for family, group in data.groupby("family", sort=False):
        lines.append(FAMILIES[str(family)])
        lines += group.to_dict("records")
    return lines


def _row(axes: Axes, place: int, row: dict[str, Any]) -> list[Bar]:
    """Draw a row; return its mark with the interval, where it has one."""
    right = axes.get_yaxis_transform()
    if np.isnan(row["ratio"]) or row["verdict"] in WITHHELD:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 2.0}
        why = axes.text(0.5, place, refusal(row), transform=right, ha="center", va="center", bbox=box)
        why.set(fontsize=10, color=GREY)
        axes.text(
            1.02, place, "refused", transform=right, va="center", fontsize=10, color=GREY, style="italic"
        )
        return []
    colour, marks = verdict_look(row["verdict"] == Verdict.DIFFERENCE)
    if not np.isnan(row["ci_low"]):
        ends = [row["ci_low"], row["ci_high"]]
        axes.plot(ends, [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        axes.plot(ends, [place, place], linestyle="none", marker="|", color=colour, markersize=11)
    (mark,) = axes.plot([row["ratio"]], [place], linestyle="none", markersize=MARK_PT, **marks)
    axes.text(1.02, place, value_words(row), transform=right, va="center", fontsize=10, color=INK)
    return [] if np.isnan(row["ci_low"]) else [Bar(axes, mark, row["ci_low"], row["ci_high"])]


def _unpaired(row: Mapping[str, Any]) -> bool:
    return unpaired(row["pairing"], row["scope"])


def refusal(row: Mapping[str, Any]) -> str:
    """Why a row shows no number, in a few words."""
    if row["verdict"] == Verdict.CAPPED:
        return "no latency ratio: on a cap"
    if row["verdict"] == Verdict.SATURATED:
        return "no latency ratio: saturated"
    if row["verdict"] == Verdict.INCONCLUSIVE and _unpaired(row):
        return "one replicate: machines may differ" if row["n_replicates"] < 2 else "machines may differ"
    words = {
        Verdict.INVALID: "invalid: see gates",
        Verdict.INCONCLUSIVE: "may sit on a cap",
        Verdict.SINCE_ATTACH: "changes after an attach",
    }
    return words.get(row["verdict"], "no data")


def value_words(row: Mapping[str, Any]) -> str:
    """Ratio with its interval, e.g. "2.47 times, 2.41 to 2.53", in few digits: there is little room."""
    digits = telling(row["ci_low"], row["ci_high"], _digits(row["ratio"]), none=1.0)
    ratio, low, high = (f"{row[name]:.{digits}f}" for name in ("ratio", "ci_low", "ci_high"))
    return f"{ratio} times, " + ("no interval" if np.isnan(row["ci_low"]) else f"{low} to {high}")


def _digits(ratio: float) -> int:
    """Two decimals, or three below 0.1."""
    return 3 if ratio < 0.1 else 2


def _axis(axes: Axes, lines: list[Any], looks: Mapping[str, ArmLook], words: Mapping[str, str]) -> None:
    rows = [line for line in lines if not isinstance(line, str) and line["verdict"] not in WITHHELD]
    edges = [row[name] for row in rows for name in ("ratio", "ci_low", "ci_high")]
    low, high = ratio_axis.span([edge for edge in edges if not np.isnan(edge)])
    axes.set_xscale("log", base=2)
    axes.set_xlim(2.0**low, 2.0**high)
    ratio_axis.set_ticks(axes, low, high)
    if low <= 0 <= high:
        axes.axvline(1.0, color=INK, linewidth=1, zorder=0)
    else:
        below = high < 0
        where, side, name = (0.99, "right", "1× →") if below else (0.01, "left", "← 1×")
        axes.text(where, 0, name, transform=axes.get_yaxis_transform(), ha=side, va="center", fontsize=10)
    axes.grid(axis="x", color=FAINT, linewidth=0.7, zorder=-1)
    axes.set_axisbelow(True)
    labels = [line if isinstance(line, str) else _fitted_label(line, looks, words) for line in lines]
    for line, text in zip(lines, axes.set_yticks(range(len(lines)), labels), strict=True):
        text.label1.set_fontweight("bold" if isinstance(line, str) else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    if is_narrow():
        rows_above(axes)


def _label(row: Mapping[str, Any], looks: Mapping[str, ArmLook], words: Mapping[str, str]) -> str:
    arm, base = looks[row["arm"]].label, looks[row["base_arm"]].label
    arms = f"{arm} / {base}" if len(arm) + len(base) <= LONGEST else f"{arm} /\n{base}"
    return f"{words.get(row['workload'], row['workload'])}\n{arms}"


def _fitted_label(row: Mapping[str, Any], looks: Mapping[str, ArmLook], words: Mapping[str, str]) -> str:
    """Name of a row as it stands beside it; on a phone it stands above."""
    label = _label(row, looks, words)
    return label if is_narrow() else fit_row(label)


def _in_one_line(label: str) -> str:
    return label.replace("/\n", "/ ").replace("\n", ", ")


def _scope_words(data: pd.DataFrame) -> str:
    """Scope of the rows drawn; of disks like these with the nearest zones that their replicates share."""
    scope = Scope(data["scope"].iloc[0]) if len(data) else Scope.THESE
    # Tables of older runs have no such column.
    zones = sorted(set(data["nearest_zone"]) - {""}) if "nearest_zone" in data else []
    if len(zones) > 1:
        return f"{scope.words()}, zone-redundant ones by their nearest zone"
    return f"{scope.words()}, zone-redundant ones nearest to {zones[0]}" if zones else scope.words()


def _interval_words(data: pd.DataFrame, scope: str) -> str:
    known = data[data["ci_low"].notna()]
    if known.empty:
        return "No intervals"
    blocks = " to ".join(str(n) for n in sorted({int(known["n_blocks"].min()), int(known["n_blocks"].max())}))
    replicates = int(known["n_replicates"].max())
    number = f"{many(replicates, 'replicate')}, {blocks} block{'s' * (blocks != '1')}"
    level, method = 100 * known["level"].iloc[0], known["method"].iloc[0]
    return f"Bars: {level:.3g} % intervals ({method}), scope: {scope}; {number}"


def _caption(data: pd.DataFrame) -> str:
    shown = _drawn(data)
    known = shown[shown["ci_low"].notna()]
    if shown.empty:
        return "No ratio of mean total latency to show."
    level = f" with {100 * known['level'].iloc[0]:.3g} % intervals" if len(known) else ", without intervals"
    refused = f"; {len(data) - len(shown)} refused" if len(data) > len(shown) else ""
    ratios = many(len(shown), "ratio")
    return f"{ratios} of mean total latency{level}{refused}; at 1 there is no difference."


def _description(
    data: pd.DataFrame, looks: Mapping[str, ArmLook], words: Mapping[str, str], note: str
) -> str:
    shown = _drawn(data)
    parts = [
        f"{_in_one_line(_label(row, looks, words))}: {value_words(row)}"
        + _stratum(row.get("nearest_zone", ""))
        + f", inconclusive, since {MACHINES}" * _unpaired(row)
        + ", interim: not all that was planned is measured" * (row["verdict"] == Verdict.INTERIM)
        for row in _records(shown)
    ]
    refused = len(data) - len(shown)
    more = f" {many(refused, 'comparison')} refused." if refused else ""
    emulated = "Emulated, not measured on Azure. " if Provenance.EMULATED in set(data["provenance"]) else ""
    return f"{emulated}{'; '.join(parts)}.{more} {note}"


def _stratum(nearest_zone: str) -> str:
    """Disks that a general estimate speaks of, where all of them share a nearest zone."""
    return f", {Scope.LIKE_THESE.words(nearest_zone)}" if nearest_zone else ""


def _alt(data: pd.DataFrame) -> str:
    shown = _drawn(data)
    if shown.empty:
        return "Forest plot of latency ratios between disk arms, with no ratio to show."
    emulated = "emulated " if Provenance.EMULATED in set(data["provenance"]) else ""
    ratios = many(len(shown), f"{emulated}latency ratio")
    return f"Forest plot of {ratios} between disk arms, showing {_span(shown)}; {_counts(data, shown)}."


def _span(shown: pd.DataFrame) -> str:
    low, high = (f"{value:.{_digits(value)}f}" for value in (shown["ratio"].min(), shown["ratio"].max()))
    return f"a ratio of {low} times" if low == high else f"ratios from {low} to {high} times"


def _counts(data: pd.DataFrame, shown: pd.DataFrame) -> str:
    """How many intervals cover 1, and how many comparisons tell nothing."""
    covers = int(((shown["ci_low"] <= 1) & (shown["ci_high"] >= 1)).sum())
    known = int(shown["ci_low"].notna().sum())
    parts = [f"{covers} of {many(known, 'interval')} cover{'s' * (covers == 1)} 1"] * (known > 0)
    alone = sum(_unpaired(row) for row in _records(shown))
    parts += [f"{many(alone, 'ratio')} can tell nothing, since {MACHINES}"] * (alone > 0)
    refused = len(data) - len(shown)
    parts += [f"{many(refused, 'comparison')} {'is' if refused == 1 else 'are'} refused"] * (refused > 0)
    return ", ".join(parts) or "without intervals"


def _drawn(data: pd.DataFrame) -> pd.DataFrame:
    """Rows with a ratio that is not refused."""
    return data[data["ratio"].notna() & ~data["verdict"].isin(WITHHELD)]


def _records(data: pd.DataFrame) -> list[dict[Any, Any]]:
    return data.to_dict("records")
