"""Forest plot: the ratio of every comparison with its interval, on a log2 axis around 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.figures.style import (
    FAINT,
    GREY,
    INK,
    RC,
    ArmLook,
    Picture,
    brief,
    decorate,
    is_narrow,
    new_figure,
    redrawable,
    rows_above,
)
from diskbook.stats.gates.design import unpaired
from diskbook.tables.vocabulary import WITHHELD, Provenance, Scope, Verdict

FAMILIES = {"headline": "Headline", "exploratory": "Exploratory", "control": "Control: two disks of a kind"}
ROW_IN, TALL_ROW_IN, NARROW_ROW_IN, HEAD_IN = 0.40, 0.55, 0.70, 1.7
LONGEST = 56
"""Letters of two arms that stand in one line; longer ones would leave no room for the intervals."""
MACHINES = "the machines may differ as well"
STEPS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Distances between ticks, in powers of two."""
WIDE = 2.0
"""Ticks that far apart have long names, so there is room for one on each side only."""


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
        Look of each arm, for its label and colour.
    words
        Workloads in words, e.g. "4K random write, depth 1".
    title
        States the finding.
    run
        Name of the run.
    """
    data = rows(table)
    lines = _layout(data)
    tall = any(_label(row, looks, words).count("\n") > 1 for row in _records(data))
    figure, (axes,) = new_figure(HEAD_IN + _row_in(tall) * len(lines))
    provenance = "+".join(sorted(set(table["provenance"])))
    with mpl.rc_context(RC):
        for place, line in enumerate(lines):
            if not isinstance(line, str):
                _row(axes, place, line, looks)
        _axis(axes, data, lines, looks, words)
    scope = _scope_words(data)
    alone = any(_unpaired(row) for row in _records(_drawn(data)))
    why = "the interval covers 1" + f", or {MACHINES}" * alone
    note = f"{_interval_words(data, scope)}. Open grey diamond: {why}."
    decorate(figure, title, note, provenance)
    description = _description(data, looks, words, note)
    caption = brief(provenance, _caption(data))
    return Picture("ratios", title, caption, _alt(data), figure, data, provenance, run, description)


def _row_in(tall: bool) -> float:
    """Height of a row: on a phone its name is above it."""
    return NARROW_ROW_IN if is_narrow() else TALL_ROW_IN if tall else ROW_IN


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


def _row(axes: Axes, place: int, row: dict[str, Any], looks: Mapping[str, ArmLook]) -> None:
    right = axes.get_yaxis_transform()
    if np.isnan(row["ratio"]) or row["verdict"] in WITHHELD:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 2.0}
        why = axes.text(0.5, place, refusal(row), transform=right, ha="center", va="center", bbox=box)
        why.set(fontsize=10, color=GREY)
        axes.text(
            1.02, place, "refused", transform=right, va="center", fontsize=10, color=GREY, style="italic"
        )
        return
    look, covers = looks[row["arm"]], not np.isnan(row["ci_low"]) and row["ci_low"] <= 1 <= row["ci_high"]
    nothing_found = covers or _unpaired(row) or row["verdict"] == Verdict.INTERIM
    colour = GREY if nothing_found else look.colour
    if not np.isnan(row["ci_low"]):
        ends = [row["ci_low"], row["ci_high"]]
        axes.plot(ends, [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        axes.plot(ends, [place, place], linestyle="none", marker="|", color=colour, markersize=11)
    open_diamond = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": GREY}
    marks = open_diamond if nothing_found else look.marks(5)
    axes.plot([row["ratio"]], [place], **{**marks, "linestyle": "none", "markersize": 5})
    axes.text(1.02, place, value_words(row), transform=right, va="center", fontsize=10, color=INK)


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
    words = {Verdict.INVALID: "invalid: see gates", Verdict.INCONCLUSIVE: "may sit on a cap"}
    return words.get(row["verdict"], "no data")


def value_words(row: Mapping[str, Any]) -> str:
    """Ratio with its interval, e.g. "2.47x (2.41 to 2.53)"; a small one with a decimal more."""
    ratio = f"{short(row['ratio'])}×"
    if np.isnan(row["ci_low"]):
        return f"{ratio} (no interval)"
    return f"{ratio} ({short(row['ci_low'])} to {short(row['ci_high'])})"


def short(ratio: float) -> str:
    """Ratio with two decimals, or with three below 0.1."""
    return f"{ratio:.{3 if ratio < 0.1 else 2}f}"


def set_ticks(axes: Axes, reach: float) -> None:
    """Set the ticks of a log axis that reaches as many powers of two to either side of 1."""
    step = next((step for step in STEPS if reach / step <= (2.6 if step < WIDE else 1.9)), STEPS[-1])
    powers = np.arange(-np.floor(reach / step), np.floor(reach / step) + 1) * step
    axes.set_xticks(2.0**powers, [_tick(power, step) for power in powers])
    axes.set_xticks([], minor=True)


def _tick(power: float, step: float) -> str:
    """Name a power of two: "1/16×", "2×"; with digits where steps are less than a doubling."""
    if step >= 1:
        return f"1/{2.0**-power:.0f}×" if power < 0 else f"{2.0**power:.0f}×"
    return f"{2.0**power:.2g}×" if step >= 0.5 else f"{2.0**power:.2f}×"


def _axis(
    axes: Axes, data: pd.DataFrame, lines: list[Any], looks: Mapping[str, ArmLook], words: Mapping[str, str]
) -> None:
    drawn = data[~data["verdict"].isin(WITHHELD)]
    edges = np.concatenate([drawn[name].dropna().to_numpy(float) for name in ("ratio", "ci_low", "ci_high")])
    reach = max(1.2 * float(np.abs(np.log2(edges)).max()) if len(edges) else 1.0, 0.12)
    axes.set_xscale("log", base=2)
    axes.set_xlim(2.0**-reach, 2.0**reach)
    set_ticks(axes, reach)
    axes.axvline(1.0, color=INK, linewidth=1, zorder=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.7, zorder=-1)
    axes.set_axisbelow(True)
    labels = [line if isinstance(line, str) else _label(line, looks, words) for line in lines]
    for line, text in zip(lines, axes.set_yticks(range(len(lines)), labels), strict=True):
        text.label1.set_fontweight("bold" if isinstance(line, str) else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    if is_narrow():
        rows_above(axes)
    axes.set_xlabel("Ratio of mean total latency (log2 scale)")


def _label(row: Mapping[str, Any], looks: Mapping[str, ArmLook], words: Mapping[str, str]) -> str:
    arm, base = looks[row["arm"]].label, looks[row["base_arm"]].label
    arms = f"{arm} / {base}" if len(arm) + len(base) <= LONGEST else f"{arm} /\n{base}"
    return f"{words.get(row['workload'], row['workload'])}\n{arms}"


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
    number = f"{replicates} replicate{'s' * (replicates != 1)}, {blocks} blocks"
    level, method = 100 * known["level"].iloc[0], known["method"].iloc[0]
    return f"Bars: {level:.3g} % intervals ({method}), scope: {scope}; {number}"


def _caption(data: pd.DataFrame) -> str:
    shown = _drawn(data)
    known = shown[shown["ci_low"].notna()]
    if shown.empty:
        return "No ratio of mean total latency to show."
    level = f" with {100 * known['level'].iloc[0]:.3g} % intervals" if len(known) else ", without intervals"
    refused = f"; {len(data) - len(shown)} refused" if len(data) > len(shown) else ""
    ratios = f"{len(shown)} ratio{'s' * (len(shown) != 1)} of mean total latency{level}"
    return f"{ratios}{refused}; at 1 there is no difference."


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
    more = f" {refused} comparison{'s' * (refused != 1)} refused." if refused else ""
    emulated = "Emulated, not measured on Azure. " if Provenance.EMULATED in set(data["provenance"]) else ""
    return f"{emulated}{'; '.join(parts)}.{more} {note}"


def _stratum(nearest_zone: str) -> str:
    """Disks that a general estimate speaks of, where all of them share a nearest zone."""
    return f", {Scope.LIKE_THESE.words(nearest_zone)}" if nearest_zone else ""


def _alt(data: pd.DataFrame) -> str:
    shown = _drawn(data)
    if shown.empty:
        return "Forest plot of latency ratios between disk arms, with no ratio to show."
    low, high = shown["ratio"].min(), shown["ratio"].max()
    covers = int(((shown["ci_low"] <= 1) & (shown["ci_high"] >= 1)).sum())
    alone = sum(_unpaired(row) for row in _records(shown))
    machines = f"{alone} of the ratios can tell nothing, since {MACHINES}, " * (alone > 0)
    emulated = "emulated " if Provenance.EMULATED in set(data["provenance"]) else ""
    return (
        f"Forest plot of {len(shown)} {emulated}latency ratios between disk arms, showing ratios from "
        f"{short(low)} to {short(high)} times; {covers} of the intervals cover 1, "
        f"{machines}{len(data) - len(shown)} comparisons are refused."
    )


def _drawn(data: pd.DataFrame) -> pd.DataFrame:
    """Rows with a ratio that is not refused."""
    return data[data["ratio"].notna() & ~data["verdict"].isin(WITHHELD)]


def _records(data: pd.DataFrame) -> list[dict[Any, Any]]:
    return data.to_dict("records")
