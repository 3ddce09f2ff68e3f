"""Intervals on arrays against scipy and statsmodels, and properties that must hold for any data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW, ttost_paired

from diskbook.stats import intervals, ratios


def ragged(seed: int = 3) -> np.ndarray:
    """Log ratios of 5 runs x 4 replicates x 6 blocks, a fifth of them missing."""
    rng = np.random.default_rng(seed)
    values = 0.3 + rng.normal(0, 0.05, (5, 4, 1)) + rng.normal(0, 0.02, (5, 4, 6))
    return np.where(rng.random(values.shape) < 0.2, np.nan, values)


def test_every_row_as_scipy_with_unequal_numbers() -> None:
    values = ragged()
    found = intervals.t_interval(values, 0.9)
    assert found.mean.shape == (5, 4)
    for place in np.ndindex(5, 4):
        row = values[place][~np.isnan(values[place])]
        low, high = stats.ttest_1samp(row, 0).confidence_interval(0.9)
        assert (found.low[place], found.high[place]) == (pytest.approx(low), pytest.approx(high))
        assert found.df[place] == len(row) - 1


def test_replicates_as_statsmodels_on_their_means() -> None:
    values = ragged()
    found = intervals.over_replicates(values)
    for run in range(5):
        means = DescrStatsW(np.nanmean(values[run], axis=1))
        assert (found.low[run], found.high[run]) == pytest.approx(means.tconfint_mean(0.05))
        assert found.se[run] == pytest.approx(means.std_mean)


def test_within_two_replicates_as_welch() -> None:
    """The mean of two is half of a difference, once one of them changes its sign: scipy's Welch interval."""
    for run in ragged():
        first, other = (row[~np.isnan(row)] for row in run[:2])
        welch = stats.ttest_ind(first, -other, equal_var=False)
        bounds = welch.confidence_interval(0.95)
        found = intervals.within_replicates(run[:2])
        assert (float(found.low), float(found.high)) == pytest.approx((bounds.low / 2, bounds.high / 2))
        assert float(found.df) == pytest.approx(welch.df)


@pytest.mark.parametrize(("replicates", "blocks"), [(3, 3), (5, 10), (10, 5)])
def test_one_noisy_machine_is_covered_and_equal_machines_lose_little(replicates: int, blocks: int) -> None:
    rng = np.random.default_rng(8)
    equal = rng.normal(0, 0.02, (8000, replicates, blocks))
    noisy = equal * np.where(np.arange(replicates) == 0, 5.0, 1.0)[:, None]
    for values, least_covered in ((equal, 0.94), (noisy, 0.93)):
        found = intervals.within_replicates(values)
        assert ((found.low <= 0) & (found.high >= 0)).mean() > least_covered
    assert covers_pooled(noisy) < 0.94
    found = intervals.within_replicates(equal)
    lost = np.median(intervals.quantile(0.95, found.df)) / intervals.quantile(0.95, replicates * (blocks - 1))
    assert lost < {3: 1.15, 5: 1.04, 10: 1.01}[blocks]


def covers_pooled(values: np.ndarray) -> float:
    """Share of intervals that hold 0 with the degrees of freedom of equal variances."""
    _, replicates, blocks = values.shape
    found = intervals.within_replicates(values)
    half = found.se * intervals.quantile(0.95, replicates * (blocks - 1))
    return float((np.abs(found.mean) <= half).mean())


def test_one_comparison_alone_is_the_same_as_among_many() -> None:
    values = ragged()
    many = ratios.estimates_of_many(values)
    for run, both in zip(values, many, strict=True):
        assert ratios.estimates(run) == both
        general = intervals.over_replicates(run)
        assert both[0].low == pytest.approx(math.exp(float(general.low)))


def test_equivalence_as_statsmodels_paired_tost() -> None:
    rng = np.random.default_rng(4)
    arm, base = rng.normal(0.004, 0.01, (2, 8))
    p, _, _ = ttost_paired(arm, base, -math.log1p(0.02), math.log1p(0.02))
    found = intervals.p_equivalence(intervals.over_blocks(arm - base), math.log1p(0.02))
    assert float(found) == pytest.approx(p)
    assert ratios.estimates((arm - base)[None])[1].p_equivalence(0.02) == pytest.approx(p)


def test_p_of_difference_as_scipy() -> None:
    values = np.array([0.02, 0.05, 0.01, 0.03])
    found = intervals.p_difference(intervals.over_blocks(values), at=0.01)
    assert float(found) == pytest.approx(stats.ttest_1samp(values, 0.01).pvalue)


def test_quantile_as_scipy() -> None:
    for df in (1, 2.5, 9, math.inf):
        assert float(intervals.quantile(0.95, df)) == pytest.approx(stats.t.ppf(0.975, df))
    # One-sided 80 %, as power has it.
    assert float(intervals.quantile(2 * 0.8 - 1, 4)) == pytest.approx(stats.t.ppf(0.8, 4))
    assert np.isnan(intervals.quantile(0.95, math.nan))


@pytest.mark.parametrize(("ours", "theirs"), [("holm", "holm"), ("benjamini_hochberg", "fdr_bh")])
def test_families_as_statsmodels(ours: str, theirs: str) -> None:
    p = np.random.default_rng(5).random(40) ** 3
    adjusted = getattr(ratios, ours)(p)
    assert np.allclose(adjusted, multipletests(p, method=theirs)[1])
    with_gaps = getattr(ratios, ours)(np.insert(p, [0, 7], np.nan))
    assert np.allclose(with_gaps[~np.isnan(with_gaps)], adjusted) and np.isnan(with_gaps).sum() == 2


@pytest.mark.parametrize("method", [intervals.over_replicates, intervals.within_replicates])
def test_properties_of_intervals(method) -> None:
    """Order is irrelevant, a shift shifts, a change of sign mirrors, missing rows change nothing."""
    values = ragged()
    found = method(values)
    shifted, mirrored = method(values + 1), method(-values)
    assert np.allclose(shifted.low, found.low + 1) and np.allclose(shifted.se, found.se)
    assert np.allclose(mirrored.low, -found.high) and np.allclose(mirrored.mean, -found.mean)
    rng = np.random.default_rng(6)
    shuffled = rng.permuted(values[:, rng.permutation(4)], axis=2)
    padded = np.concatenate([values, np.full((5, 2, 6), np.nan)], axis=1)
    for other in (method(shuffled), method(padded)):
        assert np.allclose(other.low, found.low) and np.allclose(other.high, found.high)
        assert np.allclose(other.df, found.df)


@pytest.mark.parametrize(
    "values",
    [np.full((2, 3), np.nan), np.zeros((0, 0)), np.zeros((2, 0)), np.full((3, 4), 0.2), [[0.1, np.nan]]],
    ids=["nothing", "no replicate", "no block", "identical", "one value"],
)
def test_without_spread_there_is_no_interval_and_no_warning(values, recwarn) -> None:
    array = np.asarray(values, dtype=float)
    for method in (intervals.over_replicates, intervals.within_replicates):
        found = method(array)
        assert np.isnan(found.low) and np.isnan(intervals.p_difference(found))
    general, these = ratios.estimates(array)
    assert general.reason and these.reason
    assert not recwarn.list


def test_a_spread_beyond_all_measure_is_refused_with_a_reason() -> None:
    general, _ = ratios.estimates(np.array([[300.0], [-300.0]]))
    assert math.isnan(general.high) and "differ too much" in general.reason
    assert math.isnan(general.p_difference)
