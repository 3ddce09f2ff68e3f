"""Dot strip: every trial by arm, so that a reader sees the data behind each ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diskbook.design.schema import EARLY
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

SPREAD = 0.52
"""Height that the blocks of an arm take, of the distance between arms."""
HEAD_IN, PANEL_IN, ROW_IN, ROW_IN_NARROW = 1.1, 0.75, 0.34, 0.42
"""Heights of title and note, of what a panel has besides its rows, and of a row."""


@redrawable
def strip(
    trials: pd.DataFrame,
    looks: Mapping[str, ArmLook],
    words: Mapping[str, str],
    workloads: Sequence[str],
    title: str,
    run: str,
) -> Picture:
    """Draw the mean total latency of every finished trial, a panel a workload, blocks from top to bottom.

    Parameters
    ----------
    trials
        Table of a run.
    looks, words
        Looks of arms, workloads in words.
    workloads
        Names of those to draw, in order.
    title, run
        Finding and name of the run.
    """
    totals = limits.trial_totals(trials)
    data = totals[totals["workload"].isin(workloads)]
    data = data[["workload", "arm", "replicate", "block", "trial", "lat_mean_ms"]].reset_index(drop=True)
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, panels = new_strips(data, workloads)
    with mpl.rc_context(RC):
        for axes, workload in zip(panels, workloads, strict=True):
            panel(axes, data[data["workload"] == workload], arms, looks)
            axes.set_xlabel("Mean total latency of a trial, ms")
            axes.set_title(words.get(workload, workload), loc="left", fontsize=11)
        equal_x(panels)
    note = _note(data, trials)
    provenance = "+".join(sorted(set(trials["provenance"])))
    decorate(figure, title, note, provenance)
    emulated = "Emulated, not measured on Azure. " if Provenance.EMULATED in provenance else ""
    caption = f"{emulated}{_medians(data, looks, words, workloads)} {note}"
    number = many(len(workloads), "panel")
    made = "emulated " if Provenance.EMULATED in provenance else ""
    alt = (
        f"Dot strip of {many(len(data), f'{made}trial')} by arm in "
        f"{number}, showing mean latency: {_medians(data, looks, words, workloads[:1])}"
    )
    trials_of = many(len(data), "trial")
    words_of = f"Mean total latency of {trials_of} by arm, in {number}; black lines are medians."
    return Picture(
        "all-trials", title, brief(provenance, words_of), alt, figure, data, provenance, run, caption
    )


def new_strips(data: pd.DataFrame, workloads: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Make a figure, a panel a workload, each as high as its arms need: on a phone names take two lines."""
    row_in = ROW_IN_NARROW if is_narrow() else ROW_IN
    arms = data.groupby("workload")["arm"].nunique()
    heights = [PANEL_IN + row_in * max(1, int(arms.get(name, 1))) for name in workloads] or [PANEL_IN]
    return new_figure(HEAD_IN + sum(heights), len(heights), height_ratios=heights)


def _note(data: pd.DataFrame, trials: pd.DataFrame) -> str:
    """Say what a mark is, and how many trials have none."""
    n_blocks = data[["replicate", "block"]].drop_duplicates().shape[0]
    absent = trials.loc[~trials["status"].isin(["ok", EARLY]), "trial"].nunique()
    note = (
        f"Each mark is one trial, blocks from top to bottom ({many(n_blocks, 'block')}); black line: median."
    )
    if not absent:
        return note
    return f"{note} Not drawn: {many(absent, 'trial')} that failed or whose block was not finished."


def panel(
    axes: Axes,
    data: pd.DataFrame,
    arms: list[str],
    looks: Mapping[str, ArmLook],
    column: str = "lat_mean_ms",
    size: float = 5,
) -> None:
    """Draw a number of each trial by arm, blocks from top to bottom, with a line at the median."""
    order = {
        key: place
        for place, key in enumerate(sorted(set(zip(data["replicate"], data["block"], strict=True))))
    }
    middle = (len(order) - 1) / 2 or 1.0
    arms = [arm for arm in arms if arm in set(data["arm"])] or arms
    for place, arm in enumerate(arms):
        rows = data[data["arm"] == arm]
        step = np.array([order[key] for key in zip(rows["replicate"], rows["block"], strict=True)])
        offset = (
            (step - (len(order) - 1) / 2) / middle * SPREAD / 2 if len(order) > 1 else np.zeros(len(step))
        )
        axes.plot(rows[column], place + offset, **looks[arm].marks(size))
        if len(rows):
            median = rows[column].median()
            axes.plot([median, median], [place - 0.4, place + 0.4], color=INK, linewidth=1.6, zorder=0)
    axes.set_yticks(range(len(arms)), [looks[arm].label for arm in arms])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(arms) - 0.4, -0.6)
    highest = data[column].max() if len(data) else 1.0
    axes.set_xlim(0, 1.06 * highest)
    axes.grid(axis="x", color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)


def _medians(
    data: pd.DataFrame, looks: Mapping[str, ArmLook], words: Mapping[str, str], workloads: Sequence[str]
) -> str:
    parts = []
    for workload in workloads:
        medians = data[data["workload"] == workload].groupby("arm")["lat_mean_ms"].median()
        arms = ", ".join(f"{looks[arm].label} {medians[arm]:.2f} ms" for arm in looks if arm in medians)
        parts.append(f"{words.get(workload, workload)}: median {arms}.")
    return " ".join(parts)
