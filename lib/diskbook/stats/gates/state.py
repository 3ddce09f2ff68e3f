"""Gate on the state of the disks: was it still changing while it was measured, and how was it made?

A disk whose state changes gets faster or slower from block to block. What both arms share cancels in their
ratio; what one has alone makes the ratio a matter of when it was measured. So the slope of the log ratio
over the blocks, within replicates, decides, and the slope of each arm is reported with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diskbook.design.vocabulary import Provenance, Verdict
from diskbook.facts.units import percent
from diskbook.stats import intervals
from diskbook.stats.gates import Gate, failed, not_assessable, passed
from diskbook.stats.intervals import Interval

STATE = "state"
ALPHA = 0.002
"""Chance that steady arms are called drifting. Simulated (`checks.simulate`: 7 kinds of noise, 1 to 5
replicates of 3 to 10 blocks, 20,000 runs each): at most 0.21 % of A/A comparisons, 0.08 % in the mean, so 1 %
or less of runs with 5 headlines. A drift of 3 % a block of one arm is seen in 90 % of runs of 3 x 5 blocks
with mild noise, in 58 % with strong noise, and in 97 % of 1 x 10; one replicate of 4 blocks shows almost none
(2 %)."""
LEAST_BLOCKS = 3
_REMEDY = (
    "write the working set over again, or wait, until both arms hold from block to block, and measure anew"
)
_ASK = "measure on disks that were written over at random after their fill (the default of a run)"
_MORE = f"measure {LEAST_BLOCKS} blocks or more"


@dataclass(frozen=True)
class Conditioning:
    """What was done to an arm's disks before they were measured, as far as the run recorded it.

    Attributes
    ----------
    filled, overwritten
        Whether its working set was filled in order, and then written over at random, in all replicates.
    reason
        Why the design leaves the random pass out; empty where it does not.
    """

    filled: bool
    overwritten: bool
    reason: str = ""

    @property
    def known(self) -> bool:
        """Whether the design decided it: older runs had no random pass, imported ones say nothing."""
        return self.overwritten or bool(self.reason)

    @property
    def words(self) -> str:
        """What is known, to follow the arm's name."""
        if self.overwritten:
            return "was filled and written over at random"
        if not self.filled:
            return "is in a state that nobody recorded"
        why = f" ({self.reason})" if self.reason else ""
        return f"was filled in order, and not written over{why}"


UNKNOWN = Conditioning(filled=False, overwritten=False)


def state_gate(
    arms: Sequence[str],
    conditioning: Mapping[str, Conditioning],
    slopes: tuple[Interval, Interval, Interval],
    n_blocks: int,
    margin: float,
    provenance: str = "",
) -> Gate:
    """The ratio must hold from block to block: no drift of one arm alone that passes the margin over the run.

    A drift decides whether or not it is known how the disks were filled.

    Parameters
    ----------
    arms
        Names of arm and base arm.
    conditioning
        By arm; what is missing is unknown.
    slopes
        Of the logs of arm and base arm, and of their ratio, a block (`drift.slopes`).
    n_blocks
        Numbers of blocks from the first to the last that both arms have, both counted.
    margin
        Relative difference that matters.
    provenance
        Of the trials: other work on a computer that emulates moves arms too, so there the gate only warns.
    """
    how = [conditioning.get(name, UNKNOWN) for name in arms]
    state, known = _words(arms, how), all(item.known for item in how)
    if n_blocks < LEAST_BLOCKS or not np.isfinite(slopes[2].se):
        cause = f"{state}; fewer than {LEAST_BLOCKS} blocks show no slope"
        return not_assessable(STATE, cause, "; ".join([_MORE] if known else [_MORE, _ASK]))
    cause = f"{state}; {_slopes(arms, slopes)}"
    if drifts(slopes[2], n_blocks, margin):
        remedy = _REMEDY if known else f"{_REMEDY}; {_ASK}"
        if provenance == Provenance.EMULATED:
            cause += ": the ratio drifts, as other work on the computer that emulates can make it"
            return failed(STATE, cause, remedy, None)
        return failed(STATE, f"{cause}: the ratio drifts", remedy, Verdict.INVALID)
    return passed(STATE, cause) if known else not_assessable(STATE, cause, _ASK)


def drifts(slope: Interval, n_blocks: int, margin: float) -> np.ndarray:
    """Tell which ratios change over a run by more than the margin, beyond what noise does."""
    changed = np.abs(slope.mean) * max(n_blocks - 1, 0)
    drifting: np.ndarray = (intervals.p_difference(slope) < ALPHA) & (changed > np.log1p(margin))
    return drifting


def _words(arms: Sequence[str], how: Sequence[Conditioning]) -> str:
    if how[0].words == how[1].words:
        return f"the working set of each arm {how[0].words}"
    return "; ".join(f"{name} {item.words}" for name, item in zip(arms, how, strict=True))


def _slopes(arms: Sequence[str], slopes: Sequence[Interval]) -> str:
    """Slopes as changes a block, with their intervals."""
    parts = []
    for name, slope in zip((*arms, "their ratio"), slopes, strict=True):
        with np.errstate(over="ignore"):
            changes = [float(np.expm1(value)) for value in slope[:3]]
        mean, low, high = (percent(value, "+.3g") for value in changes)
        parts.append(f"{name} {mean} ({low} to {high})" if np.isfinite(changes).all() else f"{name} unknown")
    return f"change a block: {', '.join(parts)}"
