"""Ratios of ratios: 2 to 7 % of equal pairs differ, intervals cover, adjustment keeps 5 % in all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from diskbook.stats import intervals, power, ratio_of_ratios
from diskbook.stats.intervals import Interval


def runs(
    rng: np.random.Generator, n: int, sd: float = 1.0, mean: float = 0.0, number: int = 4000
) -> Interval:
    return intervals.over_replicates(rng.normal(mean, sd, (number, n, 1)))


@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (2, 5), (5, 5)])
def test_of_equal_pairs_2_to_7_percent_differ(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    item = ratio_of_ratios.of_kinds(*(runs(rng, n) for n in sizes))
    assert 0.02 <= (intervals.p_difference(item) < 0.05).mean() <= 0.07


def test_where_spreads_are_alike_it_is_the_pooled_t_test_and_else_welch() -> None:
    first, alike, wide = (
        np.random.default_rng(seed).normal(0, sd, 6) for seed, sd in ((1, 1), (2, 1), (3, 9))
    )
    for other, equal in ((alike, True), (wide, False)):
        item = ratio_of_ratios.of_kinds(*(intervals.t_interval(part) for part in (first, other)))
        known = stats.ttest_ind(other, first, equal_var=equal).confidence_interval()
        assert (item.low, item.high) == pytest.approx((known.low, known.high))


@pytest.mark.parametrize(("sd", "alpha"), [(0.05, 0.05), (0.1, 0.05 / 3)])
def test_a_planted_ratio_of_ratios_is_found_at_the_size_that_is_planned(sd: float, alpha: float) -> None:
    n, rng = power.for_two_runs(sd, 0.1, 0.8, alpha=alpha), np.random.default_rng(2)
    item = ratio_of_ratios.of_kinds(runs(rng, n, sd), runs(rng, n, sd, math.log(1.1)))
    shown = (intervals.p_difference(item) < alpha).mean()
    assert shown == pytest.approx(power.power_of_two_runs(sd, 0.1, n, alpha), abs=0.02) and shown > 0.78
    assert power.power_of_two_runs(sd, 0.1, n - 1, alpha) < 0.8


def test_a_pilot_asks_for_more_than_a_known_spread() -> None:
    assert power.for_two_runs(0.05, 0.1, 0.8, df=4) > power.for_two_runs(0.05, 0.1, 0.8) >= 2
    assert power.power_of_two_runs(0.0, 0.1, 2) == 1.0 and power.for_two_runs(1e-9, 0.1, 0.8) == 2


def test_four_fifths_of_the_error_are_for_the_headline() -> None:
    p = np.array([0.01, 0.02, math.nan, 0.004])
    headline = np.array([True, True, True, False])
    assert ratio_of_ratios.adjusted(p, headline) == pytest.approx([0.025, 0.025, math.nan, 0.02], nan_ok=True)
    assert ratio_of_ratios.adjusted(p[:3], headline[:3]) == pytest.approx([0.02, 0.02, math.nan], nan_ok=True)
    assert ratio_of_ratios.alpha_of_headline(2, 1) == pytest.approx(0.02)


@pytest.mark.parametrize("sd", [0.0, 1.0])
def test_intervals_of_the_spread_between_runs_cover_it(sd: float) -> None:
    rng, covered = np.random.default_rng(3), 0
    for _ in range(400):
        values = rng.normal(0, sd, (5, 1)) + rng.normal(0, 1, (5, 3))
        item = ratio_of_ratios.between_runs(values.mean(axis=1), values.var(axis=1, ddof=1), np.full(5, 2.0))
        covered += item.low <= sd <= item.high
    assert covered > 0.92 * 400


def test_two_runs_have_no_spread_and_single_replicates_have_that_of_their_disks() -> None:
    assert ratio_of_ratios.between_runs(np.zeros(2), np.ones(2), np.ones(2)).n_runs == 0
    assert ratio_of_ratios.with_their_disks(np.zeros(2)).n_runs == 0
    item = ratio_of_ratios.with_their_disks(np.array([0.0, 0.1, 0.2]))
    assert item.sd == pytest.approx(0.1) and item.low < 0.1 < item.high and math.isnan(item.p)
