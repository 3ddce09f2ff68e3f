"""Gate on attachment: were both disks attached as long ago and as often, and does that change their ratio?

The effect of an attach is measured: trials right after one against trials of the same visit after settling.

Where one kind of disk is slow after an attach, a comparison of trials right after one prints that as the cost
of the kind. Balanced attaches do not help. So arms are compared after settling, and trials right after the
attach show whether that matters (`Trial.early`).

A disk whose state changes gets faster or slower from block to block. What both arms share cancels in their
ratio; what one has alone makes the ratio a matter of when it was measured. So the slope of the log ratio over
the blocks, within replicates, decides, and the slope of each arm is said beside it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from diskbook.design import held_rate
from diskbook.design.grid import Key
from diskbook.design.schema import EARLY
from diskbook.design.totals import measured_rows
from diskbook.design.vocabulary import Provenance, Verdict
from diskbook.facts.units import percent, span
from diskbook.stats import intervals
from diskbook.stats.gates import Cell, Gate, failed, farthest, not_assessable, passed

LEVEL = 0.90
"""Level of the intervals: two one-sided tests at 5 % each."""
LATE = "late"


class Effect(NamedTuple):
    """Late over early of two arms, over the visits in which both have trials right after an attach.

    - `change`: logs of late over early with their intervals at `LEVEL`, fields of shape [3]: of the arm, of
      its base arm, and of their ratio.
    - `early`, `late`: ratio of the arms right after an attach, and after settling.
    - `visits`: number of visits of each arm.
    """

    change: intervals.Interval
    early: float
    late: float
    visits: int


def visits(trials: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Logs of a metric right after an attach and after settling, by visit.

    Returns a row a replicate, block and repeat; columns (`EARLY` or `LATE`, arm, workload, direction).
    Without columns where no trial came right after an attach.
    """
    early = trials["trial"][trials["status"] == EARLY]
    if early.empty:
        return pd.DataFrame()
    rows = measured_rows(trials.assign(status=trials["status"].replace(EARLY, "ok")))
    values = held_rate.latency(rows, metric)
    logs = np.log(np.where(np.isfinite(values) & (values > 0), values, np.nan))
    rows = rows.assign(log=logs, when=np.where(rows["trial"].isin(early), EARLY, LATE))
    cell = ["when", "arm", "workload", "direction"]
    return rows.groupby(["replicate", "block", "repeat", *cell])["log"].mean().unstack(cell)


def effect(by_visit: pd.DataFrame, arm: Key, base: Key) -> Effect | None:
    """Compare late with early for two arms.

    - `by_visit`: as `visits` returns it.
    - `arm`, `base`: arm, workload and direction of both.

    Returns None where no visit has early and late trials of both.
    """
    names = [(when, *key) for when in (EARLY, LATE) for key in (arm, base)]
    if not all(name in by_visit for name in names):
        return None
    early, late = by_visit[names].dropna().to_numpy(float).reshape(-1, 2, 2).transpose(1, 2, 0)
    return of_logs(early, late) if early.size else None


def of_logs(early: np.ndarray, late: np.ndarray) -> Effect:
    """Compare logs of late trials with early ones, each of shape [2, visit]: of an arm and its base arm."""
    change = late - early
    interval = intervals.t_interval(np.vstack([change, change[0] - change[1]]), LEVEL)
    of_early, of_late = (math.exp(float((logs[0] - logs[1]).mean())) for logs in (early, late))
    return Effect(interval, of_early, of_late, early.shape[1])


ATTACHMENT = "attachment"
MOST_TIMES, LEAST_S = 2.0, 10.0
"""How much longer ago than the other's an arm's attach may be: chosen. What a fresh attach does to a disk on
Azure, and for how long, is not documented."""
LONG_S = 60.0
"""How long ago the attach of a disk that stays must be for nothing to be left to check: chosen."""
OPEN = "attach effect not"
"""How the causes begin that readers see beside the number, although they decide nothing."""
NOT_CHECKED, NOT_EXCLUDED = f"{OPEN} checked", f"{OPEN} excluded"


