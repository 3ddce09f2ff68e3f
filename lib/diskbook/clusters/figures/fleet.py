"""Fairness of a fleet: what every machine did in a trial, beside the mean of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import pandas as pd

from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many, reach
from diskbook.report.figures.strip import new_strips, panel
from diskbook.report.figures.style import INK, RC, ArmLook, Picture, brief, decorate, redrawable

NOTE = (
    "Each mark is one machine in one trial, blocks from top to bottom; black line: median. The machines of a "
    "trial share everything: they are one observation, and no replicates."
)
LEAST_RANGE = 10.0
"""Percent on each side of the mean that the axis has at least."""


@redrawable
def fleet(
    machines: pd.DataFrame,
    looks: Mapping[str, ArmLook],
    words: Mapping[str, str],
    workloads: Sequence[str],
    title: str,
    run: str,
    provenance: str,
) -> Picture:
    """Draw the rate of every machine in percent of the trial's mean, a panel a workload.

    Parameters
    ----------
    machines
        One row a trial and machine: `workload, arm, replicate, block, trial, vm, share_pct`.
    looks, words
        Looks of arms, workloads in words.
    workloads
        Names of those to draw, in order.
    title, run, provenance
        Finding, name of the run, and where its numbers come from.
    """
    data = machines[machines["workload"].isin(workloads)].reset_index(drop=True)
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, panels = new_strips(data, workloads)
    reach = max(LEAST_RANGE, 1.1 * float((data["share_pct"] - 100).abs().max())) if len(data) else LEAST_RANGE
    with mpl.rc_context(RC):
        for axes, workload in zip(panels, workloads, strict=False):
            panel(axes, data[data["workload"] == workload], arms, looks, "share_pct", 3)
            axes.set_title(words.get(workload, workload), loc="left", fontsize=11)
            axes.axvline(100, color=INK, linewidth=0.8, linestyle=":")
            axes.set_xlim(100 - reach, 100 + reach)
            axes.set_xlabel("IOPS of a machine, % of the mean of its trial")
    decorate(figure, title, NOTE, provenance)
    emulated = Provenance.EMULATED in provenance
    finding = _finding(data, looks)
    caption = brief(provenance, f"{finding} {NOTE}")
    made = "emulated " if emulated else ""
    machines_of = many(data["vm"].nunique(), "machine")
    alt = f"Dot strip of {made}rates of {machines_of} by arm, showing: {finding}"
    short = brief(provenance, f"IOPS of {machines_of}, in percent of the mean of each trial.")
    return Picture("fleet", title, short, alt, figure, data, provenance, run, caption)


def _finding(data: pd.DataFrame, looks: Mapping[str, ArmLook]) -> str:
    parts = []
    for arm in looks:
        shares = data.loc[data["arm"] == arm, "share_pct"]
        if len(shares):
            parts.append(f"{looks[arm].label} {reach(shares.min(), shares.max(), '.0f')} %")
    return f"Machines by arm, in percent of their trial's mean: {', '.join(parts) or 'none'}."
