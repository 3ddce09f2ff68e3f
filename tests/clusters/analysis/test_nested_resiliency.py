"""nested-resiliency: what was planted is found, arithmetic is called so, and the notebook runs on any run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from diskbook.clusters.analysis import nested_resiliency
from diskbook.clusters.analysis.nested import arms, below, capacity, losses, saturated, tiers, verdicts
from diskbook.clusters.stats import fleet
from diskbook.importing import run as importer
from diskbook.importing.scenario import Settings
from diskbook.report.analysis import published_claims
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.figures.export import as_svg
from support import fleets, nested
from support.nested import Truth
from support.notebooks import run_cells

FEW: dict[str, Any] = {"blocks": 2, "kibs": (4,)}
"""As small as a run may be that has a ratio of each kind."""


def analysed(folder: Path, **options: Any) -> Analysis:
    """An analysis of a made-up run."""
    return analyse(nested.run_folder(folder, **options))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return analysed(tmp_path_factory.mktemp("nested") / "run")


def ratio(a: Analysis, arm: str, write_pct: int) -> pd.Series:
    rows = saturated.ratios(a).set_index(["arm", "write_pct", "block_size_bytes"])
    return rows.loc[(arm, write_pct, 4096)]


# --- full queues


@pytest.mark.long
@pytest.mark.parametrize(
    ("arm", "write_pct", "planted"),
    [
        ("nested-mirror", 100, 0.50),
        ("nested-parity", 100, 0.25),
        ("nested-parity-inside", 100, 0.50),
        ("nested-mirror", 30, 1.3 / 1.9),
        ("nested-parity", 30, 1.3 / 3.1),
        ("nested-mirror", 0, 1.0),
        ("nested-parity", 0, 1.0),
    ],
)
def test_saturated_ratios_are_found_and_predicted(
    whole: Analysis, arm: str, write_pct: int, planted: float
) -> None:
    row = ratio(whole, arm, write_pct)
    assert row["ratio"] == pytest.approx(planted, abs=0.01)
    assert row["bound"] == pytest.approx(planted) and row["left"] == pytest.approx(1.0, abs=0.02)
    assert row["held"]


@pytest.mark.long
def test_words_count_a_cell_once_and_say_what_is_arithmetic(whole: Analysis) -> None:
    lines = saturated.words(whole, saturated.ratios(whole))
    assert lines[0].startswith("18 cells are 18 findings: IOPS ratio x latency ratio is 1 within 0.")
    assert "a limit holds both sides of 16 cells; counting disk I/Os predicts 16 of them" in lines[1]
    assert lines[2] == "not shown to be held by a limit on both sides: MAP 64K 30 % writes, 64K 100 % writes"
    assert "MAP took 8.0 disk I/Os" in lines[3] and "MAP inside took 4.0 disk I/Os" in lines[4]
    (counted,) = nested_resiliency.findings_counted(whole)
    assert counted.startswith("25 comparisons are 25 findings")


@pytest.mark.long
def test_what_counting_does_not_predict_is_left(tmp_path: Path) -> None:
    """Parity that costs 10 disk I/Os a write, where 8 are counted."""
    truth = Truth(ios_a_write={**Truth().ios_a_write, "nested-parity": 10})
    a = analysed(tmp_path / "run", truth=truth, **FEW)
    row = ratio(a, "nested-parity", 100)
    assert (row["ratio"], row["left"]) == (pytest.approx(0.2, abs=0.01), pytest.approx(0.8, abs=0.02))
    lines = saturated.words(a, saturated.ratios(a))
    assert any("MAP does 0.80 to 0.84 times what counting predicts" in line for line in lines)
    assert any("MAP took 10.0 disk I/Os" in line for line in lines)


# --- below all limits


def test_below_limits_four_copies_take_as_long_as_expected(whole: Analysis) -> None:
    expected = fleet.of_copies(4, 0.2) / fleet.of_copies(2, 0.2)
    (row,) = below.judged(whole, "nested-mirror", "write").query("workload == 'write-1x1'").to_dict("records")
    assert row["ratio"] == pytest.approx(expected, rel=0.02) and row["verdict"] == "difference"
    assert below.own_sigma(whole) == pytest.approx(0.2, abs=0.03)
    table = nested_resiliency.below_table(whole)
    assert "1.09" in table and "into the mirror tier, 2.00 to 2.19 in place" in table
    assert "1.216 / 1.112 = 1.09" in below.words(whole)[0]


def test_two_volumes_of_one_kind_are_alike(whole: Analysis) -> None:
    rows = whole.comparisons.query("family == 'control' and metric == 'lat_mean_ms'")
    rows = rows[rows["ratio"].notna() & (rows["scope"] == "these disks")]
    assert len(rows) == 4 and set(rows["verdict"]) == {"equivalent within 5 %"}


def test_reads_of_a_kind_have_no_expectation() -> None:
    assert below.expected("nested-mirror", "two-way", "read", 0.2) == ""
    assert below.expected("nested-mirror", "two-way", "write", math.nan) == ""
    assert below.expected("nested-mirror", "nested-mirror", "write", 0.2) == "1.00"


# --- tiers


def test_the_data_set_inside_the_tier_is_a_nested_mirror(whole: Analysis) -> None:
    inside, nested_mirror = (ratio(whole, name, 100) for name in ("nested-parity-inside", "nested-mirror"))
    assert inside["ratio"] / nested_mirror["ratio"] == pytest.approx(1.0, abs=0.05)
    rows = tiers.ratios(whole).query("block_size_bytes == 4096").set_index("kind")["ratio"]
    assert rows["write"] == pytest.approx(2.0, abs=0.05) and rows["read"] == pytest.approx(1.0, abs=0.02)
    assert any(
        "4K write: IOPS inside the mirror tier, to those outside: +100 %" in line
        for line in tiers.words(whole)
    )
    table = tiers.sets_table(whole).set_index("Arm")
    assert table["Data set"].to_dict() == {"MAP": "outside", "MAP inside": "inside"}


def test_fill_and_allocations_are_those_counted(whole: Analysis) -> None:
    table = tiers.counted_table(whole).set_index("Arm")
    assert set(table.loc["MAP inside", "Clusters allocated on the slow tier"]) == {0.0}
    assert (table.loc["MAP", "Clusters allocated on the slow tier"] > 0).all()
    assert set(table.loc["MAP", "Mirror fill after it, %"]) == {90.0}


# --- capacity


def test_efficiencies_are_the_documented_ones(whole: Analysis) -> None:
    table = capacity.efficiency_table(whole).set_index("Volume")
    shares = table.loc["accelerated parity, 1/6 mirror"].iloc[:4].tolist()
    assert shares == ["34.6", "36.4", "37.5", "38.3"]
    assert table.loc["accelerated parity, 20 % mirror"].iloc[[0, 3]].tolist() == ["34.1", "37.5"]
    assert table.loc["nested mirror", "Read back here, %"] == "25.0"
    footprints = table["TB on the pool for 2 x 600 GB"].tolist()
    assert footprints == ["2.40", "3.60", "3.47", "3.52", "4.80"]


def test_the_decision_is_for_equal_capacity(whole: Analysis) -> None:
    table = capacity.decision_table(whole).set_index("For 8 usable TiB")
    assert table.iloc[:, 0].tolist() == ["2 x 8", "3 x 8", "2 x 11", "2 x 11", "2 x 16"]
    assert table.loc["nested mirror", "USD a month, drives"] == pytest.approx(32 * 148.68)
    measured = table.iloc[:, -1]
    assert measured["accelerated parity, 1/6 mirror"] == "0.25 (emulated)"
    assert measured["accelerated parity, 20 % mirror"] == "not measured here"
    assert [round(capacity.times_the_drives(disks), 2) for disks in (4, 7)] == [1.38, 1.53]
    assert "38 % more drives" in capacity.decision_words(whole)[0]


def test_capacity_stands_beside_what_was_measured(whole: Analysis) -> None:
    points = capacity.points(whole).set_index(["arm", "write_pct"])
    parity = points.loc[("nested-parity", 100)]
    assert parity[["capacity_pct", "most_pct"]].tolist() == [
        pytest.approx(34.6, abs=0.05),
        pytest.approx(38.3, abs=0.05),
    ]
    assert points.loc[("two-way", 0), "ratio"] == 1.0
    assert nested_resiliency.capacity_picture(whole).title.startswith("MAP: 35 % of the drives can be used")


# --- fleet


@pytest.mark.long
def test_fairness_is_that_of_the_machines(whole: Analysis) -> None:
    rows = tiers.by_trial(whole).query("machines > 1")
    assert rows["cv"].median() == pytest.approx(0.03, rel=0.35) and set(rows["machines"]) == {4}
    assert rows["start_spread_s"].max() <= 0.4 and (rows["window_share"] > 0.98).all()
    table = tiers.percentile_table(whole)
    # Machines' own percentiles fall by a tenth of the machine's number: their mean is no percentile.
    assert table["Off by, %"].to_numpy() == pytest.approx(-3.75, abs=0.01)


def test_machines_that_moved_are_compared_with_those_that_did_not(whole: Analysis) -> None:
    assert arms.moved(whole) == [("two-way-moved", "two-way")]
    assert any("two way moved" in line and "% (" in line for line in tiers.moved_words(whole))


# --- losses


def test_resync_has_shares_of_the_load_before(whole: Analysis) -> None:
    table = losses.resync_table(whole).set_index(["Pool", "Lost"])
    row = table.loc[("duo, p30", "a node and a drive of another")]
    assert row["Load while they resync, % of before"] == pytest.approx(70)
    assert (row["MB/s"], row["Until all volumes were whole"]) == (pytest.approx(3 * 16), "4 s")
    assert ("trio, p10", "two nodes") not in table.index


# --- claims

VERDICTS = {
    "a two-node mirror goes offline": "supported",
    "a three-way mirror on three nodes": "not supported",
    "parity has terrible": "supported",
    "nested mirror leaves only 25 %": "supported",
    "accelerated parity with 20 %": "supported",
    "accelerated parity uses its mirrored part": "not supported",
    "little or no read loss": "supported",
    "a bigger read loss": "not supported",
    "very little loss with a smaller data set": "supported",
    "write loss for nested mirror": "supported",
    "heavy write loss": "not supported",
    "buy disks": "supported",
    "28 VMs of 10 threads x 8": "capped",
}


def verdicts_of(a: Analysis) -> dict[str, str]:
    return {claim: str(verdict) for claim, (verdict, _) in verdicts.verdicts(a).items()}


def test_claims_are_judged_by_the_run(whole: Analysis) -> None:
    assert verdicts_of(whole) == VERDICTS
    of_article = published_claims.read().query("article == 'nested-resiliency'")["claim"].tolist()
    assert len(of_article) == len(VERDICTS)
    assert all(sum(claim.startswith(start) for claim in of_article) == 1 for start in VERDICTS)
    assert "Here (emulated)" in nested_resiliency.claims_table(whole)


@pytest.mark.long
def test_verdicts_turn_when_the_numbers_do(tmp_path: Path) -> None:
    """Volumes that write as a two-way mirror does, nested reads that lose, and other survivors."""
    truth = Truth(
        ios_a_write={"two-way": 2, "nested-mirror": 2, "nested-parity": 2},
        read_factor={"nested-mirror": 0.8, "nested-parity": 0.7},
        offline=(("two-way", "node"),),
    )
    a = analysed(tmp_path / "run", truth=truth, without=("two-way-b", "two-way-moved"), **FEW)
    turned = verdicts_of(a)
    assert turned["a two-node mirror goes offline"] == "not supported"
    assert turned["a three-way mirror on three nodes"] == "supported"
    assert turned["parity has terrible"] == turned["write loss for nested mirror"] == "not supported"
    assert turned["a bigger read loss"] == "supported"
    assert turned["very little loss with a smaller data set"] == "not supported"
    assert turned["buy disks"] == turned["little or no read loss"] == "not supported"
    assert "no such loss" in verdicts.verdicts(a)["heavy write loss"][1]


@pytest.mark.long
def test_a_run_that_lacks_something_says_so(tmp_path: Path) -> None:
    a = analysed(tmp_path / "run", kinds=("two-way", "nested-mirror"), **FEW)
    missing = verdicts_of(a)
    assert (
        missing["heavy write loss"] == missing["very little loss with a smaller data set"] == "not measured"
    )
    assert missing["write loss for nested mirror"] == "supported"
    assert "outside, so that nothing is known" in tiers.words(a)[0]


# --- the notebook


@pytest.mark.long
def test_the_notebook_runs_without_losses_fleet_and_counters(tmp_path: Path) -> None:
    a = analysed(tmp_path / "run", **FEW, kinds=("two-way", "nested-parity"))
    tables = a.tables
    bare = replace(tables, counters=tables.counters[:0], fleet=tables.fleet[:0], losses=tables.losses[:0])
    run_cells("nested-resiliency", replace(a, tables=bare))


def test_what_is_a_finding_depends_on_where_it_was_made() -> None:
    assert "planted" in arms.standing("emulated")[0]
    assert "latency ratios of single I/Os" in arms.standing("azure")[0] and len(arms.standing("azure")) == 2
    assert "very drives" in arms.standing("inventory")[0]


def test_the_same_numbers_give_the_same_bytes(whole: Analysis) -> None:
    first, second = (nested_resiliency.capacity_picture(whole) for _ in range(2))
    assert as_svg(first) == as_svg(second) and first.caption.startswith("Emulated")


@pytest.mark.long
def test_a_folder_of_vmfleet_is_analysed_as_well(tmp_path: Path) -> None:
    """One kind after the other, a read and a write cell of each, and nothing else known."""
    for kind, scale in {"two-way": 1.0, "nested mirror": 0.5, "MAP": 0.25}.items():
        for direction, share in (("read", 0), ("write", 100)):
            machines = [
                fleets.Vm(f"vm-base-n{1 + vm % 2}-{vm:03d}", iops={direction: scale * (100 + vm)})
                for vm in range(4)
            ]
            line = fleets.LINE.replace("-w30", f"-w{share}")
            (tmp_path / kind).mkdir(exist_ok=True)
            for name, content in fleets.files_of(machines, spec="", line=line, listed=False).items():
                (tmp_path / kind / name).write_bytes(content)
    made = importer.make([str(tmp_path)], f"{tmp_path}/run", Settings())
    a = analyse(made.run)
    row = ratio(a, "nested-mirror", 100)
    assert (row["ratio"], row["bound"]) == (pytest.approx(0.5), pytest.approx(0.5)) and math.isnan(row["low"])
    assert ratio(a, "map", 100)["bound"] == pytest.approx(0.25)
    assert tiers.table(a)["Machines"].tolist() == [4, 4, 4]
    given = verdicts_of(a)
    assert given["28 VMs of 10 threads x 8"] == given["a two-node mirror goes offline"] == "not measured"
    run_cells("nested-resiliency", a)
