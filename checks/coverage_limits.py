"""Limits that no table names, at 1.02 to 4 times below what the disks would reach, put through the analysis.

A limit is on both arms, on one, on the machine of one of three replicates, or below the rate of a single I/O,
which is compared then, with a probe of two I/Os in flight or without; or there is none, and both arms slow
with depth alike, or one by 5 % more, which is the price of looking. True ratios are 0.9, 1, 1.08 and 1.41.

At most 2 % of the comparisons of a cell may get a false verdict. Where a limit of 1.1 times or more moves the
ratio by more than 2.5 %, at most 2 % may get a verdict at all. No difference in ms is printed of deep cells.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checks import coverage_rule
from checks.hidden_limits import (
    HIGH_IOPS,
    HIGH_MB_S,
    Load,
    Outcome,
    Pair,
    compared,
    replicate_trials,
)
from diskbook.design.vocabulary import Verdict

TIMES = (1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 4.0)
"""What an arm would reach, the faster one where both are limited, as a multiple of the limit."""
RATIOS = (0.9, 1.0, 1.08, 1.41)
BLOCKS = (2, 4, 10)
NOISES = (0.003, 0.006, 0.01)
"""Standard deviations of log latencies from trial to trial; each pair has one."""
MARGIN = 0.05
MOST_FALSE, MOST_DECIDED, MOST_REFUSED = 0.02, 0.02, 0.03
MOVED, DUE = 0.025, 1.1
"""Change of a ratio by a limit, and multiple of it, from which on a latency gets no verdict."""
UNLIKE = 1.05
"""How much more one arm slows with depth than the other where they slow unlike."""
REPLICATES = 3
ALIKE = "none, slow alike"
TITLE = (
    "hidden limits: shares of comparisons with a false verdict, with any, refused, with a difference in ms; "
    "and with a verdict (`decided`) of those that the limit moves by more than 2.5 %"
)


class Cell(NamedTuple):
    """Where a limit is, what arms would reach as a multiple of it (NaN without one), and how many blocks."""

    place: str
    times: float
    blocks: int

    @property
    def name(self) -> str:
        """Where the limit is, and how far below."""
        return self.place if math.isnan(self.times) else f"{self.place}, {self.times:g} times below"

    @property
    def size(self) -> str:
        """How many blocks are measured."""
        return f"{self.blocks} blocks"

    @property
    def kind(self) -> str:
        """Load that is compared."""
        return "qd1" if self.place.startswith("single") else "deep"

    @property
    def unlike(self) -> float:
        """How much more the arm slows with depth than the base arm."""
        return UNLIKE if self.place.endswith("unlike") else 1.0


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """Shares of the comparisons of a cell.

    - `false`, `verdict`, `refused`, `latency`: with a verdict that does not hold, with one, without a ratio,
      with a difference in ms.
    - `n_moved`, `decided`: how many of them a limit moves by more than 2.5 %, and which share of these got a
      verdict.
    """

    false: float
    verdict: float
    refused: float
    latency: float
    n_moved: int
    decided: float

    @property
    def is_off(self) -> bool:
        """Whether more verdicts are false, or more ratios refused, than may be."""
        place, times, _ = self.cell
        off = coverage_rule.is_more(self.false, MOST_FALSE, self.n_runs)
        if times >= DUE and self.n_moved:
            off |= coverage_rule.is_more(self.decided, MOST_DECIDED, self.n_moved)
        if place.startswith(ALIKE):
            off |= coverage_rule.is_more(self.refused, MOST_REFUSED, self.n_runs)
        return bool(off or (self.cell.kind == "deep" and self.latency > 0))


def cells(*, quick: bool = False) -> Iterator[Cell]:
    deep = [(place, times) for place in ("both arms", "one arm", "one machine") for times in TIMES]
    single = [
        (f"single I/Os, {place}, {probe}", times)
        for place in ("both arms", "one arm")
        for probe in ("probed", "no probe")
        for times in (1.1, 1.5)
    ]
    slow = (ALIKE, f"{ALIKE}, noise of 3 %", "none, slow unlike")
    alone = ("single I/Os, none, probed", "single I/Os, none, no probe")
    free = [(place, math.nan) for place in (*slow, *alone)]
    for place, times in (*deep[::4], *single[::2], free[0]) if quick else (*deep, *single, *free):
        for blocks in BLOCKS:
            yield Cell(place, times, blocks)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Plant a cell in pairs of arms of all ratios, and judge them by the analysis."""
    rng = np.random.default_rng([seed, *repr(cell).encode()])
    ratios = np.resize(RATIOS, n_runs).tolist()
    # Pairs of unlike block sizes have nothing in common.
    pairs = [draw(cell, ratio, rng, 512 * number) for number, ratio in enumerate(ratios, 1)]
    trials = [
        trial
        for number, of_replicates in enumerate(pairs)
        for replicate, pair in enumerate(of_replicates, 1)
        for trial in replicate_trials(pair, rng, (number, replicate), cell.blocks, _loads(cell))
    ]
    outcomes = compared([of_replicates[0] for of_replicates in pairs], trials, cell.kind)
    truths = np.array(ratios) * cell.unlike
    kinds = [Verdict.of(outcome.verdict) for outcome in outcomes]
    verdict = np.isin(kinds, [Verdict.DIFFERENCE, Verdict.EQUIVALENT])
    moved = np.array([abs(moved_by(cell, of_replicates)) > MOVED for of_replicates in pairs])
    return [
        Row(
            cell,
            "verdict on a latency",
            n_runs,
            float(np.mean(list(map(is_false, outcomes, kinds, truths)))),
            float(verdict.mean()),
            float(np.mean([math.isnan(outcome.ratio) for outcome in outcomes])),
            float(np.mean([not math.isnan(outcome.diff_ms) for outcome in outcomes])),
            int(moved.sum()),
            float(verdict[moved].mean()) if moved.any() else math.nan,
        )
    ]


