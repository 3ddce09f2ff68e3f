"""Measured beside predicted: the rate of every trial of each arm, and the limit that should set it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many
from diskbook.report.figures.equal_axes import equal_x
from diskbook.report.figures.style import (
    FAINT,
    INK,
    RC,
    ArmLook,
    Picture,
    brief,
    decorate,
    is_narrow,
    new_figure,
    redrawable,
)
from diskbook.stats import limits

UNITS = {"iops": ("iops", "predicted_iops", "IOPS"), "mb_s": ("mb_s", "predicted_mb_s", "MB/s (10^6 bytes)")}


@redrawable
def drives(
    trials: pd.DataFrame,
    predictions: pd.DataFrame,
    looks: Mapping[str, ArmLook],
    panels: Mapping[str, Sequence[str]],
    title: str,
    run: str,
) -> Picture:
    """Draw a panel a workload: every trial's rate by arm, and a bar where the lowest limit lies.

    Parameters
    ----------
    trials
        Table of a run.
    predictions
        From `expected.predicted`.
    looks
        Looks of arms.
    panels
        By workload: "iops" or "mb_s", and the panel's title.
    title, run
        Finding and name of the run.
    """
    totals = limits.trial_totals(trials)
    data = totals.loc[totals["workload"].isin(list(panels)), ["workload", "arm", "trial", "iops", "mb_s"]]
    data = data.merge(predictions[["arm", "workload", "predicted_iops", "predicted_mb_s", "by"]])
    arms = [arm for arm in looks if arm in set(data["arm"])]
    row_in = 0.36 if is_narrow() else 0.27
    figure, drawn = new_figure(1.2 + len(panels) * (0.8 + row_in * len(arms)), len(panels))
    with mpl.rc_context(RC):
        for axes, (workload, (kind, words)) in zip(drawn, panels.items(), strict=True):
            _panel(axes, data[data["workload"] == workload], arms, looks, kind)
            axes.set_title(words, loc="left", fontsize=11)
        for unit in UNITS:
            equal_x([axes for axes, (kind, _) in zip(drawn, panels.values(), strict=True) if kind == unit])
    note = "Each mark is one trial; black bars: the lowest of all limits in force, or outstanding / latency."
    provenance = "+".join(sorted(set(trials["provenance"])))
    decorate(figure, title, note, provenance)
    emulated = Provenance.EMULATED in provenance
    finding = _finding(data, panels, looks)
    caption = brief(provenance, f"{finding} {note}")
    alt = (
        f"Dot plot of {'emulated ' if emulated else ''}rates by arm with predicted limits, showing: {finding}"
    )
    short = brief(
        provenance,
        f"Rates of {many(data['trial'].nunique(), 'trial')} of {many(len(arms), 'arm')}; "
        "bars are limits in force.",
    )
    return Picture("drives", title, short, alt, figure, data.reset_index(drop=True), provenance, run, caption)


def _panel(axes: Axes, data: pd.DataFrame, arms: list[str], looks: Mapping[str, ArmLook], kind: str) -> None:
    measured, predicted, unit = UNITS[kind]
    for place, arm in enumerate(arms):
        rows = data[data["arm"] == arm]
        jitter = np.linspace(-0.2, 0.2, len(rows)) if len(rows) > 1 else np.zeros(len(rows))
        axes.plot(rows[measured], place + jitter, **looks[arm].marks(4.5))
        limit = rows[predicted].median() if len(rows) else np.nan
        if np.isfinite(limit):
            axes.plot([limit, limit], [place - 0.38, place + 0.38], color=INK, linewidth=1.8, zorder=0)
    axes.set_yticks(range(len(arms)), [looks[arm].label for arm in arms])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(arms) - 0.4, -0.6)
    reach = np.nanmax([*data[measured], *data[predicted], 1.0]) if len(data) else 1.0
    axes.set_xlim(0, 1.06 * float(reach))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(axis="x", color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(unit)


def _finding(data: pd.DataFrame, panels: Mapping[str, Sequence[str]], looks: Mapping[str, ArmLook]) -> str:
    parts = []
    for workload, (kind, words) in panels.items():
        measured, predicted, _ = UNITS[kind]
        medians = data[data["workload"] == workload].groupby("arm")[[measured, predicted]].median()
        known = medians.dropna()
        within = int(((known[measured] / known[predicted] - 1).abs() <= 0.05).sum())
        if known.empty:
            continue
        top, most = str(medians[measured].idxmax()), float(medians[measured].max())
        parts.append(
            f"{words}: most by {looks[top].label} ({most:,.0f}); {within} of "
            f"{many(len(known), 'arm')} within 5 % of what was predicted."
        )
    return " ".join(parts)