def attachment_gate(
    arms: Sequence[str], cells: Sequence[Cell], effect: Effect | None = None, margin: float = 0.05
) -> Gate:
    """From attach to trial must pass about as long in both arms, and the attach must not make the ratio.

    What sets arms apart is else the attach as well: the comparison is invalid where one arm's median is more
    than `MOST_TIMES` and `LEAST_S` above the other's. It is a warning where the disks were only attached more
    often, but as long ago. Whether an attach matters is judged by trials right after one (`_judged`). Where
    blocks attach no disk, it must be long ago for both (`_staying`).

    - `arms`, `cells`: names, and rows of `design.cell_checks`, of both cells.
    - `effect`: late over early; None where there are no trials right after an attach.
    - `margin`: relative difference that matters.
    """
    since, often = ([float(cell[name]) for cell in cells] for name in ("since_attach_s", "attaches"))
    unknown = [arm for arm, value in zip(arms, since, strict=True) if math.isnan(value)]
    if unknown:
        cause = f"when the disk of {' and '.join(dict.fromkeys(unknown))} was attached is not known"
        return not_assessable(ATTACHMENT, cause)
    words = " and ".join(f"{_ago(value)} ({arm})" for arm, value in zip(arms, since, strict=True))
    cause, low, high = f"from attach to trial passed {words}, medians", min(since), max(since)
    if not farthest(often) >= 1:
        return _staying(cells, cause)
    unequal = often[0] != often[1] and not any(map(math.isnan, often))
    if unequal:
        counts = " and ".join(f"{n:g} times ({arm})" for arm, n in zip(arms, often, strict=True))
        cause += f"; a block attached the disk {counts}"
    if high > MOST_TIMES * low and high - low > LEAST_S:
        remedy = (
            "measure again: disks that comparisons join are attached equally often, right before an arm's "
            "trials; or let them settle (design.settle_s)"
        )
        return failed(ATTACHMENT, cause, remedy)
    judged = _judged(arms, effect, margin, cause) if effect else _unchecked(cause)
    if unequal and not judged.decides:
        return failed(
            ATTACHMENT, judged.cause, "attach the disks of both arms equally often in a block", None
        )
    return judged


def _judged(arms: Sequence[str], effect: Effect, margin: float, since: str) -> Gate:
    """Judge late over early: of each arm, and of their ratio.

    The attach does not matter where the interval of the ratio lies within the margin: what both arms have
    alike leaves a ratio as it is. The ratio depends on the time where its interval lies beyond the margin, or
    that of one arm alone does. Else nothing is excluded, and the late value leads.
    """
    bound = math.log1p(margin)
    low, high = effect.change.low, effect.change.high
    within = -bound < low[2] and high[2] < bound
    beyond = ((low > bound) | (high < -bound)).tolist()
    cause = f"{_ratios(effect)}; {_changes(arms, effect)}; {since}"
    if within:
        return passed(ATTACHMENT, f"the attach makes no difference beyond {percent(margin)}: {cause}")
    if beyond[2] or beyond[0] != beyond[1]:
        remedy = "choose the time that matters to you, or let disks settle longer (design.settle_s)"
        return failed(ATTACHMENT, f"{Verdict.SINCE_ATTACH}: {cause}", remedy, Verdict.SINCE_ATTACH)
    remedy = "measure more blocks or replicates; compared are the settled trials alone"
    return not_assessable(ATTACHMENT, f"{NOT_EXCLUDED}: {cause}", remedy)


def _staying(cells: Sequence[Cell], since: str) -> Gate:
    """Judge disks that stay attached over blocks: there is nothing to check once that is long ago."""
    least = min(float(cell["since_attach_least_s"]) for cell in cells)
    if least < LONG_S:
        return _unchecked(f"{since}; the first trial came {_ago(least)} after one")
    return passed(ATTACHMENT, f"{since}; disks stay attached, so there is no attach effect to check")


def _unchecked(cause: str) -> Gate:
    remedy = "let disks settle (design.settle_s), with trials right after an attach to compare with"
    return not_assessable(ATTACHMENT, f"{NOT_CHECKED}: {cause}", remedy)


