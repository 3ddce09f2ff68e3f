"""IOPS of every trial at each depth, with the limits in force as labelled lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design.vocabulary import Label, Provenance
from diskbook.facts.quantities import many, reach
from diskbook.report.figures.equal_axes import equal_x
from diskbook.report.figures.style import (
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
)
from diskbook.stats import limits

NEAR = 1.7
"""Limits up to this multiple of the highest rate are drawn."""
HEAD = 0.62
"""Room for the name of a limit, in rows."""


@redrawable
def rates(
    trials: pd.DataFrame,
    cells: pd.DataFrame,
    looks: Mapping[str, ArmLook],
    panels: Mapping[str, Sequence[str]],
    title: str,
    run: str,
) -> Picture:
    """Draw the rate of every finished trial; limits are dotted lines with their names.

    Parameters
    ----------
    trials
        Table of a run.
    cells
        From `limits.label_cells`.
    looks
        Looks of arms.
    panels
        Workloads by panel title, e.g. {"4K random read": ["randread-qd1", "randread-qd256"]}.
    title, run
        Finding and name of the run.
    """
    totals = limits.trial_totals(trials)
    loads = [workload for names in panels.values() for workload in names]
    data = totals[totals["workload"].isin(loads)]
    caps = [limit.column for limit in limits.LIMITS if limit.counts == "iops" and limit.column in totals]
    data = data[["workload", "arm", "trial", "outstanding", "iops", *caps]].reset_index(drop=True)
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, drawn = new_figure(1.2 + len(panels) * (1.5 + 0.34 * len(arms)), len(panels))
    with mpl.rc_context(RC):
        for axes, (name, workloads) in zip(drawn, panels.items(), strict=True):
            _panel(axes, data[data["workload"].isin(workloads)], arms, looks, _queues(cells, workloads))
            axes.set_title(name, loc="left", fontsize=11)
        equal_x(drawn)
    shown = cells[cells["workload"].isin(loads)]
    note = "Each mark is one trial; numbers are queue depths; dotted lines are the limits in force."
    provenance = "+".join(sorted(set(trials["provenance"])))
    decorate(figure, title, note, provenance)
    finding = _finding(data, shown)
    emulated = Provenance.EMULATED in provenance
    caption = brief(provenance, f"{finding} {note}")
    kind = f"Dot plot of {'emulated ' if emulated else ''}IOPS by arm and queue depth with limit lines"
    alt = f"{kind}, showing: {finding}"
    short = brief(
        provenance,
        f"IOPS of {many(data['trial'].nunique(), 'trial')} by arm and queue depth; {_capped(shown)}.",
    )
    return Picture("iops-and-caps", title, short, alt, figure, data, provenance, run, caption)


def _queues(cells: pd.DataFrame, workloads: Sequence[str]) -> set[tuple[str, float]]:
    """Arm and depth of the cells that a limit saturates which is not known."""
    queues = cells[cells["workload"].isin(workloads) & (cells["label"] == Label.SATURATED)]
    return set(zip(queues["arm"], queues["outstanding"], strict=True))


def _panel(
    axes: Axes,
    data: pd.DataFrame,
    arms: list[str],
    looks: Mapping[str, ArmLook],
    queues: Collection[tuple[str, float]],
) -> None:
    highest = float(data["iops"].max()) if len(data) else 1.0
    arms = [arm for arm in arms if arm in set(data["arm"])] or arms
    for place, arm in enumerate(arms):
        for outstanding, rows in data[data["arm"] == arm].groupby("outstanding"):
            jitter = np.linspace(-0.16, 0.16, len(rows)) if len(rows) > 1 else np.zeros(1)
            axes.plot(rows["iops"], place + jitter, **looks[arm].marks(5))
            _depth(axes, rows["iops"], place, f"{outstanding:.0f}", (arm, outstanding) in queues)
    lines = _lines(data, highest)
    _draw_lines(axes, lines)
    axes.set_xlim(0, max([(1.2 if is_narrow() else 1.1) * highest, *(1.04 * value for value, _ in lines)]))
    axes.set_yticks(range(len(arms)), [looks[arm].label for arm in arms])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(arms) - 0.4, -0.6 - HEAD * len(lines))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("IOPS of a trial, reads and writes added")


def _depth(axes: Axes, rates: pd.Series, place: int, depth: str, saturated: bool) -> None:
    """Write the depth beside its marks; a long word to their left, where there is room."""
    axes.annotate(
        depth + ", saturated" * saturated,
        (float(rates.min() if saturated else rates.max()), place),
        xytext=(-8 if saturated else 8, 0),
        textcoords="offset points",
        ha="right" if saturated else "left",
        va="center",
        fontsize=10,
        color=GREY,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
    )


def _draw_lines(axes: Axes, lines: Sequence[tuple[float, str]]) -> None:
    """Draw limits as dotted lines, their names below each other."""
    for height, (value, name) in enumerate(lines):
        axes.axvline(value, color=INK, linestyle=":", linewidth=1.3, zorder=0)
        axes.annotate(
            f"{name} {value:,.0f}",
            (value, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -8 - 15 * height),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=10,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )


def _lines(data: pd.DataFrame, highest: float) -> list[tuple[float, str]]:
    """Limits near enough to matter, with their names."""
    near = []
    for limit in limits.LIMITS:
        if limit.counts == "iops" and limit.column in data:
            values = data[limit.column].dropna().astype(float).unique()
            near += [(float(value), limit.name) for value in values if 0 < value <= NEAR * highest]
    return sorted(set(near))


def _capped(cells: pd.DataFrame) -> str:
    number = int((cells["label"] == Label.CAPPED).sum())
    return f"{many(number, 'cell')} sit{'s' * (number == 1)} on a cap" if number else "none sits on a cap"


def _finding(data: pd.DataFrame, cells: pd.DataFrame) -> str:
    parts = []
    for outstanding, rows in data.groupby("outstanding"):
        iops = reach(rows["iops"].min(), rows["iops"].max(), ",.0f")
        parts.append(f"{iops} IOPS at queue depth {outstanding:.0f}")
    capped = cells[cells["label"] == Label.CAPPED]
    limit = limits.limit_words(capped.iloc[0]) if len(capped) else ""
    sits = f" {_capped(cells)} ({limit})." if len(capped) else " No cell sits on a cap."
    queues = int((cells["label"] == Label.SATURATED).sum())
    queue = f" {many(queues, 'cell')} saturated by a limit that is not known." if queues else ""
    return f"{'; '.join(parts)}.{sits}{queue}"
