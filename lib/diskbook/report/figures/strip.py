"""Dot strip: every trial by arm, so that a reader sees the data behind each ratio."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diskbook.design.schema import EARLY
from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many
from diskbook.report.figures import scales, style
from diskbook.stats import limits

SPREAD = 0.72
"""Height that the replicates of an arm take, of the distance between arms."""
HEAD_IN, PANEL_IN, LANE_IN, NAME_IN = 1.1, 0.75, 0.13, 0.2
"""Heights of title and note, of what a panel has besides its rows, of a replicate, and between arms."""


@style.redrawable
def strip(
    trials: pd.DataFrame,
    looks: Mapping[str, style.ArmLook],
    words: Mapping[str, str],
    workloads: Sequence[str],
    title: str,
    run: str,
) -> style.Picture:
    """Draw the mean total latency of every finished trial, a panel a workload, a line a replicate."""
    totals = limits.trial_totals(trials)
    data = totals[totals["workload"].isin(workloads)]
    data = data[["workload", "arm", "replicate", "block", "trial", "lat_mean_ms"]].reset_index(drop=True)
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, panels = _strips(data, workloads)
    with mpl.rc_context(style.RC):
        for axes, workload in zip(panels, workloads, strict=True):
            _panel(axes, data[data["workload"] == workload], arms, looks)
            axes.set_xlabel("Mean latency of a trial, ms")
            axes.set_title(words.get(workload, workload), loc="left", fontsize=11)
        scales.equal_x(panels)
    note = _note(data, trials)
    provenance = "+".join(sorted(set(trials["provenance"])))
    style.decorate(figure, title, note, provenance, run)
    emulated = "Emulated, not measured on Azure. " if Provenance.EMULATED in provenance else ""
    caption = f"{emulated}{_medians(data, looks, words, workloads)} {note}"
    number = many(len(workloads), "panel")
    made = "emulated " if Provenance.EMULATED in provenance else ""
    alt = f"Mean latency of {many(len(data), f'{made}trial')} as dots by arm, in {number}. {title}."
    trials_of = many(len(data), "trial")
    words_of = f"Mean total latency of {trials_of} by arm, in {number}; black lines are medians."
    return style.Picture(
        "all-trials", title, style.brief(provenance, words_of), alt, figure, data, provenance, run, caption
    )


def _strips(data: pd.DataFrame, workloads: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Make a figure, a panel a workload, each as high as its arms and their replicates need."""
    lanes = max(1, data["replicate"].nunique())
    row_in = max(LANE_IN * lanes, LANE_IN + 0.1 * style.is_narrow()) + NAME_IN
    arms = data.groupby("workload")["arm"].nunique()
    heights = [PANEL_IN + row_in * max(1, int(arms.get(name, 1))) for name in workloads] or [PANEL_IN]
    return style.new_figure(HEAD_IN + sum(heights), len(heights), height_ratios=heights)


def _note(data: pd.DataFrame, trials: pd.DataFrame) -> str:
    """Say what a mark is, and how many trials have none."""
    n_blocks = data[["replicate", "block"]].drop_duplicates().shape[0]
    lines = "each grey line a replicate, " * (data["replicate"].nunique() > 1)
    absent = trials.loc[~trials["status"].isin(["ok", EARLY]), "trial"].nunique()
    note = f"Each mark is one trial, {lines}{many(n_blocks, 'block')} in all; black: median."
    if not absent:
        return note
    return f"{note} Not drawn: {many(absent, 'trial')} that failed or whose block was not finished."


def _panel(axes: Axes, data: pd.DataFrame, arms: list[str], looks: Mapping[str, style.ArmLook]) -> None:
    """Draw the latency of each trial by arm, fastest first, a line a replicate, with the arm's median."""
    medians = data.groupby("arm")["lat_mean_ms"].median().sort_values()
    arms = [str(arm) for arm in medians.index] or arms
    replicates = sorted(set(data["replicate"]))
    lanes = np.linspace(-SPREAD / 2, SPREAD / 2, 2 * len(replicates) + 1)[1::2]
    for place, arm in enumerate(arms):
        rows = data[data["arm"] == arm]
        for lane, replicate in zip(place + lanes, replicates, strict=True):
            trials = rows.loc[rows["replicate"] == replicate, "lat_mean_ms"]
            if len(trials):
                axes.plot(
                    [trials.min(), trials.max()], [lane, lane], color=style.GREY, linewidth=0.9, zorder=1
                )
            axes.plot(trials, [lane] * len(trials), **looks[arm].marks(4.5))
        if len(rows):
            scales.upright(axes, [medians[arm]], [place - 0.42], [place + 0.42])
    axes.set_yticks(range(len(arms)), [looks[arm].label for arm in arms])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(arms) - 0.4, -0.6)
    axes.set_xlim(0, 1.06 * (data["lat_mean_ms"].max() if len(data) else 1.0))
    axes.grid(axis="x", color=style.FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)


def _medians(
    data: pd.DataFrame, looks: Mapping[str, style.ArmLook], words: Mapping[str, str], workloads: Sequence[str]
) -> str:
    parts = []
    for workload in workloads:
        medians = data[data["workload"] == workload].groupby("arm")["lat_mean_ms"].median()
        arms = ", ".join(f"{looks[arm].label} {medians[arm]:.2f} ms" for arm in looks if arm in medians)
        parts.append(f"{words.get(workload, workload)}: median {arms}.")
    return " ".join(parts)
