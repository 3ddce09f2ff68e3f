"""Planned looks: the level at which each is judged, so that all together err as often as one would.

The same level at every look is Pocock's design (Biometrika 64, 1977, 191), here for Student's t with few
replicates, where no table holds; so it is found by simulation, always with the same draws.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import special

RUNS, SEED = 200_000, 20_261_122


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
    draws = np.random.default_rng(SEED).standard_normal((RUNS, max(looks)))
    smallest = np.min([_p_values(draws[:, :number]) for number in looks], axis=0)
    return float(np.quantile(smallest, alpha))


def _p_values(draws: np.ndarray) -> np.ndarray:
    """Two-sided p of Student's t for the mean of each row."""
    n = draws.shape[1]
    t = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / np.sqrt(n))
    p: np.ndarray = 2 * special.stdtr(n - 1, -np.abs(t))
    return p
