"""A comparison of two arms of one run, as an analyst reads, plots and checks it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from diskbook.api import scope
from diskbook.design.vocabulary import Verdict
from diskbook.report.show import lead

if TYPE_CHECKING:
    from matplotlib.axes import Axes


if TYPE_CHECKING:
    from matplotlib.axes import Axes


def changes(
    rows: Mapping[str, np.ndarray],
    scopes: Sequence[scope.ScopeEstimate],
    title: str,
    provenance: str,
    ax: Axes | None,
    ranges: Sequence[tuple[float, float]] = (),
) -> Axes:
    """Draw rows of changes, and below them the interval of each scope that has one.

    Parameters
    ----------
    rows
        Changes in percent, by the name of their row.
    scopes
        Estimates, whose intervals are drawn where they have one.
    title, provenance
        What is compared, and where the numbers come from.
    ax
        Axes to draw into; by default new ones.
    ranges
        Interval of each row; NaN for none.
    """
    axes = ax or _new()
    for place, values in enumerate(rows.values()):
        axes.plot(values, np.full(len(values), place), "o", alpha=0.7)
    for place, reach in enumerate(ranges):
        axes.plot(reach, [place, place], "-", color="grey", linewidth=1.5, zorder=1)
    drawn = [estimate for estimate in scopes if estimate.has_interval]
    for place, estimate in enumerate(drawn, len(rows)):
        axes.plot(estimate.ci_pct, [place, place], "-", color="black", linewidth=2)
        axes.plot([estimate.change_pct], [place], "d", color="black")
    names = [*rows, *(estimate.scope for estimate in drawn)]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names), -0.5)  # the mark below has a row of its own
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("change, %")
    axes.set_title(title, loc="left", fontsize="medium")
    if scope.source(provenance):
        axes.text(0.995, 0.03, "EMULATED", transform=axes.transAxes, ha="right", fontsize="small")
    if ax is None:
        intervals = "".join(f"; {estimate.scope}: {estimate.text}" for estimate in drawn)
        axes.figure.set_label(f"Changes in percent, {title}, by row: {', '.join(rows)}{intervals}")
    return axes


def _new() -> Axes:
    import matplotlib.pyplot as plt

    axes: Axes = plt.subplots(figsize=(7.2, 2.8), layout="constrained")[1]
    return axes


EXPLORATORY = "exploratory: not named before the run"


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """Two arms of one run compared under one workload.

    Made by `RunResults.compare`.

    Attributes
    ----------
    run, arm, base_arm, workload, direction, metric
        What is compared: `arm` over `base_arm`.
    unit
        Unit of `value` and `base_value`.
    value, base_value
        Geometric means of both arms over the blocks that measured both; replicates weigh alike.
    these_disks, disks_like_these
        The estimate for the very disks measured, and for disks of their kind.
    gates
        What was checked before anything was compared, a row a gate.
    blocks
        One row a replicate and block: `value`, `base_value` and `log_ratio` (natural logarithm).
    exploratory
        Why this is no finding that was planned; "" where the scenario named it before the run.
    provenance
        Where the numbers come from, for example "emulated".
    """

    run: str
    arm: str
    base_arm: str
    workload: str
    direction: str
    metric: str
    unit: str
    value: float
    base_value: float
    these_disks: scope.ScopeEstimate
    disks_like_these: scope.ScopeEstimate
    gates: pd.DataFrame = field(compare=False)
    blocks: pd.DataFrame = field(compare=False)
    exploratory: str
    provenance: str

    @property
    def scope(self) -> scope.ScopeEstimate:
        """The estimate that decides: for disks like these if it has an interval, else for these disks."""
        return self.disks_like_these if self.disks_like_these.has_interval else self.these_disks

    @property
    def change_pct(self) -> float:
        """Change of `arm` over `base_arm` in percent; NaN where the gates withhold it."""
        return self.scope.change_pct

    @property
    def verdict(self) -> str:
        """What the comparison supports, for example "difference" or "capped"."""
        return self.scope.verdict

    @property
    def reason(self) -> str:
        """Why there is no difference, no interval or no number; "" where nothing needs saying."""
        return self.scope.reason

    @property
    def worse(self) -> bool | None:
        """Whether `arm` has the higher latency or the lower rate; None where no difference is shown."""
        if self.verdict != Verdict.DIFFERENCE or math.isnan(self.scope.ratio):
            return None
        return (self.scope.ratio > 1) == self.metric.startswith("lat")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the change of every block, and the interval of each scope.

        Parameters
        ----------
        ax
            Axes to draw into; by default new ones.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn into.
        """
        rows = {
            f"replicate {number}": 100 * np.expm1(part["log_ratio"].to_numpy(float))
            for number, part in self.blocks.groupby("replicate")
        }
        return changes(rows, (self.these_disks, self.disks_like_these), self._name, self.provenance, ax)

    @property
    def _name(self) -> str:
        return scope.compared(self.arm, self.base_arm, self.workload, self.direction, self.metric)

    @property
    def _change(self) -> str:
        return "withheld" if math.isnan(self.change_pct) else self.scope.text

    def __repr__(self) -> str:
        both = f"{lead.number(self.value, self.unit)} against {lead.number(self.base_value, self.unit)}"
        why = f" ({self.reason})" if self.reason else ""
        marks = scope.remarks(self.exploratory, scope.source(self.provenance))
        return f"{self._name}: {both}, change {self._change}: {self.verdict}{why}{marks}"

    def _repr_html_(self) -> str:
        facts = {
            self.arm: lead.number(self.value, self.unit),
            self.base_arm: lead.number(self.base_value, self.unit),
            "Change": self._change,
            "Verdict": self.verdict,
            "Why": self.reason,
            "Holds for": self.scope.scope,
            "Run": ", ".join(filter(None, [self.run, scope.source(self.provenance)])),
        }
        return scope.box(self._name, facts, self.exploratory)
