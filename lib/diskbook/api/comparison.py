"""A comparison of two arms of one run, as an analyst reads, plots and checks it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from diskbook.api import card, plot
from diskbook.api.scope import ScopeEstimate
from diskbook.design.vocabulary import Verdict
from diskbook.report.show import levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    these_disks: ScopeEstimate
    disks_like_these: ScopeEstimate
    gates: pd.DataFrame = field(compare=False)
    blocks: pd.DataFrame = field(compare=False)
    exploratory: str
    provenance: str

    @property
    def scope(self) -> ScopeEstimate:
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
        return plot.changes(rows, (self.these_disks, self.disks_like_these), self._name, self.provenance, ax)

    @property
    def _name(self) -> str:
        return card.compared(self.arm, self.base_arm, self.workload, self.direction, self.metric)

    @property
    def _change(self) -> str:
        return "withheld" if math.isnan(self.change_pct) else self.scope.text

    def __repr__(self) -> str:
        both = f"{levels.number(self.value, self.unit)} against {levels.number(self.base_value, self.unit)}"
        why = f" ({self.reason})" if self.reason else ""
        marks = card.remarks(self.exploratory, card.source(self.provenance))
        return f"{self._name}: {both}, change {self._change}: {self.verdict}{why}{marks}"

    def _repr_html_(self) -> str:
        facts = {
            self.arm: levels.number(self.value, self.unit),
            self.base_arm: levels.number(self.base_value, self.unit),
            "Change": self._change,
            "Verdict": self.verdict,
            "Why": self.reason,
            "Holds for": self.scope.scope,
            "Run": ", ".join(filter(None, [self.run, card.source(self.provenance)])),
        }
        return card.box(self._name, facts, self.exploratory)
