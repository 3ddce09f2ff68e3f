"""Tail percentiles that a trial cannot show."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from diskbook.design import grid


@pytest.mark.parametrize(
    ("ios", "ramp_s", "runtime_s", "lacks"),
    [
        (1e6, 1.0, 30.0, ""),
        (1e6, math.nan, 30.0, grid.START),
        (1e6, math.nan, 300.0, ""),
        (math.nan, 1.0, 30.0, grid.FEW),
        (1e6, 0.5, math.nan, grid.START),
    ],
)
def test_what_is_not_known_of_a_trial_counts_as_nothing(
    ios: float, ramp_s: float, runtime_s: float, lacks: str
) -> None:
    rows = pd.DataFrame({"ios": [ios], "ramp_s": [ramp_s], "runtime_s": [runtime_s]})
    assert grid.tail_lacks(rows, 0.99).tolist() == [lacks]
