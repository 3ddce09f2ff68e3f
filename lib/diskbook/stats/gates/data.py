"""Gates on trials: are there enough, did the tool keep its load, did the rate hold, are runs far out?

One gate refuses numbers that cannot be true together, or that do not match the request.

Of closed loops `data.little_gate` judges the I/Os in flight, and more strictly; here are those of rates and
pauses, and everything else that `stats.plausibility` looks at.

The gate on memory asks whether the log ratio of one block predicts that of the next.
An interval over blocks takes them as independent. Where they are not it holds the ratio of the hours
measured and misses the lasting one.
"""

import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from diskbook.design import rate_windows
from diskbook.design.totals import ONE_BY_ONE
from diskbook.design.vocabulary import Provenance, Verdict
from diskbook.facts.units import percent
from diskbook.stats import intervals, outliers, plausibility, ratios, stationarity
from diskbook.stats.gates import Cell, Gate, failed, farthest, not_assessable, passed, worst_words
from diskbook.stats.outliers import MIN_BLOCKS, MIN_REPLICATES, OUTLIER_SD, OutlierCounts
from diskbook.stats.plausibility import Doubt, Kind
from diskbook.stats.ratios import Estimate

MEMORY_ALPHA = 0.01
"""Chance that blocks without a memory seem to have one, in one comparison (one-sided)."""
LEAST_FREE = 6
"""Blocks, two fewer for each replicate, below which nothing could be seen: 8 of one replicate, 4 of three."""


class Memory(NamedTuple):
    """Correlation of neighbouring blocks, pooled over replicates, and how it stands to chance.

    - `correlation`, `score`: Young's C, and its distance from 0 in standard deviations; NaN where nothing
      could be seen.
    - `n_blocks`: blocks that it rests on.
    """

    correlation: float
    score: float
    n_blocks: int

    @property
    def is_assessable(self) -> bool:
        """Whether there are blocks enough to see anything."""
        return not math.isnan(self.score)

    @property
    def is_seen(self) -> bool:
        """Whether neighbours are more alike than chance has them."""
        return self.score > float(special.ndtri(1 - MEMORY_ALPHA))


def memory_of_blocks(log_ratios: np.ndarray) -> Memory:
    """Test whether neighbouring blocks resemble each other.

    C = 1 - sum of squared steps / (2 x sum of squares about the replicate's mean) is 0 on average and has the
    variance (n - 2) / (n^2 - 1) over n independent blocks (L. C. Young, On randomness in ordered sequences,
    Annals of Mathematical Statistics 12, 1941); it is close to the correlation of neighbours. Replicates are
    weighted by their blocks. 20,000 simulated runs, normal and Student t with 3 degrees of freedom: false
    alarms in 0.4 to 1.0 % of comparisons, of which a run has dozens. Power at a correlation of neighbouring
    blocks of 0.5 and 0.8, in %:

    ======================  =====  ======  ======  =====  =====  ======  ======
    replicates x blocks     1 x 8  1 x 10  1 x 20  3 x 4  3 x 5  3 x 10  5 x 10
    ======================  =====  ======  ======  =====  =====  ======  ======
    0.5                     5      10      36      4      7      37      59
    0.8                     17     31      80      8      18     78      94
    ======================  =====  ======  ======  =====  =====  ======  ======

    So a quick run sees nothing of it, and one without a warning may well have a memory.

    - `log_ratios`: shape [replicate, block], in order of time, NaN where there is none.
    """
    rows = [row[np.isfinite(row)] for row in log_ratios]
    rows = [row for row in rows if len(row) > 2 and np.ptp(row) > 0]
    sizes = np.array([len(row) for row in rows], dtype=float)
    if (sizes - 2).sum() < LEAST_FREE:
        return Memory(math.nan, math.nan, int(sizes.sum()))
    each = np.array([_young(row) for row in rows])
    total, variance = float(sizes @ each), float((sizes**2 * (sizes - 2) / (sizes**2 - 1)).sum())
    return Memory(total / float(sizes.sum()), total / math.sqrt(variance), int(sizes.sum()))


