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
