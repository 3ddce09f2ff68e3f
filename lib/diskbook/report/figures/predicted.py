"""Measured beside predicted: the rate of each trial of a workload, and the limit that should set it."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many
from diskbook.report.figures import scales, style
from diskbook.stats import limits

UNITS = {"iops": ("iops", "predicted_iops", "IOPS"), "mb_s": ("mb_s", "predicted_mb_s", "MB/s (10^6 bytes)")}


@style.redrawable
def drives(
    trials: pd.DataFrame,
    predictions: pd.DataFrame,
    looks: Mapping[str, style.ArmLook],
    load: tuple[str, str, str, str],
    run: str,
) -> style.Picture:
    """Draw every trial's rate of a workload by arm, and a bar where the lowest limit lies.

    - `predictions`: from `expected.predicted`.
    - `load`: name of the figure, workload, "iops" or "mb_s", and the workload in words.
    """
    slug, workload, kind, words = load
    totals = limits.trial_totals(trials)
    data = totals.loc[totals["workload"] == workload, ["workload", "arm", "trial", "iops", "mb_s"]]
    data = data.merge(predictions[["arm", "workload", "predicted_iops", "predicted_mb_s", "by"]])
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, (axes,) = style.new_figure(2.0 + (0.36 if style.is_narrow() else 0.27) * len(arms))
    with mpl.rc_context(style.RC):
        _panel(axes, data, arms, looks, kind)
    note = "Each mark is one trial; black bars: the lowest of all limits in force, or outstanding / latency."
    provenance = "+".join(sorted(set(trials["provenance"])))
    title, finding = _title(data, kind, words), _finding(data, kind, words, looks)
    style.decorate(figure, title, note, provenance, run)
    made = "emulated " * (Provenance.EMULATED in provenance)
    alt = f"Measured {made}rates as dots by arm, and predicted limits as bars. {title}."
    short = style.brief(
        provenance, f"Rates of {many(len(data), 'trial')}, {words}; bars are limits in force."
    )
    description = style.brief(provenance, f"{finding} {note}")
    return style.Picture(
        slug, title, short, alt, figure, data.reset_index(drop=True), provenance, run, description
    )


def _panel(
    axes: Axes, data: pd.DataFrame, arms: list[str], looks: Mapping[str, style.ArmLook], kind: str
) -> None:
    measured, predicted, unit = UNITS[kind]
    for place, arm in enumerate(arms):
        rows = data[data["arm"] == arm]
        jitter = np.linspace(-0.2, 0.2, len(rows)) if len(rows) > 1 else np.zeros(len(rows))
        axes.plot(rows[measured], place + jitter, **looks[arm].marks(4.5))
        limit = rows[predicted].median() if len(rows) else np.nan
        if np.isfinite(limit):
            scales.upright(axes, [limit], [place - 0.42], [place + 0.42])
    axes.set_yticks(range(len(arms)), [looks[arm].label for arm in arms])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(arms) - 0.4, -0.6)
    reach = np.nanmax([*data[measured], *data[predicted], 1.0]) if len(data) else 1.0
    axes.set_xlim(0, 1.06 * float(reach))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(axis="x", color=style.FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(unit)


def _within(data: pd.DataFrame, kind: str) -> tuple[int, int]:
    """How many arms have the rate that was predicted, within 5 %, and of how many one was."""
    measured, predicted, _ = UNITS[kind]
    known = data.groupby("arm")[[measured, predicted]].median().dropna()
    return int(((known[measured] / known[predicted] - 1).abs() <= 0.05).sum()), len(known)


def _title(data: pd.DataFrame, kind: str, words: str) -> str:
    within, known = _within(data, kind)
    return f"{words}: the lowest limit in force sets the rate of {within} of {many(known, 'drive')}"


def _finding(data: pd.DataFrame, kind: str, words: str, looks: Mapping[str, style.ArmLook]) -> str:
    (within, known), medians = _within(data, kind), data.groupby("arm")[UNITS[kind][0]].median()
    if not known:
        return f"{words}: nothing was predicted."
    return (
        f"{words}: most by {looks[str(medians.idxmax())].label} ({medians.max():,.0f}); {within} of "
        f"{many(known, 'arm')} within 5 % of what was predicted."
    )
