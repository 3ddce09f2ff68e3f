"""The recipe of noise: what is planted is found again, component by component."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from diskbook_emulator import noise
from diskbook_emulator.profile import Noise, Wander, load_profile

AZURE, BURSTABLE = load_profile("azure-noise-2024").noise, load_profile("azure-noise-2024-burstable").noise
SURE = 0.999  # the seeds are fixed; a 95 % interval would be wrong one time in twenty
Array = np.ndarray


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def sd_interval(values: Array) -> tuple[float, float]:
    """Interval of the standard deviation about 0 of independent normal values, by chi-square."""
    n = values.size
    total = float(np.square(values).sum())
    low, high = stats.chi2.ppf([(1 + SURE) / 2, (1 - SURE) / 2], n)
    return math.sqrt(total / low), math.sqrt(total / high)


def share_interval(hits: Array) -> tuple[float, float]:
    interval = stats.binomtest(int(hits.sum()), hits.size).proportion_ci(SURE)
    return interval.low, interval.high


@pytest.mark.parametrize("levels", [AZURE, BURSTABLE], ids=["D8s_v5", "B8ms"])
def test_small_components_within_an_hour_lie_in_their_intervals(levels: Noise) -> None:
    low, high = sd_interval(noise.knots(levels, rng(), (3000,)) / math.sqrt(1.5))
    assert low < levels.block < high < 0.02
    only_seconds = replace(levels, block=0.0, drift=0.0)
    hours = np.array([noise.seconds(only_seconds, rng(seed)) for seed in range(10)])
    low, high = sd_interval(hours[:, ::20])  # far enough apart to be independent
    assert low < levels.second < high
    starts = rng().random(4000)
    low, high = np.sqrt(np.square(noise.wave(levels, np.array(0.0), starts)).mean()) * np.array([0.97, 1.03])
    assert low < levels.drift < high


# Two runs of one machine so many hours apart: standard deviation of the difference, robust, east and west.
APART_D8S = [(3, 0.011, 0.009), (24, 0.014, 0.011), (168, 0.018, 0.015), (672, 0.025, 0.020)]
APART_B8MS = [(3, 0.024, 0.024), (24, 0.029, 0.029), (168, 0.039, 0.039), (672, 0.057, 0.057)]


@pytest.mark.parametrize(
    ("levels", "published", "tolerance"), [(AZURE, APART_D8S, 0.1), (BURSTABLE, APART_B8MS, 0.2)]
)
def test_the_profiles_wander_as_the_published_series_do(
    levels: Noise, published: list[tuple[float, float, float]], tolerance: float
) -> None:
    fast = math.hypot(levels.trial, levels.block, levels.drift)
    for hours, high, low in published:
        apart = replace(levels, hours_between_blocks=hours)
        pairs = noise.moves(apart, 1.0, rng(), (40_000, 2))
        spread = math.hypot(float(np.diff(pairs).std()), math.sqrt(2) * fast)
        assert (1 - tolerance) * low < spread < (1 + tolerance) * high


def test_each_wander_has_its_spread_and_its_memory() -> None:
    levels = Noise(wander=(Wander(12.0, 0.008),), hours_between_blocks=3.0)
    drawn = noise.moves(levels, 1.0, rng(), (4000, 8))
    low, high = sd_interval(drawn[:, 0])
    assert low < 0.008 < high
    for lag in (1, 4):
        keep = np.corrcoef(drawn[:, 0], drawn[:, lag])[0, 1]
        assert keep == pytest.approx(math.exp(-3 * lag / 12), abs=0.05)


def test_the_share_of_a_machine_and_that_of_its_disk_add_up() -> None:
    levels = Noise(wander=(Wander(12.0, 0.01),), hours_between_blocks=3.0)
    parts = [noise.moves(levels, share, rng(seed), (4000, 1)) for seed, share in ((1, 0.65), (2, 0.35))]
    for part, share in zip(parts, (0.65, 0.35), strict=True):
        low, high = sd_interval(part)
        assert low < 0.01 * math.sqrt(share) < high
    low, high = sd_interval(sum(parts))
    assert low < 0.01 < high


def test_level_shifts_come_at_their_rate_and_go_back() -> None:
    levels = Noise(shifts_a_month=0.4, shift=0.05, hours_between_blocks=24.0)
    drawn = noise.moves(levels, 1.0, rng(), (2000, 31))
    assert set(np.unique(drawn.round(12))) == {-0.05, 0.0, 0.05}
    low, high = share_interval(np.diff(drawn) != 0)
    assert low < 0.4 * 24 / noise.MONTH_H < high
    for machine in drawn:
        assert np.unique(machine[machine != 0]).size <= 1  # up, or down; then back


def test_slow_pairs_are_as_many_as_planted_and_come_in_clusters() -> None:
    drawn = noise.slow(replace(AZURE, slow_pair_next=0.23), 1.0, rng().random((4000, 10)))
    slow = drawn > 0
    for place in (0, 9):
        low, high = share_interval(slow[:, place])
        assert low < 0.031 < high
    low, high = share_interval(slow[:, 1:][slow[:, :-1]])
    assert low < 0.23 < high
    assert math.exp(-drawn.max()) == pytest.approx(0.82)


def test_a_slow_pair_is_its_machine_or_its_disk() -> None:
    for share in (0.65, 0.35):
        low, high = share_interval(noise.slow(AZURE, share, rng().random((20_000, 1))) > 0)
        assert low < 0.031 * share < high


def test_slow_ones_without_a_cluster_are_independent_and_all_can_be_slow() -> None:
    slow = noise.slow(Noise(slow_pairs=0.2), 1.0, rng().random((4000, 2))) > 0
    low, high = share_interval(slow[slow[:, 0], 1])
    assert low < 0.2 < high
    assert (noise.slow(Noise(slow_pairs=1.0), 1.0, rng().random((5, 3))) > 0).all()


def test_slow_runs_have_their_share_and_their_tail() -> None:
    drawn = noise.slow_runs(AZURE, rng(), (1_000_000,))
    slow = drawn > 0
    low, high = share_interval(slow)
    assert low < 0.001 < high
    assert np.exp(drawn[slow]).min() >= 1.1 and np.exp(drawn).max() <= 6 * (1 + 1e-12)
    low, high = share_interval(np.exp(drawn[slow]) > 1.5)
    assert low < 0.1 < high


def test_fresh_machines_begin_with_less_credit_as_often_as_planted() -> None:
    shares = np.array([noise.credit_share(BURSTABLE, rng(seed)) for seed in range(3000)])
    for hits, planted in ((shares == 0, 0.02), ((shares > 0) & (shares < 1), 0.08)):
        low, high = share_interval(hits)
        assert low < planted < high
    assert noise.credit_share(AZURE, rng()) == 1.0
