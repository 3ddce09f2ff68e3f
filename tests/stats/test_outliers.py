"""How far trials that were lost or repeated may have moved a ratio."""

from __future__ import annotations

import numpy as np
import pytest

from diskbook.stats import outliers


@pytest.mark.parametrize(
    ("shares", "is_moved"),
    [((0.0, 0.0), False), ((0.1, 0.1), False), ((0.1, 0.14), False), ((0.1, 0.2), True)],
)
def test_losses_move_a_ratio_only_where_they_differ_by_arm(
    shares: tuple[float, float], is_moved: bool
) -> None:
    arm, base = np.random.default_rng(1).normal(0, 0.1, (2, 1, 2, 5, 2))
    of_arm, of_base = (np.array([share]) for share in shares)
    assert (outliers.shift((of_arm, of_base), arm, base) > 0).tolist() == [is_moved]


@pytest.mark.parametrize(
    ("replicates", "blocks", "times"), [(3, 3, 1), (3, 3, 3), (5, 3, 3), (1, 6, 1), (5, 10, 3)]
)
def test_plain_normal_noise_is_none_of_another_kind(replicates: int, blocks: int, times: float) -> None:
    """Also where one arm varies three times as much as the other: such noise cancels in a ratio."""
    random = np.random.default_rng(5)
    shape = (2000, replicates, blocks, 1)
    counts = outliers.count(random.normal(0, 0.02 * times, shape), random.normal(0, 0.02, shape))
    assert counts.one_sided.mean() < 0.02


def test_a_run_that_is_far_out_is_still_one() -> None:
    random = np.random.default_rng(6)
    arm, base = (random.normal(0, 0.02, (500, 3, 3, 1)) for _ in range(2))
    arm[:, 1, 2, 0] += 0.6  # 30 standard deviations: 1.8 times as slow
    counts = outliers.count(arm, base)
    assert (counts.arm == 1).mean() > 0.97 and (counts.base > 0).mean() < 0.01


@pytest.mark.parametrize("shape", [(1, 0, 0), (0, 3, 1), (4, 1, 1), (1, 1, 1)])
def test_without_two_runs_in_a_replicate_none_is_far_from_another(shape: tuple[int, ...]) -> None:
    counts = outliers.count(np.zeros(shape), np.zeros(shape))
    assert (counts.arm, counts.base) == (0, 0)
