"""False alarms of the gate of stationarity, and falls that it sees: a part of `make coverage`.

Samples of trials are simulated with autocorrelated noise (AR(1) in logs), steady or with a planted fall, and
judged by the function that the analysis uses. A fall is to be seen where it is large against that noise.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from checks import coverage_rule
from checks.simulate import SECONDS, ar1
from diskbook.design.series import Samples
from diskbook.stats.gates.data import most_by_chance
from diskbook.stats.stationarity import rate_changed

HIGHEST_ALARMS, LEAST_SEEN = 0.05, 0.95
LONE = 4 / 3
"""How much larger a fall must be, in its noise, where an arm was measured once."""
MEAN_IOPS = 1000.0
TITLE = "stationarity, 60 samples: shares of comparisons called invalid, steady ones and those with each fall"


class Cell(NamedTuple):
    """Noise of the seconds of a trial, and trials of each arm."""

    cv: float
    phi: float
    trials: int

    @property
    def name(self) -> str:
        """What its noise is."""
        return f"CV of seconds {self.cv:.1%}, autocorrelation {self.phi:g}"

    @property
    def size(self) -> str:
        """How many trials it has."""
        return f"{self.trials} trials an arm"

    @property
    def noise(self) -> float:
        """Standard deviation of the difference between the halves of a steady trial, to first order."""
        return self.cv * math.sqrt(4 / SECONDS * (1 + self.phi) / (1 - self.phi))


class Fall(NamedTuple):
    """A fall that is planted.

    - `size`, `everywhere`: share of the rate that is lost, and whether in all trials of an arm; else in one.
    - `anywhere`: whether it lies anywhere in the middle four fifths of the trial; else in its middle.
    - `in_noise`: size, in `Cell.noise` of the trials that fall, from which on it is to be seen.
    """

    name: str
    size: float
    everywhere: bool
    anywhere: bool
    in_noise: float

    def is_due(self, cell: Cell) -> bool:
        """Whether the gate is to see it in this noise; a lone trial knows its own noise less well."""
        least = self.in_noise * (LONE if cell.trials == 1 else 1.0)
        return self.size >= least * cell.noise / math.sqrt(cell.trials if self.everywhere else 1)


FALLS = (
    Fall("10 % in one trial", 0.10, everywhere=False, anywhere=False, in_noise=6.5),
    Fall("10 % in all of an arm", 0.10, everywhere=True, anywhere=False, in_noise=6.5),
    Fall("credit, 17 %", 0.17, everywhere=False, anywhere=True, in_noise=12.0),
    Fall("credit, 36 %", 0.36, everywhere=False, anywhere=True, in_noise=12.0),
    Fall("credit, 75 %", 0.75, everywhere=False, anywhere=True, in_noise=12.0),
)
"""Credit that runs out as data/reference has it: Standard SSD, D8s_v5 and the like, small Premium SSD."""


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """Shares of comparisons that are called invalid: steady ones, and those with each fall that is due."""

    false: float
    seen: Mapping[str, float]

    @property
    def is_off(self) -> bool:
        """Whether alarms are too many or a fall that is due is seen too seldom, beyond simulation error."""
        due = [share for share in self.seen.values() if not math.isnan(share)]
        error = coverage_rule.error(HIGHEST_ALARMS, self.n_runs)
        return self.false > HIGHEST_ALARMS + error or min(due, default=1.0) < LEAST_SEEN - error


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """List the noise that is simulated: CV 0.3 to 10 %, phi 0 to 0.8."""
    if quick:
        yield from (Cell(0.03, 0.6, 4), Cell(0.10, 0.8, 8))
        return
    for cv, phi, trials in itertools.product((0.003, 0.03, 0.05, 0.10), (0.0, 0.6, 0.8), (1, 4, 20)):
        yield Cell(cv, phi, trials)


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate comparisons of two arms, steady and with each fall."""
    rng = np.random.default_rng([seed, round(1000 * cell.cv), round(10 * cell.phi), cell.trials])
    shape = (n_runs, 2, cell.trials, SECONDS)
    steady = MEAN_IOPS * np.exp(ar1(cell.cv, cell.phi, shape, rng))
    seen = {fall: _invalid(_with(fall, steady, rng)) for fall in FALLS}
    due = {fall.name: share if fall.is_due(cell) else math.nan for fall, share in seen.items()}
    return [Row(cell, "steady, or not", n_runs, _invalid(steady), due)]


def _with(fall: Fall, steady: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same rates with a fall in the first arm."""
    n_runs, _, trials, seconds = steady.shape
    fallen = trials if fall.everywhere else 1
    share = rng.uniform(0.1, 0.9, (n_runs, fallen)) if fall.anywhere else np.full((n_runs, fallen), 0.5)
    after = np.arange(seconds) >= np.round(share * seconds)[..., None]
    values = steady.copy()
    values[:, 0, :fallen] *= np.where(after, 1 - fall.size, 1.0)
    return values


def _invalid(iops: np.ndarray) -> float:
    """Share of comparisons, [run, arm, trial, second], that the gate calls invalid."""
    n_trials = math.prod(iops.shape[:3])
    names = np.arange(n_trials)
    seconds = np.broadcast_to(np.arange(iops.shape[3]), (n_trials, iops.shape[3]))
    part = Samples(names, seconds, iops.reshape(n_trials, -1))
    cell_of = dict(zip(names.tolist(), (names // iops.shape[2]).tolist(), strict=True))
    judged = rate_changed([part], pd.Series(cell_of))
    changed = (judged["far"] | judged["cell_change"].notna()).to_numpy(bool).reshape(iops.shape[0], -1)
    moved = judged["moved"].to_numpy(bool).reshape(changed.shape).sum(axis=1)
    return float((changed.any(axis=1) | (moved > most_by_chance(changed.shape[1]))).mean())
