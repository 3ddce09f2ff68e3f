"""s2d-azure: what was planted is found, limits are called limits, and the notebook runs on any run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diskbook.clusters.analysis import decision, s2d_azure, sweep
from diskbook.report.analysis import published, published_claims
from diskbook.report.analysis.run import Analysis, analyse
from support import s2d
from support.notebooks import run_cells


def analysed(folder: Path, **options: Any) -> Analysis:
    """An analysis of a made-up run."""
    return analyse(s2d.run_folder(folder, **options))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return analysed(tmp_path_factory.mktemp("s2d") / "run")


@pytest.mark.long
def test_the_map_is_measured_below_limits_and_predicted_on_them(whole: Analysis) -> None:
    measured = sweep.measured(whole).set_index(["load", "threads"])
    predicted = sweep.predicted(whole, *sweep.setups(whole)).set_index(["load", "threads"])
    assert len(measured) == 20 and int(measured["capped"].sum()) == 10
    # Below limits a write waits for the slowest of three copies and a hop, which limits do not know.
    planted = 4.03 / (4.03 * whole_truth().write_factor + whole_truth().hop_ms)
    assert measured.loc[("4K write", 1.0), "ratio"] == pytest.approx(planted, rel=0.02)
    assert (predicted.loc[("4K write", 1.0)] == [1.0, False]).all()
    # On limits the ratio is that of VM sizes: 500 / 800 MB/s.
    assert measured.loc[("64K write", 12.0), "ratio"] == pytest.approx(500 / 800, rel=0.01)
    assert predicted.loc[("64K write", 12.0), "ratio"] == pytest.approx(500 / 800)
    assert measured["ratio"].to_numpy() * measured["latency_ratio"].to_numpy() == pytest.approx(1.0, rel=1e-3)


def whole_truth() -> s2d.Truth:
    return s2d.Truth()


def test_other_sizes_give_the_maps_that_were_computed_by_hand(whole: Analysis) -> None:
    by_title = {
        title: frame.set_index(["load", "threads"])["ratio"] for title, frame in sweep.of_sizes(whole).items()
    }
    ratios = [frame[("64K write", 12.0)] for frame in by_title.values()]
    assert ratios == [pytest.approx(500 / 768), pytest.approx(1.0), pytest.approx(600 / 768)]
    assert all(frame[("4K write", 12.0)] == pytest.approx(1.0) for frame in by_title.values())
    row = sweep.sizes_table(whole).set_index(["Load", "Threads"]).loc[("64K write", 12)]
    assert list(row) == ["0.65 *", "1.00 *", "0.78 *"]


@pytest.mark.long
def test_words_say_what_limits_predict_and_count_a_cell_once(whole: Analysis) -> None:
    lines = sweep.words(whole)
    assert lines[0].startswith("20 cells are 20 findings") and "one replicate" in lines[-1]
    assert any("predict 4 of their ratios" in line for line in lines)
    assert sum("has the owner answer all reads" in line for line in lines) == 5
    (counted,) = s2d_azure.findings_counted(whole)
    assert counted.startswith("9 comparisons are 7 findings (2 of the comparisons")


@pytest.mark.long
def test_reads_are_answered_where_it_was_planted(whole: Analysis) -> None:
    shares = sweep.wire_shares(whole)
    known = shares[shares["share"].notna()]
    assert set(known["by"]) == {"counters", "plateau"}
    assert known["share"].to_numpy() == pytest.approx(whole_truth().local_share, abs=0.03)
    table = sweep.wire_table(whole).set_index(["Arm", "Load"])
    assert table.loc[("S2D, 3 nodes", "4K write"), "Owner sends"] == pytest.approx(2.04)
    assert "share of reads that the owner answers itself: 60 %" in sweep.wire_words(whole)[0]


def test_eight_disks_do_no_more_for_one_thread(whole: Analysis) -> None:
    assert all("equal within 5 %" in line for line in s2d_azure.more_disks(whole))


def test_another_owner_costs_a_hop_each_way(whole: Analysis) -> None:
    rows = whole.comparisons
    row = rows[
        (rows["arm"] == "s2d-3-remote")
        & (rows["workload"] == "read-4k-qd1")
        & (rows["scope"] == "these disks")
    ]
    assert row["diff_ms"].iloc[0] == pytest.approx(2 * whole_truth().hop_ms, abs=0.1)


def test_machines_of_one_replicate_have_no_verdict(whole: Analysis) -> None:
    rows = whole.comparisons
    of_machines = rows[(rows["arm"] == "s2d-3") & (rows["base_arm"] == "ss-4")]
    assert set(of_machines["verdict"]) <= {"inconclusive", "capped", "invalid"}


def test_knees_and_what_lasts_are_shown(whole: Analysis) -> None:
    knees = sweep.chosen_knees(whole).set_index(sweep.CURVE)
    assert knees.loc[("ss-4", "write", 4096), "knee"] == pytest.approx(82.2, rel=0.05)
    assert knees.loc[("ss-4", "write", 65536), "limit"] == "cap_disk_mb_s"
    shown = s2d_azure.binding_table(whole)
    assert "full credit carries it for 13.0 h, then the VM uncached limit of 768 MB/s" in shown
    assert "base: it lasts" in shown and "10.1, 95 % CI " in s2d_azure.knee_table(whole)


def test_the_decision_has_what_lasts_and_what_it_costs(whole: Analysis) -> None:
    table = decision.decision(whole).set_index("Option")
    server, cluster = table.iloc[0], table.loc["S2D, 3 nodes, three-way mirror (3 x D16s_v5)"]
    assert (server["Lasting write IOPS"], server["Lasting write MB/s"]) == (20_000, pytest.approx(768))
    assert server["USD a month"] == pytest.approx(3071, rel=0.01)
    assert cluster["USD a usable TiB"] == pytest.approx(1353, rel=0.01)
    assert (
        "emulated" in cluster["Depth-1 write, ms"]
        and "sample-shared-zrs" in table.iloc[4]["Depth-1 write, ms"]
    )
    assert (table.loc[list(decision.ELSEWHERE), "Depth-1 write, ms"] == decision.NOT_MEASURED).all()
    assert (
        any("99.9" in str(value) for value in table["Documented SLA"])
        and "2020-07" in decision.sources(whole)[1]
    )


def test_a_sample_that_is_not_there_is_not_measured(tmp_path: Path) -> None:
    assert decision._of_run(decision.Measured("zrs-n1", "none"), tmp_path) == decision.NOT_MEASURED


@pytest.mark.long
def test_every_answer_is_of_a_claim(whole: Analysis) -> None:
    judged = published_claims.judge(published.assess(published.read()))
    of_article = judged[judged["article"] == s2d_azure.ARTICLE]["claim"].tolist()
    for start in s2d_azure.answers(whole):
        assert any(claim.startswith(start) for claim in of_article), start
    table = s2d_azure.claims_table(whole)
    assert "Here (emulated)" in table and "Knees of one server: 4K" in table


def test_readers_questions_are_answered_with_numbers() -> None:
    table = s2d_azure.readers_table()
    for number in (
        "48 MB/s",
        "16 %",
        "144,000",
        "36 and 17 %",
        "205 I/Os",
        "76.8",
        "25.6",
        "SMB share",
        "no host cache",
    ):
        assert number in table


@pytest.mark.long
def test_the_notebook_runs_with_one_server_alone(tmp_path: Path) -> None:
    """Without a cluster, another owner and eight disks; tests/publish/test_samples.py reads the sample."""
    a = analysed(tmp_path / "run", blocks=2, without=("ss-8", "s2d-3", "s2d-3-remote"))
    run_cells("s2d-azure", a)
    assert "no interval from fewer than 3 blocks" in s2d_azure.knee_table(a).lower()
