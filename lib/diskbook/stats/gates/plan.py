"""Gate on the plan: is all measured that was planned before the first trial?

Who looks after every block and stops when the interval leaves out 1 finds a difference in 11 to 23 % of
runs without any (simulated); so nothing is judged before the plan is complete, or has come to a planned
look.

Planned looks are judged at a level at which all together err as often as one would.

The same level at every look is Pocock's design (Biometrika 64, 1977, 191), here for Student's t with few
replicates, where no table holds; so it is found by simulation, always with the same draws.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import special

from diskbook.design.vocabulary import Verdict
from diskbook.stats import intervals
from diskbook.stats.gates import Gate, failed, not_assessable, passed
from diskbook.stats.ratios import ALPHA

LOOKED_RUNS, PLANNED_RUNS, SEED = 200_000, 20_000, 20_261_122
RESOLVED = 100
"""Simulated runs below which a share of them is too coarse to go by."""


def constant_level(looks: tuple[int, ...], alpha: float = ALPHA) -> float:
    """Level of each of several looks.

    - `looks`: replicates or blocks at each look, increasing, 2 or more.
    - `alpha`: chance of any false alarm over all looks.

    Simulated from `LOOKED_RUNS` runs without any difference; its standard error is about 1 % of it.
    """
    if len(looks) == 1:
        return alpha
    return float(np.interp(alpha, _SHARES, _smallest_p(looks)))


def over_all_looks(p: np.ndarray, looks: tuple[int, ...]) -> np.ndarray:
    """Return the chance of a p as small as this at any look, where there is no difference.

    This repeated p-value is below alpha where p is below `constant_level(looks, alpha)`. So Holm's procedure
    on repeated p-values judges its step j at the level for alpha / (m - j + 1).

    - `p`: two-sided p-values of one look, any shape; NaN stays NaN.
    - `looks`: as for `constant_level`.

    Very small p-values are multiplied by the number of looks instead, which is never too small (Bonferroni).
    See C. Jennison and B. W. Turnbull, Interim analyses: the repeated confidence interval approach, Journal
    of the Royal Statistical Society B 51 (1989).
    """
    p = np.asarray(p, dtype=float)
    if len(looks) < 2:
        return p
    smallest = _smallest_p(looks)
    few = np.minimum(len(looks) * p, RESOLVED / LOOKED_RUNS)
    over_all: np.ndarray = np.where(p < smallest[RESOLVED], few, np.interp(p, smallest, _SHARES))
    return over_all


_SHARES = (np.arange(LOOKED_RUNS) + 0.5) / LOOKED_RUNS


@cache
def _smallest_p(looks: tuple[int, ...]) -> np.ndarray:
    """Smallest two-sided p of Student's t over the looks of each simulated run, in increasing order."""
    smallest = np.ones(LOOKED_RUNS)
    for interval in simulated(looks, LOOKED_RUNS):
        smallest = np.minimum(smallest, 2 * special.stdtr(interval.df, -np.abs(interval.mean / interval.se)))
    return np.sort(smallest)


def simulated(looks: tuple[int, ...], n_runs: int, effect: float = 0.0) -> Iterator[intervals.Interval]:
    """Simulate runs of normal values with a standard deviation of 1, and yield what each look sees.

    What comes between two looks enters as its mean and its sum of squares, which are drawn as they are.

    - `looks`: as for `constant_level`.
    - `effect`: true mean.

    Yields fields of shape [run]; the bounds are the mean.
    """
    rng, n = np.random.default_rng(SEED), 0
    mean, squares = np.zeros((2, n_runs))
    for look in looks:
        more = look - n
        apart = effect + rng.standard_normal(n_runs) / math.sqrt(more) - mean
        squares = squares + apart**2 * n * more / look
        squares += rng.chisquare(more - 1, n_runs) if more > 1 else 0.0
        mean = mean + apart * more / look
        n = look
        yield intervals.Interval(mean, mean, mean, np.sqrt(squares / (n - 1) / n), np.asarray(n - 1.0))


def stopping(looks: tuple[int, ...], effect: float, margin: float, family: int = 1) -> tuple[float, float]:
    """Expect where a run stops, and whether it is decided there.

    - `looks`: as for `constant_level`.
    - `effect`, `margin`: true log ratio, and the one that counts as none, in standard deviations of a
      replicate or block.
    - `family`: headline comparisons: each is judged as by Holm's hardest step.

    Returns the mean number of replicates or blocks, and the share of runs that find a difference or
    equivalence.
    """
    level, number = constant_level(looks, ALPHA / family), 0.0
    is_open = np.ones(PLANNED_RUNS, dtype=bool)
    for look, interval in zip(looks, simulated(looks, PLANNED_RUNS, effect), strict=True):
        smaller = np.minimum(intervals.p_difference(interval), intervals.p_equivalence(interval, margin))
        decided = is_open & (smaller < level)
        is_open &= ~decided
        number += look * float(decided.mean())
    return number + looks[-1] * float(is_open.mean()), float(1 - is_open.mean())


PLAN = "plan"


@dataclass(frozen=True)
class Plan:
    """What was planned, and how much of it is done.

    - `planned`, `complete`: numbers of blocks; one that failed for good is not complete.
    - `whole`: replicates that are complete, or blocks where `looks` count these; 0 where one more is begun.
    - `looks`: replicates or blocks at which the run was to be judged; none: at its end alone.
    - `written`: whether the plan was written before the first trial; else it is that of the scenario.
    - `changed`: whether arms, families or margins were changed since.
    """

    planned: int
    complete: int
    whole: int = 0
    looks: tuple[int, ...] = ()
    written: bool = True
    changed: bool = False

    @property
    def alpha(self) -> float:
        """Level at which each look is judged."""
        return constant_level(self.looks) if self.looks else ALPHA

    @property
    def is_interim(self) -> bool:
        """Whether it is too early to judge."""
        return self.complete < self.planned and self.whole not in self.looks


def plan_gate(plan: Plan | None) -> Gate:
    """All that was planned must be measured, or what was planned for a look."""
    if plan is None:
        return not_assessable(PLAN, "nothing says what was planned, so nor that all of it is here")
    blocks = f"{plan.complete} of {plan.planned} planned blocks are complete"
    if plan.is_interim:
        remedy = "finish the run; judged early, equal arms are soon found different"
        return not_assessable(PLAN, blocks, remedy, Verdict.INTERIM)
    if plan.changed:
        cause = "comparisons, families or margins are not those that were planned before the first trial"
        return failed(PLAN, cause, "take them for suggestions, and measure again what they suggest", None)
    if plan.complete < plan.planned:
        return passed(PLAN, f"{blocks}: a look that was planned, judged at a level of {plan.alpha:.3f}")
    words = "all planned blocks are complete"
    return passed(PLAN, words if plan.written else f"{words}, by the scenario: no plan was written down")
