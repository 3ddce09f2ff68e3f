"""Forest plot: the change in every comparison with its interval, on one axis in percent."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design.totals import of_direction
from diskbook.design.vocabulary import WITHHELD, Provenance, Scope, Verdict
from diskbook.facts import quantities
from diskbook.facts.quantities import many
from diskbook.report.figures import scales, style
from diskbook.report.figures.scales import percent, value_words
from diskbook.stats.gates.design import unpaired

FAMILIES = {"headline": "Headline", "exploratory": "Exploratory", "control": "Control: two disks of a kind"}
ROW_IN, LINE_IN, NARROW_ROW_IN, HEAD_IN = 0.40, 0.18, 0.80, 1.9
"""Heights: of a row whose name has two lines or fewer, of each line more, of one on a phone; head."""
LONGEST = 56
"""Letters of two arms that stand in one line; longer ones would leave no room for the intervals."""
MACHINES = "the machines may differ as well"
KEY = "Filled: a difference. Open: none shown."
BEYOND = " Arrow: beyond the axis."


@style.redrawable
def forest(
    table: pd.DataFrame, looks: Mapping[str, style.ArmLook], words: Mapping[str, str], title: str, run: str
) -> style.Picture:
    """Draw ratios of latency with their intervals.

    - `table`: comparisons (`schema.COMPARISONS`).
    - `looks`: look of each arm, of which the label is drawn.
    - `words`: workloads in words, e.g. "4K random write, depth 1".
    - `title`: states the finding.
    """
    data = rows(table)
    lines = _layout(data)
    lines_of = max((_fitted_label(row, looks, words).count("\n") + 1 for row in _records(data)), default=1)
    figure, (axes,) = style.new_figure(HEAD_IN + _row_in(lines_of) * len(lines))
    provenance = "+".join(sorted(set(table["provenance"])))
    with mpl.rc_context(style.RC):
        _axis(axes, lines, looks, words)
        records = [(place, line) for place, line in enumerate(lines) if not isinstance(line, str)]
        beyond = [place for place, line in records if not _row(axes, place, line)]
    scope = _scope_words(data)
    note = f"{_interval_words(data, scope)}. {KEY}{BEYOND * bool(beyond)}"
    style.decorate(figure, title, note, provenance, run)
    description = _description(data, looks, words, note)
    caption = style.brief(provenance, _caption(data))
    return style.Picture("ratios", title, caption, _alt(data), figure, data, provenance, run, description)


def _row_in(lines: int) -> float:
    """Height of a row by the lines of its name, which on a phone is above it."""
    return NARROW_ROW_IN if style.is_narrow() else ROW_IN + LINE_IN * max(0, lines - 2)


def rows(table: pd.DataFrame) -> pd.DataFrame:
    """Rows to draw: the widest scope that has an interval at all, headline first, else as they come."""
    table = table[table["metric"] == "lat_mean_ms"]
    general = table[(table["scope"] == Scope.LIKE_THESE) & table["ci_low"].notna()]
    scope = Scope.LIKE_THESE if len(general) else Scope.THESE
    chosen = table[table["scope"] == scope].copy()
    chosen["order"] = chosen["family"].map(list(FAMILIES).index)
    chosen = chosen.sort_values("order", kind="stable")
    return chosen.drop(columns="order").reset_index(drop=True)


def _layout(data: pd.DataFrame) -> list[Any]:
    lines: list[Any] = []
    for family, group in data.groupby("family", sort=False):
        lines.append(FAMILIES[str(family)])
        lines += group.to_dict("records")
    return lines


def _row(axes: Axes, place: int, row: dict[str, Any]) -> bool:
    """Draw a row; return False where its change lies beyond the axis."""
    right = axes.get_yaxis_transform()
    if np.isnan(row["ratio"]) or row["verdict"] in WITHHELD:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 2.0}
        why = axes.text(0.5, place, refusal(row), transform=right, ha="center", va="center", bbox=box)
        why.set(fontsize=10, color=style.GREY)
        axes.text(
            1.02,
            place,
            "refused",
            transform=right,
            va="center",
            fontsize=10,
            color=style.GREY,
            style="italic",
        )
        return True
    axes.text(1.02, place, value_words(row), transform=right, va="center", fontsize=10, color=style.INK)
    return scales.bar(axes, place, row, row["verdict"] == Verdict.DIFFERENCE)


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


def _axis(axes: Axes, lines: list[Any], looks: Mapping[str, style.ArmLook], words: Mapping[str, str]) -> None:
    rows = [line for line in lines if not isinstance(line, str) and line["verdict"] not in WITHHELD]
    ends = (scales.FASTER, scales.SLOWER)
    scales.set_axis(axes, scales.reach(rows), "Change of mean latency", ends)
    labels = [line if isinstance(line, str) else _fitted_label(line, looks, words) for line in lines]
    for line, text in zip(lines, axes.set_yticks(range(len(lines)), labels), strict=True):
        text.label1.set_fontweight("bold" if isinstance(line, str) else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    if style.is_narrow():
        style.rows_above(axes)


def _label(row: Mapping[str, Any], looks: Mapping[str, style.ArmLook], words: Mapping[str, str]) -> str:
    arm, base = looks[row["arm"]].label, looks[row["base_arm"]].label
    arms = f"{arm} / {base}" if len(arm) + len(base) <= LONGEST else f"{arm} /\n{base}"
    load = words.get(row["workload"], row["workload"])
    return f"{of_direction(load, row.get('direction', 'mixed'))}\n{arms}"


def _fitted_label(
    row: Mapping[str, Any], looks: Mapping[str, style.ArmLook], words: Mapping[str, str]
) -> str:
    """Name of a row as it stands beside it; on a phone it stands above."""
    label = _label(row, looks, words)
    return label if style.is_narrow() else style.fit_row(label)


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
        return "No change of mean latency to show."
    level = f" with {100 * known['level'].iloc[0]:.3g} % intervals" if len(known) else ", without intervals"
    refused = f"; {len(data) - len(shown)} refused" if len(data) > len(shown) else ""
    changes = many(len(shown), "change")
    return f"{changes} of mean latency in percent{level}{refused}."


def _description(
    data: pd.DataFrame, looks: Mapping[str, style.ArmLook], words: Mapping[str, str], note: str
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
        return "No change of latency between arms to show."
    emulated = "emulated " if Provenance.EMULATED in set(data["provenance"]) else ""
    changes = many(len(shown), f"{emulated}latency change")
    return f"{changes} between arms with intervals, {_span(shown)}; {_counts(data, shown)}."


def _span(shown: pd.DataFrame) -> str:
    low, high = (quantities.change(value) for value in (shown["ratio"].min(), shown["ratio"].max()))
    return low if low == high else f"from {low} to {high}"


def _counts(data: pd.DataFrame, shown: pd.DataFrame) -> str:
    """How many intervals include no change, and how many comparisons tell nothing."""
    covers = int(((shown["ci_low"] <= 1) & (shown["ci_high"] >= 1)).sum())
    known = int(shown["ci_low"].notna().sum())
    parts = [f"{covers} of {many(known, 'interval')} include{'s' * (covers == 1)} no change"] * (known > 0)
    alone = sum(_unpaired(row) for row in _records(shown))
    parts += [f"{many(alone, 'change')} can tell nothing, since {MACHINES}"] * (alone > 0)
    refused = len(data) - len(shown)
    parts += [f"{many(refused, 'comparison')} {'is' if refused == 1 else 'are'} refused"] * (refused > 0)
    return ", ".join(parts) or "without intervals"


def _drawn(data: pd.DataFrame) -> pd.DataFrame:
    """Rows with a ratio that is not refused."""
    return data[data["ratio"].notna() & ~data["verdict"].isin(WITHHELD)]


def _records(data: pd.DataFrame) -> list[dict[Any, Any]]:
    return data.to_dict("records")


RUN_ROW_IN, NARROW_RUN_ROW_IN, RUNS_HEAD_IN, HEADING_LINE_IN = 0.34, 0.5, 1.5, 0.2
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
    row_in = NARROW_RUN_ROW_IN if style.is_narrow() else RUN_ROW_IN
    extra = HEADING_LINE_IN * sum(text.count("\n") + 1 for text in heading_lines)
    figure, panels = style.new_figure(
        RUNS_HEAD_IN + row_in * sum(heights) + extra, len(groups), height_ratios=heights
    )
    with mpl.rc_context(style.RC):
        limits = scales.reach(rows)
        for axes, heading, group in zip(panels, heading_lines, groups.values(), strict=True):
            _runs_panel(axes, heading, group, names, limits)
        panels[-1].set_xlabel("Change")
    note = _runs_note(data)
    style.decorate(figure, title, note, provenance, source)
    rows_of = quantities.many(len(groups), "comparison")
    caption = style.brief(
        provenance, f"Changes in {rows_of} of {quantities.many(len(names), 'run')}, the first run above."
    )
    description, alt = _runs_description(groups, spreads, names, note), _runs_alt(groups, names, title)
    return style.Picture("runs", title, caption, alt, figure, data, provenance, source, description)


def _heading(name: str, spreads: Mapping[str, str]) -> str:
    lines = textwrap.wrap(name, HEADING_CHARACTERS)
    return "\n".join([*lines, *textwrap.wrap(spreads.get(name, ""), HEADING_CHARACTERS)])


def _runs_panel(
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
        _run_row(axes, place, row)
    labels = [_name(row["run"], names) for row in records]
    axes.set_yticks(range(len(records)), labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(records) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    axes.set_title(heading, loc="left", fontsize=10, fontweight="bold", wrap=False)
    if style.is_narrow():
        style.rows_above(axes, 1)


def _run_row(axes: Axes, place: int, row: Mapping[Any, Any]) -> None:
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


def _runs_note(data: pd.DataFrame) -> str:
    level = 100 * float(data["level"].iloc[0])
    scopes = " or ".join(sorted(set(data["scope"])))
    return (
        f"Bars: {level:.3g} % intervals, {scopes}. Grey band: the first run. Filled: the change differs "
        "from the first run's."
    )


def _runs_description(
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


def _runs_alt(groups: Mapping[str, pd.DataFrame], names: Mapping[str, str], title: str) -> str:
    ratios = pd.concat(list(groups.values()))["ratio"].dropna()
    ends = [quantities.change(value) for value in (ratios.min(), ratios.max())] if len(ratios) else []
    span = f", changes {' to '.join(dict.fromkeys(ends))}" if ends else ""
    shown = f"{quantities.many(len(groups), 'comparison')} over {quantities.many(len(names), 'run')}"
    return f"Forest plot of {shown}, showing: {title}{span}."
