"""Limits between 1 and 4 times of what a disk would reach, planted and put through the analysis.

Each row plants one limit of that size: on both arms, on one, on the machine of one of three replicates, or
below the rate of a single I/O, where a probe of two I/Os in flight stands for the deep load; or none, in arms
that slow with depth alike, or unlike by 5 %. Over designs of 2, 4 and 10 blocks and true ratios of 0.9, 1,
1.08 and 1.41, at most 2 % of its comparisons may get a false verdict, and at most 2 % of those that the limit
moves by more than 2.5 % any verdict on a latency (from 1.1 times on). None may print a latency of a limit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from diskbook.selftest.hidden_limits import Cell, Outcome, Pair, compared, replicate_trials
from diskbook.tables.vocabulary import Verdict

TIMES = (1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 4.0)
"""What the faster of the limited arms would reach, as a multiple of the limit."""
RATIOS = (0.9, 1.0, 1.08, 1.41)
BLOCKS = (2, 4, 10)
NOISES = (0.003, 0.006, 0.01)
"""Standard deviations of log latencies from trial to trial; each pair has one."""
MARGIN = 0.05
MOST_FALSE, MOST_DECIDED, MOST_REFUSED = 0.02, 0.02, 0.03
MOVED = 0.025
"""Change of the ratio by a limit from which on a latency gets no verdict at all."""
UNLIKE = 1.05
"""How much more one arm slows with depth than the other, in the row that shows the price."""
REPLICATES = 3
WIDE = 1e6, 1e4
"""Limits that tables name, far above all that is played."""


class Row(NamedTuple):
    """One kind of limit: where it is, and how far below what the disks would reach (NaN without one)."""

    place: str
    times: float = math.nan

    @property
    def is_single(self) -> bool:
        """Whether the limit is below the rate of a single I/O, which is what is compared then."""
        return self.place.startswith("single")


def rows() -> list[Row]:
    """Every row of the table."""
    limited = [Row(place, times) for place in ("both arms", "one arm", "one machine") for times in TIMES]
    below = [
        Row(f"single I/Os, {place}, {how}", times)
        for place in ("both arms", "one arm")
        for how in ("probed", "not probed")
        for times in (1.1, 1.5)
    ]
    return [*limited, *below, Row("none, slow alike"), Row("none, noise of 3 %"), Row("none, slow unlike")]


def draw(row: Row, ratio: float, rng: np.random.Generator, block_size: int = 4096) -> list[Pair]:
    """Draw one pair, as each of its replicates has it; pairs of unlike block sizes have nothing in common."""
    single_ms, depth = float(rng.uniform(0.5, 3.0)), int(rng.choice([8, 16, 32]))
    sd = 0.03 if row.place.endswith("3 %") else float(rng.choice(NOISES))
    base = Cell(single_ms, depth, block_size, float(rng.uniform(1.0, 1.3)), sd=sd, named=WIDE)
    arm = base._replace(single_ms=single_ms * ratio)
    if row.place == "none, slow unlike":
        arm = arm._replace(grows=UNLIKE * base.grows, single_ms=arm.single_ms)
    free: Pair = (base, arm)
    if math.isnan(row.times):
        return [free]
    held = _held(row, free, bool(rng.random() < 0.5))
    return [held, *[free] * (REPLICATES - 1)] if row.place == "one machine" else [held]


def _held(row: Row, free: Pair, first: bool) -> Pair:
    """Both arms of a pair, or the first or second of them, behind the limit of a row."""
    rates = [1000 * (1 if row.is_single else cell.depth / cell.grows) / cell.single_ms for cell in free]
    if "one arm" not in row.place:
        limit = max(rates) / row.times
        return free[0]._replace(limit=limit), free[1]._replace(limit=limit)
    base, arm = (cell._replace(limit=rate / row.times) for cell, rate in zip(free, rates, strict=True))
    return (base, free[1]) if first else (free[0], arm)


def moved_by(row: Row, pairs: Sequence[Pair]) -> float:
    """How far limits move the log ratio of latencies, over all replicates."""
    return float(np.mean([_delay(row, arm) - _delay(row, base) for base, arm in pairs]))


def _delay(row: Row, cell: Cell) -> float:
    """Log of how much longer a limit makes an I/O take."""
    in_flight, grows = (1, 1.0) if row.is_single else (cell.depth, cell.grows)
    return math.log(max(1.0, 1000 * in_flight / (grows * cell.single_ms) / cell.limit))


class Judged(NamedTuple):
    """What the analysis said of one planted comparison.

    Attributes
    ----------
    ratio, blocks
        Truth, and blocks of a replicate.
    moved
        By how much limits move the log ratio.
    outcome
        Of the comparison.
    """

    ratio: float
    blocks: int
    moved: float
    outcome: Outcome

    @property
    def is_decided(self) -> bool:
        """Whether it got a verdict on the latency."""
        return self.kind in (Verdict.DIFFERENCE, Verdict.EQUIVALENT)

    @property
    def is_false(self) -> bool:
        """Whether that verdict does not hold for the disks."""
        if self.kind is Verdict.EQUIVALENT:
            return abs(math.log(self.ratio)) > math.log1p(MARGIN)
        wrong_side = (self.outcome.ratio - 1) * (self.ratio - 1) <= 0
        return self.kind is Verdict.DIFFERENCE and wrong_side

    @property
    def kind(self) -> Verdict:
        """Kind of the verdict."""
        return Verdict.of(self.outcome.verdict)

    @property
    def is_refused(self) -> bool:
        """Whether the ratio of latencies is withheld."""
        return math.isnan(self.outcome.ratio)

    @property
    def prints_latency(self) -> bool:
        """Whether a difference of latencies is printed."""
        return not math.isnan(self.outcome.diff_ms)


def judge(row: Row, n_pairs: int, seed: int) -> list[Judged]:
    """Plant a row in all designs and ratios, so many pairs of each, and judge it by the analysis."""
    rng = np.random.default_rng([seed, *repr(row).encode()])
    judged = []
    designs = [design for design in itertools.product(BLOCKS, RATIOS) for _ in range(n_pairs)]
    pairs, table = [], []
    for number, (blocks, ratio) in enumerate(designs):
        of_replicates = draw(row, ratio, rng, block_size=512 * (number + 1))
        pairs.append(of_replicates)
        for replicate, pair in enumerate(of_replicates, 1):
            probed = row.is_single
            table += replicate_trials(pair, rng, (number, replicate), blocks, probed)
    if row.place.endswith("not probed"):
        table = [trial for trial in table if not str(trial["workload"]).startswith("qd2")]
    kind = "qd1" if row.is_single else "deep"
    outcomes = compared([of_pair[0] for of_pair in pairs], table, kind)
    for (blocks, ratio), of_pair, outcome in zip(designs, pairs, outcomes, strict=True):
        truth = ratio * (UNLIKE if row.place.endswith("unlike") else 1.0)
        judged.append(Judged(truth, blocks, moved_by(row, of_pair), outcome))
    return judged
