"""The slowest of several copies: against the known mean of two, and against draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from diskbook.clusters.stats import fleet


def test_one_copy_takes_its_own_time_and_two_have_a_closed_form() -> None:
    for sigma in (0.1, 0.2, 0.5, 0.8):
        assert fleet.of_copies(1, sigma) == pytest.approx(1.0)
        # E[max] of two lognormals of mean 1 is 2 ndtr(sigma / sqrt 2).
        assert fleet.of_copies(2, sigma) == pytest.approx(2 * ndtr(sigma / math.sqrt(2)))


def test_what_is_planted_for_three_and_four_copies() -> None:
    assert [round(fleet.of_copies(k, 0.2), 3) for k in (2, 3, 4)] == [1.112, 1.174, 1.216]
    assert fleet.of_copies(4, 0.2) / fleet.of_copies(2, 0.2) == pytest.approx(1.09, abs=0.005)
    draws = np.random.default_rng(1).lognormal(-0.125, 0.5, (200_000, 4)).max(axis=1)
    assert fleet.of_copies(4, 0.5) == pytest.approx(draws.mean(), rel=0.01)


def test_the_spread_of_a_histogram_is_that_of_its_logs() -> None:
    lat = np.exp(np.array([-0.3, 0.3]))
    assert fleet.spread(lat, np.array([5, 5])) == pytest.approx(0.3)
    assert math.isnan(fleet.spread(np.array([]), np.array([])))
