"""False alarms of the gate of stationarity, and falls that it sees: a part of `make coverage`.

Samples of trials are simulated with autocorrelated noise (AR(1) in logs), steady or with a planted fall, and
judged by the function that the analysis uses. A fall is to be seen where it is large against that noise.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
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


class Cell(NamedTuple):
    """Noise of the seconds of a trial, and trials of each arm."""

    cv: float
    phi: float
    trials: int

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


class Row(NamedTuple):
    """Shares of comparisons that are called invalid: steady ones, and those with each fall."""

    cell: Cell
    n_runs: int
    alarms: float
    seen: Mapping[Fall, float]

    @property
    def is_off(self) -> bool:
        """Whether alarms are too many or a fall that is due is seen too seldom, beyond simulation error."""
        due = [share for fall, share in self.seen.items() if fall.is_due(self.cell)]
        error = coverage_rule.error(HIGHEST_ALARMS, self.n_runs)
        return self.alarms > HIGHEST_ALARMS + error or min(due, default=1.0) < LEAST_SEEN - error


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
    return [Row(cell, n_runs, _invalid(steady), seen)]


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


def text(rows: list[Row]) -> str:
    """A line a noise, planted falls across; what is not due in that noise is in brackets."""
    heads = "".join(f"{fall.name:>24}" for fall in FALLS)
    lines = [
        "stationarity, 60 samples: % of comparisons called invalid (in brackets: not due in such noise)",
        f"  {'CV':>6}{'phi':>5}{'trials an arm':>15}{'steady':>8}{heads}",
    ]
    for row in rows:
        seen = [_share(share, due=fall.is_due(row.cell)) for fall, share in row.seen.items()]
        across = "".join(f"{words:>24}" for words in seen)
        cell = f"{row.cell.cv:6.1%}{row.cell.phi:5.1f}{row.cell.trials:15}"
        lines.append(f"  {cell}{100 * row.alarms:8.1f}{across}" + " !" * row.is_off)
    return "\n".join(lines)


def _share(share: float, *, due: bool) -> str:
    words = f"{100 * share:.0f}"
    return words if due else f"({words})"