def _ratios(effect: Effect) -> str:
    return (
        f"the ratio is {effect.early:.3g} right after an attach and {effect.late:.3g} after settling, "
        f"in the same {effect.visits} visits"
    )


def _changes(arms: Sequence[str], effect: Effect) -> str:
    """Late over early as changes, with their intervals."""
    with np.errstate(over="ignore"):
        changes = np.expm1(np.transpose(effect.change[:3])).tolist()
    parts = [
        f"{name} {percent(mean, '+.2g')}"
        + ("" if math.isnan(low) else f" ({percent(low, '+.2g')} to {percent(high, '+.2g')})")
        for name, (mean, low, high) in zip((*arms, "their ratio"), changes, strict=True)
    ]
    return f"late over early, {percent(LEVEL)} intervals: {', '.join(parts)}"


def _ago(seconds: float) -> str:
    """Write a time so that two can be compared: exact to the second if it is short."""
    if seconds >= 1000:
        return span(seconds)
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"


STATE = "state"
ALPHA = 0.002
"""Chance that steady arms are called drifting. Simulated (`checks.simulate`: 7 kinds of noise, 1 to 5
replicates of 3 to 10 blocks, 20,000 runs each): at most 0.21 % of A/A comparisons, 0.08 % in the mean, so 1 %
or less of runs with 5 headlines. A drift of 3 % a block of one arm is seen in 90 % of runs of 3 x 5 blocks
with mild noise, in 58 % with strong noise, and in 97 % of 1 x 10; one replicate of 4 blocks shows almost none
(2 %)."""
LEAST_BLOCKS = 3
_REMEDY = (
    "write the working set over again, or wait, until both arms hold from block to block, and measure again"
)
_ASK = "measure on disks that were written over at random after their fill (the default of a run)"
_MORE = f"measure {LEAST_BLOCKS} blocks or more"


@dataclass(frozen=True)
class Conditioning:
    """What was done to an arm's disks before they were measured, as far as the run recorded it.

    - `filled`, `overwritten`: whether its working set was filled in order, and then written over at random,
      in all replicates.
    - `reason`: why the design leaves the random pass out; empty where it does not.
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
    slopes: tuple[intervals.Interval, intervals.Interval, intervals.Interval],
    n_blocks: int,
    margin: float,
    provenance: str = "",
) -> Gate:
    """The ratio must hold from block to block: no drift of one arm alone that passes the margin over the run.

    A drift decides whether or not it is known how the disks were filled.

    - `arms`: names of arm and base arm.
    - `conditioning`: by arm; what is missing is unknown.
    - `slopes`: of the logs of arm and base arm, and of their ratio, a block (`drift.slopes`).
    - `n_blocks`: numbers of blocks from the first to the last that both arms have, both counted.
    - `margin`: relative difference that matters.
    - `provenance`: of the trials: other work on a computer that emulates moves arms too, so there the gate
      only warns.
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


def drifts(slope: intervals.Interval, n_blocks: int, margin: float) -> np.ndarray:
    """Tell which ratios change over a run by more than the margin, beyond what noise does."""
    changed = np.abs(slope.mean) * max(n_blocks - 1, 0)
    drifting: np.ndarray = (intervals.p_difference(slope) < ALPHA) & (changed > np.log1p(margin))
    return drifting


def _words(arms: Sequence[str], how: Sequence[Conditioning]) -> str:
    if how[0].words == how[1].words:
        return f"the working set of each arm {how[0].words}"
    return "; ".join(f"{name} {item.words}" for name, item in zip(arms, how, strict=True))


def _slopes(arms: Sequence[str], slopes: Sequence[intervals.Interval]) -> str:
    """Slopes as changes a block, with their intervals."""
    parts = []
    for name, slope in zip((*arms, "their ratio"), slopes, strict=True):
        with np.errstate(over="ignore"):
            changes = [float(np.expm1(value)) for value in slope[:3]]
        mean, low, high = (percent(value, "+.3g") for value in changes)
        parts.append(f"{name} {mean} ({low} to {high})" if np.isfinite(changes).all() else f"{name} unknown")
    return f"change a block: {', '.join(parts)}"
