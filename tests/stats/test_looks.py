"""Planned looks err together as often as one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from diskbook.stats.gates.plan import constant_level, over_all_looks
from diskbook.stats.ratios import holm


@pytest.mark.long
@pytest.mark.parametrize(
    ("looks", "level"),
    [
        ((5, 10), 0.028),
        ((3, 5, 10), 0.019),
        (tuple(range(3, 11)), 0.012),
        ((9, 18, 27, 36), 0.0178),
        ((5, 10, 20, 40), 0.0149),
        ((2, 3, 4, 5), 0.0165),
    ],
)
def test_levels_are_those_of_an_independent_simulation(looks: tuple[int, ...], level: float) -> None:
    assert constant_level(looks) == pytest.approx(level, rel=0.04)


def test_one_look_is_judged_as_ever() -> None:
    assert constant_level((7,)) == 0.05
    assert over_all_looks(np.array([0.03]), (7,)) == 0.03


@pytest.mark.long
@pytest.mark.parametrize("looks", [(5, 10), (3, 5, 10), (2, 3, 4)])
def test_all_looks_together_are_wrong_in_five_percent(looks: tuple[int, ...]) -> None:
    runs = np.random.default_rng(7).standard_normal((40_000, max(looks)))
    p = [stats.ttest_1samp(runs[:, :number], 0.0, axis=1).pvalue for number in looks]
    wrong = (np.min(p, axis=0) < constant_level(looks)).mean()
    assert wrong == pytest.approx(0.05, abs=0.0045)  # four standard errors
    peeking = (np.min(p, axis=0) < 0.05).mean()
    assert peeking > 0.075  # what the level is for


def test_steps_of_holm_have_the_level_of_their_alpha_which_is_less_than_a_share() -> None:
    looks = (9, 18, 27, 36)
    for left in (5, 4, 3, 2, 1):
        level = constant_level(looks, 0.05 / left)
        assert level < constant_level(looks) / left or left == 1
        below, above = (holm(over_all_looks(np.array([p, *[1] * (left - 1)]), looks)) for p in
                        (0.999 * level, 1.001 * level))  # fmt: skip
        assert below[0] < 0.05 <= above[0]


def test_tiny_p_values_are_never_understated() -> None:
    p = np.array([np.nan, 0.0, 1e-12, 1e-6, 1e-4, 1e-3, 0.5, 1.0])
    over_all = over_all_looks(p, (5, 10, 20, 40))
    assert np.isnan(over_all[0]) and (np.diff(over_all[1:]) >= 0).all()
    assert (over_all[1:] >= p[1:] - 1e-5).all() and over_all[2] == pytest.approx(4e-12)
