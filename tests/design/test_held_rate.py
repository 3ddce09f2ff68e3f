"""Which latency of a held rate is compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diskbook.design import held_rate
from diskbook.design.held_rate import Start

ROWS = pd.DataFrame(
    {
        "workload": ["held", "held", "half", "half", "free"],
        "rate_offered": [500.0, 500.0, 500.0, 500.0, np.nan],
        "lat_p99_ms": [1.0, 2.0, 3.0, 4.0, 5.0],
        "iops": [500.0, 500.0, 500.0, 500.0, 9000.0],
        "lat_mean_intended_ms": [9.0, 8.0, np.nan, 7.0, np.nan],
        "lat_p99_intended_ms": [700.0, 800.0, np.nan, 900.0, np.nan],
        "lat_mean_least_ms": [9.0, 8.0, np.nan, 7.0, np.nan],
    }
)


def test_all_of_a_workload_count_from_the_same_moment() -> None:
    assert held_rate.latency(ROWS, "lat_p99_ms").tolist() == [700.0, 800.0, 3.0, 4.0, 5.0]
    assert held_rate.latency(ROWS, "iops").tolist() == ROWS["iops"].tolist()
    assert held_rate.starts(ROWS) == {"held": Start.INTENDED, "half": Start.SENT}


@pytest.mark.parametrize(
    "lacking", [["lat_mean_least_ms"], ["lat_mean_intended_ms", "lat_p99_intended_ms", "lat_mean_least_ms"]]
)
def test_tables_of_older_runs_are_lower_bounds(lacking: list[str]) -> None:
    older = ROWS.drop(columns=lacking)
    assert held_rate.latency(older, "lat_p99_ms").tolist() == ROWS["lat_p99_ms"].tolist()
    assert set(held_rate.starts(older).values()) == {Start.SENT}
