"""One estimate of a comparison: its interval, and which disks or runs it speaks of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
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


def source(provenance: str) -> str:
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