def _young(values: np.ndarray) -> float:
    centred = values - values.mean()
    return float(1 - (np.diff(values) ** 2).sum() / (2 * (centred**2).sum()))


DATA = "data"
LITTLE, RATE, STATIONARITY, LOSSES = "Little's law", "offered rate", "stationarity", "failed trials"
NOISE, LOSSES_BY_ARM, MEMORY = "one-sided noise", "losses by arm", "memory"
FILL = "fill the gaps: resume the run, or import what is missing as well"
MAX_LOST = 0.25
LOW_WINDOWS = 0.01
"""Share of windows with too few I/Os, beyond which lower bounds say nothing about the 99th percentile."""


def data_gate(arm: str, base_arm: str, workload: str, counts: Sequence[int], runs: str = "") -> Gate:
    """Both arms must have finished trials, of one run (`runs`: `totals.several_runs`)."""
    if runs:
        return failed(DATA, runs, ONE_BY_ONE)
    missing = [name for name, count in zip((arm, base_arm), counts, strict=True) if not count]
    if not missing:
        return passed(DATA, f"both arms have finished trials of {workload}")
    cause = f"no finished trial of {' and '.join(missing)} with {workload}"
    return failed(DATA, cause, FILL)


def little_gate(cells: Sequence[Cell]) -> Gate:
    """Little's law, closed loop: the I/Os in flight must be the outstanding ones."""
    bad, unknown = _sum(cells, "n_little_bad"), sum(int(cell.get("n_little_unknown", 0)) for cell in cells)
    paced = sum(int(cell.get("n_paced", 0)) for cell in cells)
    of = _sum(cells, "n_trials") - _sum(cells, "n_rated") - paced
    if not of:
        held = "held back by the tool itself" if paced else "rate-limited"
        return passed(LITTLE, f"every trial was {held}, none a closed loop")
    error = farthest(cell["little_worst"] for cell in cells)
    worst = worst_words(error, 1)
    if not bad and unknown:
        cause = f"no latency was measured in {unknown} of {of} trials: the queue may not have been full"
        return not_assessable(LITTLE, cause, "measure latencies as well (DiskSpd: -L)")
    if not bad:
        return passed(LITTLE, f"IOPS x latency is the number outstanding in all {of} trials ({worst})")
    cause = f"IOPS x latency is not the number outstanding in {bad} of {of} trials ({worst})"
    remedy = "the tool did not keep its queue full; give the machine more CPU or lower the load, and repeat"
    far = 1 + error < plausibility.FEW_IN_FLIGHT or 1 + error > plausibility.MANY_IN_FLIGHT
    return failed(LITTLE, cause, plausibility.Kind.IN_FLIGHT.remedy if far else remedy)


def rate_gate(cells: Sequence[Cell], provenance: str = "") -> Gate:
    """A rate-limited trial must reach its rate within 0.5 %, with fewer in flight than it may have.

    And in every 0.1 s, since a mean hides a stall that the tool made up for: fio keeps its rate within 0.1 %
    over 30 s with a stall of 1 s in them. A window in which less than 90 % of what was due was sent
    (`design.held_rate.rate_windows`) is no failure of the measurement where latencies count from the intended
    start: then the wait is in them, whoever caused it, and the gate tells of it. Where they are lower bounds
    it fails; of more than 1 % of the windows it makes the number invalid, since then the 99th
    percentile is among what was left out. On the emulator it only warns, as the computer it shares may cause
    it. What nobody recorded by window is not assessable.
    """
    bad, of = _sum(cells, "n_rate_bad"), _sum(cells, "n_rated")
    if not of:
        return passed(RATE, "no rate was offered: closed loops")
    worst = farthest(cell["rate_worst"] for cell in cells)
    if not bad:
        kept = f"the offered rate was kept in all {of} trials ({worst_words(worst, 2)})"
        return _windows_gate(cells, kept, of, Provenance.EMULATED in provenance)
    cause = (
        f"the offered rate was not kept within 0.5 % with depth to spare in {bad} of {of} trials "
        f"({worst_words(worst, 1)})"
    )
    return failed(RATE, cause, "offer a lower rate or more depth; fio rounds intervals to whole microseconds")


