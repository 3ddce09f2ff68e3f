"""Gate on the plan: is all measured that was planned before the first trial?

Who looks after every block and stops when the interval leaves out 1 finds a difference in 11 to 23 % of runs
without any (simulated); so nothing is judged before the plan is complete, or has come to a planned look.

Planned looks: the level at which each is judged, so that all together err as often as one would.

The same level at every look is Pocock's design (Biometrika 64, 1977, 191), here for Student's t with few
replicates, where no table holds; so it is found by simulation, always with the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import special

from diskbook.design.vocabulary import Verdict
from diskbook.stats.gates import Gate, failed, not_assessable, passed
from diskbook.stats.ratios import ALPHA

LOOKED_RUNS, SEED = 200_000, 20_261_122


@cache
def constant_level(looks: tuple[int, ...], alpha: float = 0.05) -> float:
    """Level of each of several looks.

    Parameters
    ----------
    looks
        Replicates at each look, increasing, 2 or more.
    alpha
        Chance of any false alarm over all looks.

    Returns
    -------
    float
        Simulated from `RUNS` runs without any difference; its standard error is about 1 % of it.
    """
    if len(looks) == 1:
        return alpha
    draws = np.random.default_rng(SEED).standard_normal((LOOKED_RUNS, max(looks)))
    smallest = np.min([_p_values(draws[:, :number]) for number in looks], axis=0)
    return float(np.quantile(smallest, alpha))


def _p_values(draws: np.ndarray) -> np.ndarray:
    """Two-sided p of Student's t for the mean of each row."""
    n = draws.shape[1]
    t = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / np.sqrt(n))
    p: np.ndarray = 2 * special.stdtr(n - 1, -np.abs(t))
    return p


PLAN = "plan"


@dataclass(frozen=True)
class Plan:
    """What was planned, and how much of it is done.

    Attributes
    ----------
    planned, complete
        Numbers of blocks; one that failed for good is not complete.
    whole_replicates
        Replicates that are complete, where no other is begun; else 0.
    looks
        Replicates at which the run was to be judged; none: at its end alone.
    written
        Whether the plan was written before the first trial; else it is that of the scenario.
    changed
        Whether arms, families or margins were changed since.
    """

    planned: int
    complete: int
    whole_replicates: int = 0
    looks: tuple[int, ...] = ()
    written: bool = True
    changed: bool = False

    @property
    def alpha(self) -> float:
        """Level at which each look is judged."""
        return constant_level(self.looks, ALPHA) if self.looks else ALPHA

    @property
    def is_interim(self) -> bool:
        """Whether it is too early to judge."""
        return self.complete < self.planned and self.whole_replicates not in self.looks


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
