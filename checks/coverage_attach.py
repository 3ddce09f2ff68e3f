"""What is said of disks that are slow after an attach: a part of `make coverage`.

Arms are slow for some seconds after each attach, alike or one alone. Their trials come after settling, and of
every third visit one comes right after the attach, as a run plans it. Counted are verdicts that are false of
settled disks, and verdicts without a word although the ratio right after an attach is another one.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from checks import coverage_rule
from diskbook.design.vocabulary import Verdict
from diskbook.stats import ratios
from diskbook.stats.gates import attachment
from diskbook.stats.gates.attachment import OPEN, attachment_gate

MARGIN, RATIO = 0.05, 0.94
LOADS = 3
"""Compared loads, which have the trial right after an attach in turn."""
TRIAL_S, SETTLE_S = 60.0, 120.0
MOST_FALSE, MOST_SILENT, MOST_REFUSED = 0.02, 0.05, 0.02
"""Shares of runs that may have a false verdict, lack a word, or be refused without an attach effect."""
DESIGNS = ((3, 5), (5, 10))
NOISE = (0.005, 0.01, 0.03)
UNSETTLED = "one arm, without settling"
LASTS = "one arm, and it outlasts the visit"
KNOWN_LIMIT = "all trials of a visit are slow alike, and none shows it: let disks settle longer"
TITLE = (
    "slow after an attach, shares of runs: false of settled disks, silent although the ratio changes, "
    f"'depends', not excluded or not checked (?: known limit: {KNOWN_LIMIT})"
)


class Planted(NamedTuple):
    """How many times as slow arm and base arm are after an attach, for how long, and the time to settle."""

    name: str
    arm: float
    base: float
    slow_s: float
    settle_s: float = SETTLE_S


PLANTED = (
    Planted("no attach effect", 1.0, 1.0, 0.0),
    Planted("both arms alike", 1.5, 1.5, 60.0),
    Planted("one arm, by 6 %", 1.06, 1.0, 60.0),
    Planted("arms unlike, by 4 % each", 1.04, 0.96, 60.0),
    Planted("one arm, 20 s", 1.5, 1.0, 20.0),
    Planted("one arm, 60 s", 1.5, 1.0, 60.0),
    Planted("base arm, 60 s", 1.0, 1.5, 60.0),
    Planted(UNSETTLED, 1.5, 1.0, 20.0, 0.0),
    Planted(LASTS, 1.5, 1.0, 3600.0),
)


class Cell(NamedTuple):
    """What is planted, replicates and blocks, and the noise of a trial (in logs)."""

    planted: Planted
    replicates: int
    blocks: int
    noise: float

    @property
    def name(self) -> str:
        """What is planted, in which noise."""
        return f"{self.planted.name}, noise of {self.noise:.1%}"

    @property
    def size(self) -> str:
        """Replicates and blocks."""
        return f"{self.replicates} x {self.blocks}"


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """Shares of runs.

    `false` have a verdict that is false of settled disks, and no word of the attach; `silent` have one
    although early and late ratio differ by more than the margin, and no word either. `depends` say that the
    ratio depends on the time since the attach, `open` that the effect is not excluded or not checked.
    """

    false: float
    silent: float
    depends: float
    open: float
    limit = KNOWN_LIMIT

    @property
    def is_known_limit(self) -> bool:
        """Whether the effect lasts too long for any trial to show it."""
        return self.cell.planted.name == LASTS

    @property
    def is_off(self) -> bool:
        """Whether too many verdicts are false, or are refused where there is no effect."""
        is_alike = self.cell.planted.arm == self.cell.planted.base
        bars = [(self.silent, MOST_SILENT), (self.depends if is_alike else 0.0, MOST_REFUSED)]
        bars += [(self.false, MOST_FALSE)] * (not self.is_known_limit)
        return any(coverage_rule.is_more(share, bar, self.n_runs) for share, bar in bars)


def cells(*, quick: bool = False) -> Iterator[Cell]:
    for planted, noise, design in product(PLANTED, NOISE, DESIGNS[: 1 if quick else None]):
        yield Cell(planted, *design, noise)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate runs of one cell; "these disks"."""
    planted = cell.planted
    rng = np.random.default_rng([seed, PLANTED.index(planted), cell.blocks, round(1e4 * cell.noise)])
    shape = (n_runs, 2, cell.replicates, cell.blocks)
    late = rng.normal(_level(planted, planted.settle_s)[:, None, None], cell.noise, shape)
    early = rng.normal(_level(planted, 0.0)[:, None, None], cell.noise, shape)
    moved = _level(planted, 0.0) - _level(planted, planted.settle_s)
    changes = abs(moved[0] - moved[1]) > math.log1p(MARGIN)
    answers = [_said(cell, *run) for run in zip(early, late, _estimates(late), strict=True)]
    verdict, words = (np.array(part) for part in zip(*answers, strict=True))
    is_judged = np.isin(verdict, [Verdict.DIFFERENCE, Verdict.EQUIVALENT])
    false, silent = is_judged & (words == "") & _is_false(late, verdict), is_judged & (words == "") & changes
    depends = verdict == Verdict.SINCE_ATTACH
    return [
        Row(
            cell,
            "verdict on settled disks",
            n_runs,
            *(float(np.mean(part)) for part in (false, silent, depends, words == OPEN)),
        )
    ]


def _level(planted: Planted, since_s: float) -> np.ndarray:
    """Logs of the mean latency of a trial that begins so long after an attach, of arm and base arm."""
    share = min(max(planted.slow_s - since_s, 0.0), TRIAL_S) / TRIAL_S
    slow = 1 + (np.array([planted.arm, planted.base]) - 1) * share
    return np.asarray(np.log(np.array([RATIO, 1.0]) * slow))


def _estimates(late: np.ndarray) -> list[ratios.Estimate]:
    return [scopes[1] for scopes in ratios.estimates_of_many(late[:, 0] - late[:, 1])]


def _said(cell: Cell, early: np.ndarray, late: np.ndarray, estimate: ratios.Estimate) -> tuple[str, str]:
    """Verdict of one run, and what its row says of the attach."""
    in_turn = np.arange(cell.replicates * cell.blocks) % LOADS == 0
    logs = [values.reshape(2, -1)[:, in_turn] for values in (early, late)]
    settle_s = cell.planted.settle_s
    of_cell = {"since_attach_s": settle_s, "since_attach_least_s": settle_s, "attaches": 1.0}
    effect = attachment.of_logs(*logs) if settle_s else None
    gate = attachment_gate(("arm", "base"), (of_cell, of_cell), effect, MARGIN)
    if gate.decides:
        return gate.decides, str(gate.decides)
    p_values = estimate.p_difference, estimate.p_equivalence(MARGIN)
    verdict = ratios.decide(estimate, *p_values, MARGIN, "headline")
    return verdict, OPEN if gate.cause.startswith(OPEN) else ""


def _is_false(late: np.ndarray, verdict: np.ndarray) -> np.ndarray:
    """Verdicts that are false of settled disks: an equality, or a difference to the other side."""
    is_higher = (late[:, 0] - late[:, 1]).mean(axis=(1, 2)) > 0
    wrong_side = (verdict == Verdict.DIFFERENCE) & (is_higher != (RATIO > 1))
    return np.asarray(
        wrong_side | ((verdict == Verdict.EQUIVALENT) & (abs(math.log(RATIO)) > math.log1p(MARGIN)))
    )