def _windows_gate(cells: Sequence[Cell], kept: str, of: int, is_emulated: bool) -> Gate:
    """Judge the rate by windows, once it was kept on the mean."""
    low, unknown, lower = (
        sum(int(cell.get(f"n_{name}", 0)) for cell in cells)
        for name in ("windows_low", "windows_unknown", "lower")
    )
    share = max((float(cell.get("windows_low_share", math.nan)) for cell in cells), key=_known, default=0.0)
    worst = min(
        (float(cell.get("window_worst", math.nan)) for cell in cells), key=lambda part: _known(part, 1.0)
    )
    remedy = "measure with this version's fio jobs, whose latencies count from the intended start"
    each = f"every {rate_windows.WINDOW_S:g} s" + " or longer interval" * bool(lower)
    if not low and unknown:
        cause = f"{kept} on the mean; of {unknown} trials nobody recorded whether in {each}"
        return not_assessable(RATE, cause, remedy)
    if not low:
        return passed(RATE, f"{kept}, and in {each} at least {percent(rate_windows.LOW)} of it")
    least = percent(rate_windows.LOW)
    cause = (
        f"{kept} on the mean, and not in {each} in {low}: {percent(worst, '.0f')} of what was "
        f"due was sent in the worst, less than {least} in up to {percent(share, '.1f')} of all"
    )
    if not lower:
        return passed(
            RATE, f"{cause}; latencies count from the intended start, so that the waits are in them"
        )
    cause += "; latencies count from when an I/O was sent and are lower bounds"
    cause += ", and the computer that emulates may be the cause" * is_emulated
    is_invalid = share > LOW_WINDOWS and not is_emulated
    return failed(RATE, cause, remedy, Verdict.INVALID if is_invalid else None)


def _known(value: float, otherwise: float = 0.0) -> float:
    return otherwise if math.isnan(value) else value


def stationarity_gate(cells: Sequence[Cell]) -> Gate:
    """Rates must hold over a trial: none far out, no more moved than chance has it, nor all together.

    Noise explains that in at most 5 of 100 comparisons (`stats.stationarity`, `make coverage`).
    """
    moved, assessable = _sum(cells, "n_moved"), _sum(cells, "n_assessable")
    if not assessable:
        cause = "trials have fewer than 20 samples"
        return not_assessable(STATIONARITY, cause, "measure for 20 s or more a trial")
    worst = farthest(cell["change_worst"] for cell in cells)
    together = farthest(cell["change_together"] for cell in cells)
    cause = f"{moved} of {assessable} trials moved between their halves ({worst_words(worst, 0)})"
    if not math.isnan(together):
        cause += f"; all trials of an arm together by {percent(together, '+.0f')}"
    elif not _sum(cells, "n_far") and moved <= most_by_chance(assessable):
        return passed(STATIONARITY, cause)
    fell = next((str(cell["fell"]) for cell in cells if cell["fell"]), "")
    if not fell:
        return failed(STATIONARITY, cause, "look at the series for a warm-up; lengthen the ramp")
    cause += f"; the rate fell {fell}, as when a burst credit runs out"
    remedy = "report burst and base apart: measure with the credit spent, or shorter than it lasts"
    return failed(STATIONARITY, cause, remedy)


@functools.cache
def most_by_chance(n_trials: int) -> float:
    """Return how many trials chance alone moves at most, in 999 of 1,000 comparisons."""
    at_most = special.bdtr(np.arange(n_trials + 1), n_trials, stationarity.ALPHA)
    return float(np.searchsorted(at_most, 0.999))


