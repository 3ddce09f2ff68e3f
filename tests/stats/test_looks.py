"""Planned looks err together as often as one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from diskbook.stats.gates.plan import constant_level


@pytest.mark.parametrize(
    ("looks", "level"), [((5, 10), 0.028), ((3, 5, 10), 0.019), (tuple(range(3, 11)), 0.012)]
)
def test_levels_are_those_of_an_independent_simulation(looks: tuple[int, ...], level: float) -> None:
    assert constant_level(looks) == pytest.approx(level, rel=0.04)


def test_one_look_is_judged_as_ever() -> None:
    assert constant_level((7,)) == 0.05


@pytest.mark.parametrize("looks", [(5, 10), (3, 5, 10), (2, 3, 4)])
def test_all_looks_together_are_wrong_in_five_percent(looks: tuple[int, ...]) -> None:
    runs = np.random.default_rng(7).standard_normal((40_000, max(looks)))
    p = [stats.ttest_1samp(runs[:, :number], 0.0, axis=1).pvalue for number in looks]
    wrong = (np.min(p, axis=0) < constant_level(looks)).mean()
    assert wrong == pytest.approx(0.05, abs=0.0045)  # four standard errors
    peeking = (np.min(p, axis=0) < 0.05).mean()
    assert peeking > 0.075  # what the level is for