def _loads(cell: Cell) -> tuple[str, ...]:
    """Loads that are measured: single I/Os, and a deep load, a probe or nothing."""
    return ("qd1", *(["deep"] if cell.kind == "deep" else ["qd2"] * cell.place.endswith("probed")))


def draw(cell: Cell, ratio: float, rng: np.random.Generator, block_size: int) -> list[Pair]:
    """Draw one pair, as each of its replicates has it."""
    single_ms, depth = float(rng.uniform(0.5, 3.0)), int(rng.choice([8, 16, 32]))
    sd = 0.03 if cell.place.endswith("3 %") else float(rng.choice(NOISES))
    base = Load(
        single_ms, depth, block_size, float(rng.uniform(1.0, 1.3)), sd=sd, named=(HIGH_IOPS, HIGH_MB_S)
    )
    arm = base._replace(single_ms=single_ms * ratio, grows=cell.unlike * base.grows)
    if math.isnan(cell.times):
        return [(base, arm)]
    held = _held(cell, (base, arm), int(rng.integers(2)))
    return [held, *[(base, arm)] * (REPLICATES - 1)] if cell.place == "one machine" else [held]


def _held(cell: Cell, free: Pair, chosen: int) -> Pair:
    """Both arms of a pair, or the chosen one, behind the limit of a cell."""
    rates = [_rate(cell, load) for load in free]
    limits = [max(rates) / cell.times] * 2
    if "one arm" in cell.place:
        limits = [rate / cell.times if place == chosen else math.inf for place, rate in enumerate(rates)]
    return free[0]._replace(limit=limits[0]), free[1]._replace(limit=limits[1])


def _rate(cell: Cell, load: Load) -> float:
    """Rate that a load would reach without a limit."""
    return 1000 / load.single_ms * (load.depth / load.grows if cell.kind == "deep" else 1.0)


def moved_by(cell: Cell, pairs: Sequence[Pair]) -> float:
    """How far limits move the log ratio of latencies, over all replicates."""
    delays = [
        [
            max(0.0, math.log(_rate(cell, load) / load.limit)) if load.limit < math.inf else 0.0
            for load in pair
        ]
        for pair in pairs
    ]
    return float(np.mean([arm - base for base, arm in delays]))


def is_false(outcome: Outcome, kind: Verdict, truth: float) -> bool:
    """Whether a verdict does not hold for disks whose ratio is the truth."""
    if kind is Verdict.EQUIVALENT:
        return abs(math.log(truth)) > math.log1p(MARGIN)
    return kind is Verdict.DIFFERENCE and (outcome.ratio - 1) * (truth - 1) <= 0