def losses_gate(cells: Sequence[Cell], n_blocks: int, n_blocks_all: int) -> Gate:
    """Failed trials are said; if over a quarter of the blocks lack an arm, what is left is a selection."""
    n_failed, twice = _sum(cells, "n_failed"), _sum(cells, "n_repeated_rows")
    parts = []
    if n_failed:
        lost = _sum(cells, "n_lost")
        parts.append(f"{n_failed} trial{'s' * (n_failed != 1)} failed, {lost} without a later success")
    parts += [f"{twice} repeated rows were left out"] if twice else []
    if n_blocks < n_blocks_all:
        parts.append(f"{n_blocks} of {n_blocks_all} blocks have both arms")
    cause = "; ".join(parts) or "no trial failed"
    if n_blocks_all and n_blocks < (1 - MAX_LOST) * n_blocks_all:
        return failed(LOSSES, cause, FILL)
    return passed(LOSSES, cause)


def losses_by_arm_gate(
    arms: Sequence[str], cells: Sequence[Cell], shift: float, estimates: Sequence[Estimate], margin: float
) -> Gate:
    """Trials of one arm that were lost, or repeated until they came through, may have been its slow ones.

    Warns with the ratio that would be if they had been; decides where that would be another verdict.

    - `arms`, `cells`: names and checks of both arms.
    - `shift`: how far the log ratio may have been moved (`stats.outliers.shift`).
    - `estimates`: in both scopes.
    - `margin`: of equivalence.
    """
    counts = [int(cell["n_lost"]) + int(cell["n_repeated"]) for cell in cells]
    if not any(counts):
        return passed(LOSSES_BY_ARM, "no trial was lost or repeated")
    parts = [
        f"{count} of {int(cell['n_places'])} trials of {arm}"
        for arm, cell, count in zip(arms, cells, counts, strict=True)
    ]
    cause = f"{' and '.join(parts)} were lost, or failed and were repeated"
    known = [estimate for estimate in estimates if not estimate.reason]
    if not shift or not known:
        return passed(LOSSES_BY_ARM, f"{cause}, about as many of both" if not shift else cause)
    ratio = known[0].ratio
    bound = f"{ratio * math.exp(-shift):.3f} to {ratio * math.exp(shift):.3f}"
    cause += f"; had they been as far out as the farthest trial kept, the ratio would be {bound}"
    halves = [math.log(estimate.high / estimate.low) / 2 for estimate in known]
    if outliers.is_small(np.asarray(shift), *map(np.asarray, halves)):
        return passed(LOSSES_BY_ARM, cause)
    robust = all(_withstands(estimate, shift, math.log1p(margin)) for estimate in known)
    remedy = "find out why they failed, and measure both arms again"
    return failed(LOSSES_BY_ARM, cause, remedy, None if robust else Verdict.INCONCLUSIVE)


def _withstands(estimate: Estimate, shift: float, bound: float) -> bool:
    """Whether what an estimate supports is the same wherever the shift takes it."""
    interval = estimate.interval
    equivalent = intervals.p_equivalence(interval, bound) < ratios.ALPHA
    if equivalent or estimate.low <= 1 <= estimate.high:
        return bool(equivalent == (intervals.p_equivalence(interval, bound - shift) < ratios.ALPHA))
    return bool(estimate.low * math.exp(-shift) > 1 or estimate.high * math.exp(shift) < 1)


def values_gate(n_bad: int, metric: str) -> Gate:
    """A metric that is missing, zero, negative or infinite in a finished trial points at a broken reading."""
    if not n_bad:
        return passed("values", f"every {metric} is a positive number")
    cause = f"{metric} is not a positive number in {n_bad} finished trial{'s' * (n_bad != 1)}"
    return failed("values", cause, "look at the raw output of those trials")


