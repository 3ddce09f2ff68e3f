"""Forest plot: the change in every comparison with its interval, on one axis in percent."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design.vocabulary import WITHHELD, Provenance, Scope, Verdict
from diskbook.facts import quantities
from diskbook.facts.quantities import many
from diskbook.report.figures import scales, style
from diskbook.report.figures.scales import value_words
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
    return f"{words.get(row['workload'], row['workload'])}\n{arms}"


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
