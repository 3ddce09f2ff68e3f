"""Machines of a fleet beside each other: fairness, common window, and VMFleet's own way of adding up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diskbook.clusters.stats import fleet as fleet_stats
from diskbook.results.tables import Tables
from support import fleets
from support.fleets import Vm


def tables(machines: list[Vm]) -> Tables:
    return fleets.tables_of({"t": machines})


def fairness(machines: list[Vm]) -> pd.DataFrame:
    return fleet_stats.fairness(tables(machines).fleet).set_index("direction")


def test_the_spread_that_was_planted_comes_back() -> None:
    found = fairness(fleets.fleet(28, cv=0.03, spread_s=1.4, iops={"read": 280.0, "write": 120.0}))
    assert found["cv"].to_numpy() == pytest.approx([0.03, 0.03], rel=0.02)
    assert found["machines"].tolist() == [28, 28]
    assert found["iops_mean"].to_numpy() == pytest.approx([280, 120], rel=1e-3)
    edge = 0.03 / np.linspace(-1, 1, 28).std(ddof=1)  # the rates are evenly spread
    assert found["least_to_most"].to_numpy() == pytest.approx([(1 - edge) / (1 + edge)] * 2, abs=0.003)
    assert found["window_share"].to_numpy() == pytest.approx([0.86, 0.86])
    assert found["start_spread_s"].to_numpy() == pytest.approx([1.4, 1.4])
    assert found["end_spread_s"].to_numpy() == pytest.approx([1.4, 1.4])


def test_a_machine_that_got_nothing_of_a_direction_counts() -> None:
    found = fairness([Vm("vm-v-n-001"), Vm("vm-v-n-002", iops={"read": 280.0})])
    assert found.loc["write", "machines"] == 2 and found.loc["write", "least_to_most"] == 0
    assert found.loc["write", "cv"] == pytest.approx(np.sqrt(2))
    assert found.loc["read", "cv"] == 0


def test_one_machine_has_no_spread() -> None:
    found = fairness([Vm("vm-v-n-001")])
    assert (
        found["cv"].isna().all()
        and (found["least_to_most"] == 1).all()
        and (found["window_share"] == 1).all()
    )


def test_vmfleets_mean_of_p99s_is_no_p99() -> None:
    made = tables(
        [
            Vm(f"vm-v-n-00{n}", iops={"read": 100.0}, latency_ms=(80.0 if n == 4 else 20.0,))
            for n in range(1, 5)
        ]
    )
    (row,) = fleet_stats.beside_vmfleet(made.fleet, made.trials).to_dict("records")
    assert (row["iops"], row["iops_vmfleet"]) == (400, 400)
    assert (row["lat_p99_ms"], row["p99_vmfleet_ms"]) == (80, 35)
    assert (row["lat_p50_ms"], row["p50_vmfleet_ms"]) == (20, 35)
    assert row["p99_ratio"] == pytest.approx(35 / 80)


def test_a_missing_percentile_makes_vmfleets_mean_missing() -> None:
    made = tables(fleets.fleet(3))
    gone = made.fleet.assign(lat_p99_ms=made.fleet["lat_p99_ms"].where(made.fleet["vm"].str.endswith("2")))
    assert fleet_stats.beside_vmfleet(gone, made.trials)["p99_vmfleet_ms"].isna().all()


def test_a_run_without_fleets_has_empty_tables() -> None:
    made = tables(fleets.fleet(2))
    assert fleet_stats.fairness(made.fleet.iloc[:0]).empty
    assert fleet_stats.beside_vmfleet(made.fleet.iloc[:0], made.trials).empty