def noise_gate(arms: Sequence[str], outliers: OutlierCounts, measured: np.ndarray) -> Gate:
    """Runs far out in one arm only: the interval then covers less often than it says.

    A rule of thumb, so it warns and decides nothing; and blind to noise that did not happen to occur.

    - `arms`, `outliers`: names, and runs far out of both arms.
    - `measured`: which blocks have both arms, [replicate, block].
    """
    counts = int(outliers.arm), int(outliers.base)
    if not any(counts):
        return passed(NOISE, f"no run beyond {OUTLIER_SD:.0f} robust s.d. in either arm")
    if all(counts):
        return passed(NOISE, f"{counts[0]} and {counts[1]} runs far out: both arms have them")
    arm, count = (arms[0], counts[0]) if counts[0] else (arms[1], counts[1])
    runs = f"{count} run{'s' * (count != 1)} of {arm} beyond {OUTLIER_SD:.0f} robust s.d."
    runs += ", none of the other arm"
    blocks = measured.sum(axis=-1)
    if len(blocks) and (blocks >= MIN_BLOCKS).sum() >= MIN_REPLICATES:
        return passed(NOISE, f"{runs}; enough replicates and blocks to bear it")
    cause = f"{runs}, so the interval may hold the truth less often than it says (a rule of thumb)"
    return failed(NOISE, cause, f"measure {MIN_REPLICATES} replicates x {MIN_BLOCKS} blocks or more", None)


def memory_gate(log_ratios: np.ndarray) -> Gate:
    """Neighbouring blocks that resemble each other make the interval over blocks one of these hours only.

    Warns, since the lasting ratio may lie outside. No interval is corrected for that. How often it happens is
    in docs/explanation/coverage.md. How often this warns of nothing (1 %), and how seldom few blocks show a
    memory, is in `stats.gates.data`.

    - `log_ratios`: of the comparison, [replicate, block].
    """
    seen = memory_of_blocks(log_ratios)
    remedy = "spread the blocks over hours ([design] spread), or measure more replicates"
    if not seen.is_assessable:
        cause = "too few blocks to see whether the ratio wanders over hours, as 20 of a replicate mostly show"
        return not_assessable(MEMORY, cause, remedy)
    words = f"blocks that follow each other correlate by {seen.correlation:+.2f} ({seen.n_blocks} blocks)"
    if not seen.is_seen:
        return passed(MEMORY, f"{words}, as independent ones may")
    cause = f"{words}, so the ratio wanders: the interval is for these hours, and may miss the lasting ratio"
    return failed(MEMORY, cause, remedy, None)


def _sum(cells: Sequence[Cell], name: str) -> int:
    return sum(int(cell[name]) for cell in cells)


PLAUSIBLE = "plausibility"


def plausible_gate(arms: Sequence[str], by_arm: Sequence[Sequence[Doubt]], metric: str) -> Gate:
    """Every trial of both cells must have numbers that agree with each other and with what was asked for.

    A p50 that no mean allows spoils a comparison of percentiles; the mean is checked against Little's law.

    - `arms`, `by_arm`: names, and doubts (`plausibility.doubts`) of both cells.
    - `metric`: what is compared.
    """
    doubts = [doubt for of_arm in by_arm for doubt in of_arm]
    if not doubts:
        return passed(PLAUSIBLE, "the numbers of every trial agree with each other and with what was asked")
    parts = [_words(arm, of_arm) for arm, of_arm in zip(arms, by_arm, strict=True) if of_arm]
    kinds = [kind for kind in Kind if any(doubt.kind is kind for doubt in doubts)]
    remedy = "; ".join(kind.remedy for kind in kinds)
    grave = any(doubt.grave for doubt in doubts) or (Kind.MEDIAN in kinds and metric.startswith("lat_p"))
    return failed(PLAUSIBLE, " and ".join(parts), remedy, Verdict.INVALID if grave else None)


def _words(arm: str, doubts: Sequence[Doubt]) -> str:
    """The first doubt of each kind, with the number of trials."""
    counts = Counter(doubt.kind for doubt in doubts)
    first = {doubt.kind: doubt for doubt in reversed(doubts)}
    parts = [f"{first[kind].words} ({n} trial{'s' * (n != 1)})" for kind, n in counts.items()]
    return f"{arm}: {', '.join(parts)}"
