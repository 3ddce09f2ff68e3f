"""Ratios and intervals against independent calculations, planted truth and properties."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from diskbook.stats import ratios
from support import synthetic


def log_ratios(values: list[list[float]]) -> pd.Series:
    """Log ratios by replicate and block."""
    index = [(r + 1, b + 1) for r, row in enumerate(values) for b in range(len(row))]
    flat = [value for row in values for value in row]
    return pd.Series(flat, index=pd.MultiIndex.from_tuples(index, names=["replicate", "block"]))


def of_these_disks(log_ratios: pd.Series) -> ratios.Estimate:
    """Estimate for the very disks measured."""
    return ratios.estimates(log_ratios)[1]


def test_blocks_as_scipy() -> None:
    values = [0.90, 0.93, 0.88, 0.91, 0.95]
    found = of_these_disks(log_ratios([values]))
    test = stats.ttest_1samp(values, 0.0)
    low, high = test.confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(math.exp(low)), pytest.approx(math.exp(high)))
    assert found.p_difference == pytest.approx(test.pvalue)
    assert found.ratio == pytest.approx(math.exp(np.mean(values)))
    assert (found.df, found.scope, found.method, found.reason) == (4, "these disks", "t over blocks", "")


def test_replicates_as_scipy_on_their_means() -> None:
    values = [[0.90, 0.93], [0.80, 0.86], [0.99, 1.01]]
    found = ratios.over_replicates(log_ratios(values))
    low, high = stats.ttest_1samp([0.915, 0.83, 1.0], 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(math.exp(low)), pytest.approx(math.exp(high)))
    assert (found.df, found.scope, found.n_replicates, found.n_blocks) == (2, "disks like these", 3, 6)


def test_within_replicates_by_hand() -> None:
    # Means 0.1 and 0.4, deviations 0.02 and 0.03 each way: variances of the means .0008/2 and .0018/2, their
    # sum .0013, standard error sqrt(.0013) / 2 = .018028. Satterthwaite: .0013^2 / (.0004^2 + .0009^2)
    # = 1.742268 degrees of freedom; t(0.975, 1.742268) = 4.974031.
    found = of_these_disks(log_ratios([[0.08, 0.12], [0.37, 0.43]]))
    assert found.ratio == pytest.approx(math.exp(0.25))
    assert math.log(found.high / found.ratio) == pytest.approx(4.974031 * 0.0180278, rel=1e-5)


def test_unbalanced_replicates_weigh_alike() -> None:
    found = ratios.over_replicates(log_ratios([[0.1], [0.3, 0.3, 0.3, 0.3]]))
    assert math.log(found.ratio) == pytest.approx(0.2)


def test_one_replicate_refuses_the_general_claim() -> None:
    general, these = ratios.estimates(log_ratios([[0.1, 0.2, 0.15]]))
    assert general.scope == "disks like these" and math.isnan(general.ratio) and "replicate" in general.reason
    assert these.scope == "these disks" and these.low < these.ratio < these.high


@pytest.mark.parametrize("values", [[], [0.3], [0.3, 0.3, 0.3]])
def test_no_interval_without_spread(values: list[float]) -> None:
    found = of_these_disks(log_ratios([values]))
    assert math.isnan(found.low) and math.isnan(found.p_difference) and found.reason
    assert math.isnan(found.p_equivalence(0.05))


def test_what_lacks_a_spread_is_said() -> None:
    assert "every log ratio is the same" in of_these_disks(log_ratios([[0.5, 0.5], [0.5, 0.5]])).reason
    assert of_these_disks(log_ratios([[0.5, 0.6], [0.5]])).reason.startswith("1 block: no spread")


def test_equivalence_as_two_one_sided_tests() -> None:
    values = [0.010, -0.004, 0.012, 0.003, 0.006]
    found = of_these_disks(log_ratios([values]))
    bound = math.log(1.02)
    above = stats.ttest_1samp(values, -bound, alternative="greater").pvalue
    below = stats.ttest_1samp(values, bound, alternative="less").pvalue
    assert found.p_equivalence(0.02) == pytest.approx(max(above, below))


def test_repeats_of_a_block_count_once() -> None:
    trials, _, _ = synthetic.tables(repeats=2, n_blocks=3, loads=(synthetic.WRITE,))
    found = ratios.block_log_ratios(
        ratios.log_means(trials, "lat_mean_ms"), "zrs-z1", "lrs-z1", "randwrite-qd1", "write"
    )
    by_hand = (
        trials.assign(log=np.log(trials["lat_mean_ms"])).groupby(["block", "arm"])["log"].mean().unstack()
    )
    assert len(found) == 3
    assert np.allclose(found.to_numpy(), (by_hand["zrs-z1"] - by_hand["lrs-z1"]).to_numpy())


def estimate(trials: pd.DataFrame, arm: str = "zrs-z1", base: str = "lrs-z1") -> ratios.Estimate:
    means = ratios.log_means(trials, "lat_mean_ms")
    return of_these_disks(ratios.block_log_ratios(means, arm, base, "randwrite-qd1", "write"))


def test_properties() -> None:
    """Scale does not matter, swapping arms inverts, the order of rows is irrelevant."""
    trials, _, _ = synthetic.tables(loads=(synthetic.WRITE,))
    found = estimate(trials)
    scaled = estimate(trials.assign(lat_mean_ms=trials["lat_mean_ms"] * 1000))
    shuffled = estimate(trials.sample(frac=1, random_state=3))
    swapped = estimate(trials, "lrs-z1", "zrs-z1")
    for other in (scaled, shuffled):
        assert (other.ratio, other.low, other.high) == pytest.approx((found.ratio, found.low, found.high))
    assert (1 / swapped.ratio, 1 / swapped.high, 1 / swapped.low) == pytest.approx(
        (found.ratio, found.low, found.high)
    )
    assert swapped.p_difference == pytest.approx(found.p_difference)
    assert swapped.p_equivalence(0.05) == pytest.approx(found.p_equivalence(0.05))


def simulated(rng: np.random.Generator, replicates: int, blocks: int, truth: float) -> pd.Series:
    """Log ratios with a disk effect of 3 % and a block effect of 2 %."""
    disks = rng.normal(0, 0.03, replicates)
    return log_ratios([list(truth + disk + rng.normal(0, 0.02, blocks)) for disk in disks])


@pytest.mark.long
def test_planted_truth_is_covered_at_the_stated_rate() -> None:
    """400 runs of 4 x 3: coverage within 3.3 standard errors of 95 %; the wrong scope covers far less."""
    rng, truth = np.random.default_rng(7), math.log(2.46)
    covered, wrong = 0, 0
    for _ in range(400):
        data = simulated(rng, 4, 3, truth)
        general, within = ratios.estimates(data)
        covered += general.low <= 2.46 <= general.high
        wrong += within.low <= 2.46 <= within.high
    assert 0.915 <= covered / 400 <= 0.985
    assert wrong / 400 < 0.80


@pytest.mark.long
def test_blocks_cover_the_very_disks() -> None:
    rng = np.random.default_rng(8)
    covered = sum(
        found.low <= 2.46 <= found.high
        for found in (
            of_these_disks(log_ratios([list(math.log(2.46) + rng.normal(0, 0.02, 4))])) for _ in range(400)
        )
    )
    assert 0.915 <= covered / 400 <= 0.985


@pytest.mark.long
def test_same_disk_as_two_arms_rarely_differs() -> None:
    rng = np.random.default_rng(9)
    alarms = sum(
        of_these_disks(log_ratios([list(rng.normal(0, 0.02, 5))])).p_difference < 0.05 for _ in range(400)
    )
    assert alarms / 400 <= 0.085


def test_holm_by_hand() -> None:
    assert ratios.holm(np.array([0.01, 0.04, 0.03, np.nan])) == pytest.approx(
        [0.03, 0.06, 0.06, np.nan], nan_ok=True
    )
    assert ratios.holm(np.array([])).size == 0


def test_benjamini_hochberg_by_hand() -> None:
    # Sorted .01 .02 .03 .5 times 4/1, 4/2, 4/3, 4/4: .04 .04 .04 .5.
    found = ratios.benjamini_hochberg(np.array([0.5, 0.01, 0.03, 0.02]))
    assert found == pytest.approx([0.5, 0.04, 0.04, 0.04])


# --- values that a tool printed with few decimals


def test_the_step_of_printed_values_is_read_off_them() -> None:
    nothing = np.nan
    printed = np.array(
        [[0.079, 0.081, nothing], [1.25, 1.5, 1.75], [1.2345678, 1.3, 1.5], [nothing, nothing, nothing]]
    )
    assert ratios.rounding_of(printed) == pytest.approx([0.0005 / 0.08, 0.005 / 1.5, 0.0, 0.0])


@pytest.mark.parametrize("truth", [1.004, 1.01])
def test_intervals_cover_a_ratio_of_rounded_latencies(truth: float) -> None:
    """DiskSpd's three decimals at 0.079 ms: with quiet trials the rounding is the same in all of them."""
    rng, before, now = np.random.default_rng(5), [], []
    for base_ms in rng.uniform(0.0785, 0.0795, 400):
        both = np.round(base_ms * np.array([[truth], [1.0]]) * np.exp(rng.normal(0, 0.002, (2, 20))), 3)
        plain = ratios.estimates(np.log(both[0] / both[1])[None], 0.95)[1]
        if plain.reason:
            continue  # all alike: no interval is built from them
        found = ratios.widened(plain, float(ratios.rounding_of(both).sum()))
        before.append(plain.low <= truth <= plain.high)
        now.append(found.low <= truth <= found.high)
        assert found.p_difference >= plain.p_difference
    assert len(now) > 200 and np.mean(before) < 0.7 and np.mean(now) > 0.93


def test_the_narrowest_interval_is_half_as_wide_as_its_ends_are_apart() -> None:
    wide, narrow = (
        of_these_disks(log_ratios([[0.0, 0.1, 0.2]])),
        of_these_disks(log_ratios([[0.0, 0.1, 0.1]])),
    )
    none = of_these_disks(log_ratios([[0.1]]))
    half = math.log(narrow.high / narrow.ratio)
    assert ratios.narrowest([wide, none, narrow], 0.05) == pytest.approx(half)
    assert ratios.narrowest([none], 0.05) == pytest.approx(math.log1p(0.05))
