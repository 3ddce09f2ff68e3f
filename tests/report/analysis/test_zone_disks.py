"""The answer of `zone-disks`: yes or no for latency and for IOPS, with the reason, zone by zone."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.design import scenario_file
from diskbook.report.analysis import answer, write
from diskbook.report.analysis.run import Analysis, analyse
from support import synthetic

SLOWER = dict(synthetic.BY_ZONE)
ALIKE = dict.fromkeys(SLOWER, synthetic.ONE_LRS["lrs-z1"])


def answered(folder: Path, latencies: dict[str, dict[str, float]]) -> Analysis:
    """A made-up run of four blocks in each zone; at depth all arms sit on the cap of 5,000 IOPS."""
    scenario = scenario_file.load("zone-disks", "quick")
    truth = synthetic.Truth(latencies, trial=0.008)
    return analyse(synthetic.run_folder(folder / "run", scenario=scenario, truth=truth))


def test_it_costs_latency_from_each_zone_and_no_iops(tmp_path: Path) -> None:
    text = answered(tmp_path, SLOWER).headline
    latency, iops = text.split("Does it cost IOPS? ")
    assert latency.startswith(
        "emulated: does zone redundancy cost latency? Yes, against LRS on the same machine."
    )
    writes = latency.partition("Write latency at queue depth 1: ")[2].partition(". ")[0].split("; ")
    assert [round(float(part.split()[0]), 1) for part in writes] == [2.5, 2.5, 3.7]
    assert [part.rpartition(", ")[2] for part in writes] == [f"from zone {n} (az{n})" for n in (1, 2, 3)]
    assert "Read latency at queue depth 1: 1.9" in latency
    assert "Commit latency at queue depth 1: 2.2" in latency
    assert iops.startswith(
        "No: the rate at depth is that of LRS, because the disk limit of 5,000 IOPS sets it for both"
    )
    assert iops.count(" times, 95 % CI ") == 4


def test_equal_disks_are_a_plain_no(tmp_path: Path) -> None:
    text = answered(tmp_path, ALIKE).headline
    assert (
        "cost latency? No, against LRS on the same machine. Write latency at queue depth 1: the same from"
        in text
    )
    assert "Does it cost IOPS? No: " in text


def test_a_rate_is_judged_on_a_cap_and_a_latency_is_not(tmp_path: Path) -> None:
    table = answered(tmp_path, SLOWER).comparisons
    deep = table[(table["workload"] == "randwrite-qd256") & (table["scope"] == "these disks")]
    by_metric = deep.groupby("metric")["verdict"].agg(set)
    assert by_metric["iops"] == {"equivalent within 5 %"} and by_metric["lat_mean_ms"] == {"capped"}
    rates = deep[deep["metric"] == "iops"]
    assert (
        rates["warnings"]
        .str.contains("both arms sit on the disk limit of 5,000 IOPS, which sets the rate")
        .all()
    )
    assert not rates["warnings"].str.contains("latency").any()


def test_a_zone_that_was_not_measured_is_not_decided(tmp_path: Path) -> None:
    without = {arm: values for arm, values in SLOWER.items() if arm != "lrs-z3"}
    text = answered(tmp_path, without).headline
    assert "cost latency? Yes" in text and "not decided from zone 3 (az3)" in text
    assert "Does it cost IOPS? Not decided for writes from zone 3 (az3)" in text


def test_the_list_has_the_answer_of_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = answered(tmp_path, SLOWER)
    monkeypatch.setattr(write, "export_figures", lambda *_: [])
    write.results(a)
    assert answer.of_run(a.run) == a.headline


def test_a_run_with_a_move_in_every_block_keeps_its_answer(tmp_path: Path) -> None:
    a = analyse(synthetic.run_folder(tmp_path / "run"))
    assert a.own_headline == ""
    assert a.headline.startswith(
        "emulated: write latency at queue depth 1 of ZRS from zone 1 is higher than that of LRS"
    )
