"""A comparison of two arms of one run, as an analyst reads, plots and checks it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from diskbook.design.vocabulary import Verdict
from diskbook.report.show import lead

if TYPE_CHECKING:
    from matplotlib.axes import Axes


if TYPE_CHECKING:
    from matplotlib.axes import Axes


from typing import Any

from diskbook.design.vocabulary import Provenance
from diskbook.facts import quantities
from diskbook.facts.nan_equal import NanEqual
from diskbook.report.show.html import escaped


@dataclass(frozen=True, eq=False, repr=False)
class ScopeEstimate(NanEqual):
    """An estimate with its interval, in one scope.

    Attributes
    ----------
    scope
        What it speaks of, for example "disks like these".
    ratio, low, high
        First arm over second arm, and the ends of the interval; NaN where there is none.
    level
        How often such intervals hold the true ratio.
    verdict, reason
        What follows from it, and why there is no interval or no difference ("" where nothing needs saying).
    n
        How many values the interval is computed from: blocks, replicates or runs.
    """

    scope: str
    ratio: float
    low: float
    high: float
    level: float
    verdict: str
    reason: str
    n: int

    @property
    def ci(self) -> tuple[float, float]:
        """Ends of the interval as ratios."""
        return self.low, self.high

    @property
    def change_pct(self) -> float:
        """Change of the first arm over the second, in percent."""
        return 100 * (self.ratio - 1)

    @property
    def ci_pct(self) -> tuple[float, float]:
        """Ends of the interval of the change, in percent.

        Examples
        --------
        >>> estimate = ScopeEstimate("disks like these", 1.5, 1.25, 1.75, 0.95, "difference", "", 3)
        >>> estimate.change_pct, estimate.ci_pct
        (50.0, (25.0, 75.0))
        """
        return 100 * (self.low - 1), 100 * (self.high - 1)

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.low)

    @property
    def text(self) -> str:
        """The change with its interval: "+146 %, 95 % CI +138 to +155 %"."""
        return quantities.change(self.ratio, self.low, self.high, self.level)

    def __repr__(self) -> str:
        reason = f": {self.reason}" if self.reason and not self.has_interval else ""
        return f"<{self.scope}: {self.text}, {self.verdict}{reason}>"


def of_row(row: Mapping[Any, Any], reason: str) -> ScopeEstimate:
    """Make an estimate from a row of a run's comparisons."""
    over_replicates = str(row["method"]) == "t over replicates"
    return ScopeEstimate(
        scope=str(row["scope"]),
        ratio=float(row["ratio"]),
        low=float(row["ci_low"]),
        high=float(row["ci_high"]),
        level=float(row["level"]),
        verdict=str(row["verdict"]),
        reason=reason,
        n=int(row["n_replicates"] if over_replicates else row["n_blocks"]),
    )


_BOX = "border:1px solid currentColor;border-radius:6px;padding:.6em .9em;max-width:46em;line-height:1.45"
_CELL = "text-align:left;vertical-align:top;padding:.1em 1em .1em 0;white-space:normal;background:none"


def box(title: str, facts: Mapping[str, str], note: str = "") -> str:
    """Write a card: a sentence, facts by name, and a note, with styles of its own (JupyterLab has others)."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};opacity:.75;font-weight:normal">{escaped(name)}</th>'
        f'<td style="{_CELL}">{escaped(text)}</td></tr>'
        for name, text in facts.items()
        if text
    )
    below = f'<div style="margin-top:.4em">{escaped(note)}</div>' if note else ""
    table = f'<table style="border:0;margin:.4em 0 0">{rows}</table>'
    return f'<div style="{_BOX}"><b>{escaped(title)}</b>{table}{below}</div>'


def source_words(provenance: str) -> str:
    """Say in a few words whose numbers these are."""
    words = {
        Provenance.EMULATED: "on the emulator, not on Azure",
        Provenance.IMPORTED: "measured by others",
        Provenance.AZURE: "measured by us, on Azure",
    }
    return "; ".join(text for kind, text in words.items() if kind in provenance)


def compared(arm: str, base_arm: str, workload: str, direction: str, metric: str) -> str:
    """Name a comparison: "zrs-z1 against lrs-z1, randwrite-qd1, lat_mean_ms"."""
    only = "" if direction in workload else f" ({direction})"
    return f"{arm} against {base_arm}, {workload}{only}, {metric}"


def remarks(*texts: str) -> str:
    """Put remarks into brackets behind a line; nothing where there are none."""
    words = "; ".join(filter(None, texts))
    return f" [{words}]" if words else ""


def changes(
    rows: Mapping[str, np.ndarray],
    scopes: Sequence[ScopeEstimate],
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
    if source_words(provenance):
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
        return changes(rows, (self.these_disks, self.disks_like_these), self._name, self.provenance, ax)

    @property
    def _name(self) -> str:
        return compared(self.arm, self.base_arm, self.workload, self.direction, self.metric)

    @property
    def _change(self) -> str:
        return "withheld" if math.isnan(self.change_pct) else self.scope.text

    def __repr__(self) -> str:
        both = f"{lead.number(self.value, self.unit)} against {lead.number(self.base_value, self.unit)}"
        why = f" ({self.reason})" if self.reason else ""
        marks = remarks(self.exploratory, source_words(self.provenance))
        return f"{self._name}: {both}, change {self._change}: {self.verdict}{why}{marks}"

    def _repr_html_(self) -> str:
        facts = {
            self.arm: lead.number(self.value, self.unit),
            self.base_arm: lead.number(self.base_value, self.unit),
            "Change": self._change,
            "Verdict": self.verdict,
            "Why": self.reason,
            "Holds for": self.scope.scope,
            "Run": ", ".join(filter(None, [self.run, source_words(self.provenance)])),
        }
        return box(self._name, facts, self.exploratory)
