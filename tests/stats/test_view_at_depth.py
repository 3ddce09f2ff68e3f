"""Ratios at depth against those of single I/Os: what differs is seen, in one replicate or in all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diskbook.stats import view

SHAPE = (2, 3, 4)
"""Arm and base arm, replicates, blocks."""


def logs(seed: int = 1, noise: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """Log latencies at depth and of single I/Os whose ratios are equal, but for noise."""
    rng = np.random.default_rng(seed)
    deep, single = rng.normal(0, noise, (2, *SHAPE)) + rng.normal(0, 0.05, (1, 1, *SHAPE[1:]))
    return deep, single


def test_equal_ratios_are_not_apart_whatever_blocks_do() -> None:
    assert sum(view.apart_at_depth(*logs(seed), 0.05) is not None for seed in range(200)) <= 6


def test_a_limit_on_one_arm_or_one_machine_is_seen_and_how_far_it_moves_the_ratio() -> None:
    deep, single = logs(noise=0.003)
    everywhere, one = deep.copy(), deep.copy()
    everywhere[0] += math.log(1.1)
    one[0, 1] += math.log(1.1)
    for moved in (everywhere, one):
        found = view.apart_at_depth(moved, single, 0.05)
        assert found is not None and found[1] < math.log(1.1) < found[2] and found[1] > 0.0122


def test_what_the_margin_allows_is_no_difference() -> None:
    deep, single = logs(noise=0.0005)
    deep[0] += 0.011
    assert view.apart_at_depth(deep, single, 0.05) is None  # a quarter of 5 % is 1.22 % of a log
    assert view.apart_at_depth(deep, single, 0.03) is not None


def test_blocks_that_lack_a_cell_are_left_out_and_one_block_each_makes_replicates_blocks() -> None:
    deep, single = logs(noise=0.003)
    deep[0] += math.log(1.2)
    deep[1, 0, 0] = np.nan
    found = view.apart_at_depth(deep, single, 0.05)
    assert found is not None and found[0] == pytest.approx(math.log(1.2), abs=0.01)
    assert view.apart_at_depth(deep[:, :, :1], single[:, :, :1], 0.05) is not None
    assert view.apart_at_depth(deep[:, :1, :1], single[:, :1, :1], 0.05) is None
    assert view.apart_at_depth(deep * np.nan, single, 0.05) is None
