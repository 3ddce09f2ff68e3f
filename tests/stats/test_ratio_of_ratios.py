"""Ratios of ratios: at most 5 % of equal pairs differ, intervals cover, adjustment keeps 5 % in all."""

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


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("sizes", [(3, 3), (5, 3), (10, 3), (20, 5)])
def test_of_equal_pairs_at_most_5_percent_differ_whatever_their_spreads(
    sizes: tuple[int, int], times: int
) -> None:
    rng = np.random.default_rng(1)
    item = ratio_of_ratios.interval(runs(rng, sizes[0]), runs(rng, sizes[1], times))
    assert (ratio_of_ratios.p_difference(item) < 0.05).mean() <= 0.06


@pytest.mark.parametrize("sizes", [(2, 10), (10, 2), (2, 2)])
def test_with_2_replicates_there_is_an_interval_and_no_verdict(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    item = ratio_of_ratios.interval(*(runs(rng, n) for n in sizes))
    assert np.isnan(ratio_of_ratios.p_difference(item)).all()
    assert ((item.low <= 0) & (item.high >= 0)).mean() >= 0.95


def test_by_hand_it_is_welch_with_the_degrees_of_freedom_of_the_smaller_run() -> None:
    rng = np.random.default_rng(1)
    first, other = rng.normal(0, 1, 4), rng.normal(0, 3, 7)
    item = ratio_of_ratios.interval(intervals.t_interval(first), intervals.t_interval(other))
    welch = stats.ttest_ind(other, first, equal_var=False)
    se = (other.mean() - first.mean()) / welch.statistic
    assert item.df == 3 and item.se == pytest.approx(se)
    assert item.high - item.mean == pytest.approx(3.182446 * se)


@pytest.mark.parametrize(("sd", "alpha"), [(0.05, 0.05), (0.1, 0.05 / 3)])
def test_a_planted_ratio_of_ratios_is_found_at_the_size_that_is_planned(sd: float, alpha: float) -> None:
    n, rng = power.for_two_runs(sd, 0.1, 0.8, alpha=alpha), np.random.default_rng(2)
    item = ratio_of_ratios.interval(runs(rng, n, sd), runs(rng, n, sd, math.log(1.1)))
    assert 0.79 < (intervals.p_difference(item) < alpha).mean() < 0.9
    item = ratio_of_ratios.interval(runs(rng, n - 1, sd), runs(rng, n - 1, sd, math.log(1.1)))
    assert (intervals.p_difference(item) < alpha).mean() < 0.82


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_a_pilot_names_a_size_that_finds_it_in_80_percent(alpha: float) -> None:
    rng, found = np.random.default_rng(3), []
    for _ in range(300):
        n = power.for_two_runs(float(rng.normal(0, 0.05, 5).std(ddof=1)), 0.1, 0.8, 4, alpha=alpha)
        item = ratio_of_ratios.interval(runs(rng, n, 0.05, 0, 20), runs(rng, n, 0.05, math.log(1.1), 20))
        found.append((intervals.p_difference(item) < alpha).mean())
    assert 0.75 < np.mean(found) < 0.9


def test_a_pilot_asks_for_more_than_a_known_spread() -> None:
    assert power.for_two_runs(0.05, 0.1, 0.8, df=4) > power.for_two_runs(0.05, 0.1, 0.8) > 3
    assert power.for_two_runs(1e-9, 0.1, 0.8) == power.for_two_runs(1e-9, 0.1, 0.8, df=1) == 3


def test_four_fifths_of_the_error_are_for_the_headline() -> None:
    p = np.array([0.01, 0.02, math.nan, 0.004])
    headline = np.array([True, True, True, False])
    assert ratio_of_ratios.adjusted(p, headline) == pytest.approx([0.025, 0.025, math.nan, 0.02], nan_ok=True)
    assert ratio_of_ratios.adjusted(p[:3], headline[:3]) == pytest.approx([0.02, 0.02, math.nan], nan_ok=True)


def test_the_hardest_level_is_that_of_the_first_step() -> None:
    headline = np.array([True, False, True])
    levels = ratio_of_ratios.hardest_levels(headline)
    assert levels == pytest.approx([0.02, 0.01, 0.02])
    assert ratio_of_ratios.hardest_levels(headline[:1]) == pytest.approx([0.05])
    for factor, differs in ((0.99, True), (1.01, False)):
        for place in range(3):
            p = np.where(np.arange(3) == place, factor * levels, 1.0)
            assert (ratio_of_ratios.adjusted(p, headline) < 0.05).any() == differs


@pytest.mark.long
@pytest.mark.parametrize("sd", [0.0, 1.0])
@pytest.mark.parametrize(("sizes", "times"), [((3,) * 5, 1), ((20, 20, 3), 5), ((10,) * 9 + (3,), 3)])
def test_intervals_of_the_spread_between_runs_cover_it(sd: float, sizes: tuple[int, ...], times: int) -> None:
    rng = np.random.default_rng(3)
    spreads = np.where(np.array(sizes) == min(sizes), times, 1)
    drawn = [runs(rng, n, spread, 0, 1000) for n, spread in zip(sizes, spreads, strict=True)]
    means = rng.normal(0, sd, (1000, len(sizes))) + np.column_stack([run.mean for run in drawn])
    errors, df = np.column_stack([run.se for run in drawn]), np.array(sizes) - 1.0
    found = [ratio_of_ratios.between_runs(*run, df) for run in zip(means, errors, strict=True)]
    assert np.mean([item.low <= sd <= item.high for item in found]) > 0.91
    assert sd or np.mean([item.p < 0.05 for item in found]) < 0.07


def test_the_spread_of_runs_by_hand() -> None:
    """Means 0.0, 0.1 and 0.2 have a variance of 0.01, their errors one of 0.001, with 4 degrees of freedom.

    The mean error has 7.2891 by Satterthwaite, where the third is 4 / 1.648777 times as large (its bound of
    80 %): (0.0005 + 0.001 + 0.0036391)^2 / ((0.0005^2 + 0.001^2 + 0.0036391^2) / 4).
    """
    means, df = np.array([0.0, 0.1, 0.2]), np.full(3, 4.0)
    errors = np.sqrt([0.0005, 0.001, 0.0015])
    item, df_within = ratio_of_ratios.between_runs(means, errors, df), 7.2891
    assert item.n_runs == 3 and item.sd == pytest.approx(math.sqrt(0.01 - 0.001))
    assert item.p == pytest.approx(max(stats.f.sf(10, freedom, df_within) for freedom in (1, 2)), rel=1e-3)
    most, least = (stats.f.ppf(share, 2, df_within) for share in (0.975, 0.025))
    most = max(most, stats.f.ppf(0.975, 1, df_within))
    squares = [2 * (0.01 - 0.001 * most), 2 * (0.01 - 0.001 * least)]
    assert item.low == pytest.approx(math.sqrt(squares[0] / stats.chi2.ppf(0.975, 2)), rel=1e-3)
    assert item.high == pytest.approx(math.sqrt(squares[1] / stats.chi2.ppf(0.025, 2)), rel=1e-3)
    alike = ratio_of_ratios.between_runs(np.full(3, 0.1), errors, df)
    assert (alike.sd, alike.low) == (0.0, 0.0) and alike.p == 1.0


def test_two_runs_have_no_spread_and_single_replicates_have_that_of_their_disks() -> None:
    assert ratio_of_ratios.between_runs(np.zeros(2), np.ones(2), np.ones(2)).n_runs == 0
    assert ratio_of_ratios.with_their_disks(np.zeros(2)).n_runs == 0
    item = ratio_of_ratios.with_their_disks(np.array([0.0, 0.1, 0.2]))
    assert item.sd == pytest.approx(0.1) and math.isnan(item.p)
    bounds = [math.sqrt(2 * 0.01 / stats.chi2.ppf(share, 2)) for share in (0.975, 0.025)]
    assert [item.low, item.high] == pytest.approx(bounds)
