"""shared-zrs: the zone that a shared disk answers from is found as it was planted; its cap is called one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from diskbook.clusters.analysis import shared_zrs
from diskbook.design import scenario_file
from diskbook.report.analysis import published, published_compared
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.show import lead
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook.stats.zone_probe import probe
from support import SCENARIOS, emulated, played, samples

SHARED = str(SCENARIOS / "shared.toml")


@pytest.fixture(scope="module")
def measured() -> Iterator[tuple[Analysis, dict[str, Any]]]:
    """The small scenario on a profile without noise; runs and truth."""
    with emulated.own_place():
        folder = emulated.measured("shared", SHARED, "quiet")
        yield analyse(folder), json.loads((folder.folder / "truth.json").read_text())


@pytest.mark.emulator
def test_the_zone_that_answers_is_the_one_that_was_planted(
    measured: tuple[Analysis, dict[str, Any]],
) -> None:
    a, truth = measured
    home = next(row for row in truth["attachments"] if row["population"]["zone_relation"] == "home")
    machine = home["machine_id"].rsplit("/", 1)[-1].removeprefix("r1-")
    zone = a.manifest["replicates"][0]["machines"][machine]["physical_zone"]
    found = probe(played.as_drawn(a.tables, truth).trials).set_index("zone")
    assert found["lat_ms"].idxmin() == zone and found.loc[zone, "verdict"] == "nearest"
    others = sorted(found.drop(zone)["ratio"])
    assert others == [pytest.approx(3.2 / 2.2, rel=0.1), pytest.approx(4.3 / 2.2, rel=0.1)]


@pytest.mark.emulator
def test_words_and_tables(measured: tuple[Analysis, dict[str, Any]]) -> None:
    a = played.analysis_as_drawn(*measured)
    (said,) = shared_zrs.probe_words(a)
    assert said.startswith("emulated: r1-zrs (replicate 1) answers from zone ") and "95 % CI" in said
    machines = a.manifest["replicates"][0]["machines"].values()
    for zone in {f"zone {one['logical_zone']} ({one['physical_zone'].split('-')[-1]})" for one in machines}:
        assert zone in shared_zrs.probe_table(a) and zone in said
    assert shared_zrs.probe_table(a).count("<tr>") == 4


@pytest.mark.emulator
def test_write_through_is_noted_where_it_cannot_be_sent(measured: tuple[Analysis, dict[str, Any]]) -> None:
    a, _ = measured
    notes = [event.get("notes") or [] for event in a.run.ledger() if event["event"] == "trial"]
    assert any("no FUA" in note for one in notes for note in one)


@pytest.fixture(scope="module")
def sample() -> Analysis:
    return samples.analysed("shared-zrs")


@pytest.mark.long
def test_the_articles_load_sits_on_the_cap(sample: Analysis) -> None:
    claims = shared_zrs.claims_table(sample)
    assert "2 % overhead" in claims and "Capped" in claims and "in three zones" in claims
    assert "Here (emulated)" in claims and "Read from 3 zones" in claims and "Nothing" not in claims
    rows = sample.comparisons[sample.comparisons["workload"] == "article"]
    assert set(rows["verdict"]) == {"capped"} and rows["ratio"].isna().all()
    assert rows["warnings"].str.contains("40 outstanding / cap").all()
    rows = published_compared.beside(
        published.assess(published.read("shared-zrs")), sample.cells, sample.scenario, "emulated"
    )
    verdicts = rows.set_index(["published", "unit"])["verdict"]
    assert verdicts[("ZRS, remote zone, shared", "ms")].startswith("not comparable")
    assert verdicts[("ZRS, same zone, shared", "ms")] == "capped artefact"


@pytest.mark.long
def test_one_disk_from_two_machines_is_no_finding_with_one_replicate(sample: Analysis) -> None:
    """Reads from two zones differ by half or more: so may machines, as far as one replicate tells."""
    second = sample.tables.trials["replicate"] == 2
    a = replace(sample, tables=replace(sample.tables, trials=sample.tables.trials[second]))
    rows = a.comparisons[(a.comparisons["workload"] == "read-qd1") & (a.comparisons["arm"] != "zrs-n1")]
    assert set(rows["verdict"]) == {"inconclusive"} and set(rows["pairing"]) == {"same-disk"}
    these = rows[rows["scope"] == "these disks"]
    assert len(these) == 2 and (these["ci_low"] > 1).all()
    said = lead.answers(a)[-1]
    assert "may or may not differ" in said and "measure 2 replicates or more" in said
    assert "changes can tell nothing, since the machines may differ as well" in a.ratios.alt
    one_disk = a.percentile_ratios["arm"] != "zrs-n1"
    assert not one_disk.any()


KEYS = "keys 0xd15c0001; type 5 held by 0xd15c0001"
STEPS = (
    {"step": "the first reserves", "expected": KEYS, "observed": KEYS, "ok": True},
    {"step": "the second writes, unregistered", "expected": "refused", "observed": "written", "ok": False},
)


def with_findings(folder: Path, *findings: dict[str, Any]) -> Analysis:
    """An analysis of a run that did reservation checks and measured nothing."""
    folder.mkdir()
    run = Run(folder)
    for finding in findings:
        run.append("finding", name="shared-reservation", kind="reservation", **finding)
    scenario, nothing = scenario_file.load("shared-zrs", "quick"), pd.DataFrame()
    return Analysis(run, scenario, {"provenance": "emulated"}, tables.Tables(nothing, nothing, nothing))


def test_a_reservation_is_told_step_by_step_and_a_surprise_is_said(tmp_path: Path) -> None:
    a = with_findings(tmp_path / "run", {"replicate": 1, "ok": False, "steps": STEPS})
    rows = shared_zrs.reservation_steps(a).drop(columns=["Replicate", "Check"]).to_numpy().tolist()
    assert rows == [
        [1, "node1", "reserves the disk: from now on only registered machines may write",
         "keys of node1; reserved by node1", "yes"],
        [2, "node2", "writes, not registered", "written", "no, expected: refused"],
    ]  # fmt: skip
    assert ">Replicate</th>" not in shared_zrs.reservation_table(a)


def test_of_a_check_that_was_done_again_the_last_counts(tmp_path: Path) -> None:
    first, second = {"ok": False, "steps": STEPS}, {"ok": True, "steps": STEPS[:1]}
    a = with_findings(tmp_path / "run", first | {"replicate": 1}, second | {"replicate": 1})
    assert shared_zrs.reservation_steps(a)["As expected"].tolist() == ["yes"]
    b = with_findings(tmp_path / "two", second | {"replicate": 1}, second | {"replicate": 2})
    assert ">Replicate</th>" in shared_zrs.reservation_table(b)


def test_a_run_without_a_reservation_says_so(tmp_path: Path) -> None:
    assert "checked no reservation" in shared_zrs.reservation_table(with_findings(tmp_path / "run"))
