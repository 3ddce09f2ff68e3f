"""Published figures: what they support, and that an emulated run reproduces none of them."""

from __future__ import annotations

import pandas as pd
import pytest

import synthetic
from diskbook import limits, published, scenario_file


@pytest.fixture(scope="module")
def assessed() -> pd.DataFrame:
    return published.assess(published.read(), published.read_limits())


def one(assessed: pd.DataFrame, **wanted: object) -> pd.Series:
    rows = assessed
    for name, value in wanted.items():
        rows = rows[rows[name] == value]
    return rows.iloc[0]


def test_the_shared_zrs_overhead_of_two_percent_is_capped(assessed: pd.DataFrame) -> None:
    """5,099.82 and 4,994.63 IOPS: both arms sit on the P30 cap, so 7.83 and 8.00 ms are 40 / cap."""
    for value in (5099.82, 7.830, 4994.63, 7.998):
        row = one(assessed, article="shared-zrs", value=value)
        assert row["on_cap"] and "nothing about the latency" in row["supports"]
    assert one(assessed, article="shared-zrs", value=5099.82)["little"] == "7.84 ms"
    assert not one(assessed, article="shared-zrs", value=4079.72)["on_cap"]


def test_the_same_iops_of_zone_disks_are_capped(assessed: pd.DataFrame) -> None:
    rows = assessed[(assessed["article"] == "zone-disks") & (assessed["metric"] == "iops")]
    assert len(rows) == 8 and rows["on_cap"].all()


def test_latency_at_depth_one_is_one_run_without_interval(assessed: pd.DataFrame) -> None:
    row = one(assessed, article="zone-disks", metric="lat_mean", value=1.3)
    assert row["little"] == "769 IOPS" and not row["on_cap"]
    assert "1 run, no spread printed: no interval" in row["supports"]
    assert "rests on an assumption about disk (1 TiB Premium SSD = P30)" in row["supports"]


def test_four_ms_is_a_response_time_at_eight_outstanding(assessed: pd.DataFrame) -> None:
    row = one(assessed, article="s2d-azure", metric="iops", value=1985.0)
    assert "4.03 ms at 8 outstanding" in row["supports"]


def test_every_figure_gets_a_sentence(assessed: pd.DataFrame) -> None:
    assert len(assessed) == 72 and (assessed["supports"].str.len() > 20).all()


@pytest.mark.parametrize(
    ("provenance", "calibrated", "verdicts"),
    [
        ("emulated", True, {"calibration input"}),
        ("emulated", False, {"not comparable: this profile plays other numbers"}),
        ("azure", True, {"shown beside: one run without an interval", "capped: not comparable as latency"}),
    ],
)
def test_beside_measured(
    assessed: pd.DataFrame, provenance: str, calibrated: bool, verdicts: set[str]
) -> None:
    trials, _, series = synthetic.tables()
    scenario = scenario_file.load("zone-disks", "quick")
    zone_disks = assessed[assessed["article"] == "zone-disks"]
    found = published.beside(zone_disks, limits.label_cells(trials, series), scenario, provenance, calibrated)
    assert len(found) == 16 and set(found["verdict"]) == verdicts
    row = found[(found["arm"] == "zrs-z3") & (found["load"] == "randwrite-qd1")].iloc[0]
    assert row["value"] == 4.8 and row["ratio"] == pytest.approx(1, abs=0.06)
    assert not found.astype(str).apply(lambda column: column.str.contains("reproduced")).any(axis=None)


def test_only_arms_that_were_measured_are_shown(assessed: pd.DataFrame) -> None:
    trials = synthetic.tables(n_blocks=1)[0]
    cells = limits.label_cells(trials[trials["arm"] == "lrs-z1"])
    found = published.beside(assessed, cells, scenario_file.load("zone-disks", "quick"), "emulated")
    assert set(found["arm"]) == {"lrs-z1"} and len(found) == 4
