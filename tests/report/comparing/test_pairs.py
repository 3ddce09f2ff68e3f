"""What two runs say of each other: no difference where there is none or none can be shown."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from diskbook.design.vocabulary import Scope, Verdict
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.report.analysis import write
from diskbook.report.analysis.run import analyse
from diskbook.report.comparing import compared
from diskbook.report.comparing.pairs import Pair, estimate_of
from diskbook.results.run import Run
from diskbook.stats import ratios
from support import beside
from support.shared import one_replicate

WRITE = ("zrs-z1", "lrs-z1", "randwrite-qd1", "write", "lat_mean_ms")
DEEP = ("zrs-z1", "lrs-z1", "randwrite-qd256", "write", "lat_mean_ms")


def of(*runs: Run) -> compared.Beside:
    return compared.compare([str(run.folder) for run in runs])


def pair(result: compared.Beside, key: tuple[str, ...] = WRITE) -> Pair:
    return next(item for item in result.pairs if item.key == key)


def test_two_null_runs_show_no_difference_and_null_against_default_does(runs: dict[str, Run]) -> None:
    same, other = of(runs["null-1"], runs["null-2"]), of(runs["null-1"], runs["default"])
    assert {item.verdict for item in same.pairs} <= {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE, None}
    ratio, low, high = pair(other).ratio
    assert pair(other).verdict is Verdict.DIFFERENCE and low < 3.2 / 1.3 < high and ratio > 2
    assert pair(other).scope is Scope.LIKE_THESE


def replicate(folder: Path, number: int, profile: str) -> Run:
    """A replicate of a sample as a run of its own, as measured on a profile of the emulator."""
    run = one_replicate(folder, number, "randwrite-qd1")
    run.update_manifest(emulator={**run.manifest["emulator"], "profile": profile})
    write.answers(analyse(run))
    return run


@pytest.mark.long
def test_a_measured_pair_of_one_replicate_each_holds_for_these_disks_and_gets_no_verdict(
    tmp_path: Path,
) -> None:
    profiles = ("null", "default")
    result = of(*(replicate(tmp_path / name, n, name) for n, name in enumerate(profiles, 1)))
    item = pair(result)
    assert item.scope is Scope.THESE and item.verdict is None and not math.isnan(item.ratio[0])
    assert "one replicate" in item.notes[0] and "measure 3 replicates or more" in item.notes[0]
    assert ("emulator profile", profiles) in [(row.what, row.values) for row in result.changes]


def test_runs_of_one_replicate_get_no_verdict_also_beside_one_of_more(runs: dict[str, Run]) -> None:
    item = pair(of(runs["default"], runs["single"]))
    assert item.scope is Scope.THESE and item.verdict is None and math.isnan(item.p)
    assert item.notes[0].startswith("B has one replicate") and not math.isnan(item.ratio[1])


@pytest.mark.long
def test_runs_of_2_replicates_get_an_interval_and_no_verdict(runs: dict[str, Run], tmp_path: Path) -> None:
    few = beside.measured(tmp_path / "few", 7, beside.times(1.2), n_replicates=2)
    item = pair(of(runs["default"], few))
    assert item.scope is Scope.LIKE_THESE and item.verdict is None and math.isnan(item.p)
    assert item.notes[0].startswith("B has 2 replicates, which show too little") and item.ratio[1] < 1.2
    assert item.estimate.df == 1


def test_a_capped_latency_has_no_ratio_of_ratios(runs: dict[str, Run]) -> None:
    item = pair(of(runs["default"], runs["again"]), DEEP)
    assert math.isnan(item.ratio[0]) and item.verdict is None
    assert item.notes[0].startswith("A and B: capped") and "measure at queue depth 1" in item.notes[0]


def test_the_printed_interval_gives_back_the_estimate() -> None:
    rng = np.random.default_rng(1)
    for estimate in ratios.estimates(rng.normal(0.5, 0.05, (4, 3))):
        row = {
            "ratio": estimate.ratio,
            "ci_low": estimate.low,
            "ci_high": estimate.high,
            "level": estimate.level,
            "df": estimate.df,
        }
        row |= {"scope": estimate.scope, "n_replicates": 4, "n_blocks": 12}
        again = estimate_of(row)
        assert again.mean == pytest.approx(math.log(estimate.ratio)) and again.df == estimate.df
        assert again.se == pytest.approx(estimate.log_se)
        older = estimate_of({name: value for name, value in row.items() if name != "df"})
        assert older.df == (3 if estimate.scope is Scope.LIKE_THESE else 8)


def test_emulated_beside_azure_is_refused(runs: dict[str, Run], tmp_path: Path) -> None:
    azure = beside.copied(runs["again"], tmp_path / "azure", provenance="azure")
    with pytest.raises(UsageError, match=r"default is emulated, azure is azure: what an emulator"):
        of(runs["default"], azure)


def test_what_asked_another_question_is_named_and_not_pooled(runs: dict[str, Run], tmp_path: Path) -> None:
    scenario = json.loads((runs["again"].folder / "manifest.json").read_text())["scenario"]
    for item in scenario["workload"]:
        if item["name"].startswith("randwrite"):
            item["block_size"] = 8192
    result = of(runs["default"], beside.copied(runs["again"], tmp_path / "large", scenario=scenario))
    assert WRITE not in {item.key for item in result.pairs}
    why = {item.why for item in result.left_out}
    assert why == {"it asked another question: workload: block_size is 8192, not 4096"}


def test_a_run_of_another_scenario_has_nothing_to_compare(runs: dict[str, Run]) -> None:
    with pytest.raises(UsageError, match=r"no run asked what default did \(sample-s2d-azure"):
        compared.compare([str(runs["default"].folder), str(paths.RUNS / "sample-s2d-azure")])
    three = compared.compare(
        [str(runs["default"].folder), str(runs["again"].folder), str(paths.RUNS / "sample-s2d-azure")]
    )
    assert [(item.run, item.what) for item in three.left_out] == [("sample-s2d-azure", "all of it")]


def test_zone_redundant_disks_that_answer_from_other_zones_get_no_verdict(
    runs: dict[str, Run], tmp_path: Path
) -> None:
    moved = beside.copied(runs["again"], tmp_path / "moved")
    table = pd.read_csv(moved.folder / "comparisons.csv")
    assert set(table.loc[table["workload"] == "randwrite-qd1", "nearest_zone"].dropna()) == {"westeurope-az2"}
    table["nearest_zone"] = table["nearest_zone"].replace("westeurope-az2", "westeurope-az3")
    table.to_csv(moved.folder / "comparisons.csv", index=False)
    item = pair(of(runs["default"], moved))
    assert item.verdict is None and "zones are strata, which are never mixed" in item.notes[0]


@pytest.mark.parametrize(
    ("names", "words"),
    [(["default"], "needs two runs or more"), (["default", "default"], "run default is named twice")],
)
def test_one_run_is_none_too_few(runs: dict[str, Run], names: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        compared.compare([str(runs[name].folder) for name in names])


def test_damaged_comparisons_are_said(runs: dict[str, Run], tmp_path: Path) -> None:
    broken = beside.copied(runs["again"], tmp_path / "broken")
    (broken.folder / "comparisons.csv").write_text("arm,verdict\nx,y\n")
    with pytest.raises(
        DiskbookError, match=r"comparisons\.csv: table comparisons: column 'base_arm' is missing"
    ):
        of(runs["default"], broken)


def test_settings_sizes_limits_and_versions_that_changed_are_listed(
    runs: dict[str, Run], tmp_path: Path
) -> None:
    manifest = json.loads((runs["again"].folder / "manifest.json").read_text())
    manifest["scenario"]["machine"][0]["size"] = "Standard_D8as_v4"
    manifest["scenario"]["scenario"]["region"] = "northeurope"
    manifest["versions"]["python"] = "3.13"
    manifest["replicates"][0]["disks"]["lrs"]["limits"] = {"iops": 7500}
    del manifest["run"]
    changed = beside.copied(runs["again"], tmp_path / "changed", **manifest)
    rows = {(row.kind, row.what): row.values for row in of(runs["default"], changed).changes}
    assert rows["size", "machine.vm1.size"] == ("Standard_D4as_v4", "Standard_D8as_v4")
    assert rows["region", "region"] == ("westeurope", "northeurope")
    assert rows["version", "python"] == ("3.11", "3.13") and rows["limit", "disk lrs: iops"] == ("–", "7500")
    assert not of(runs["default"], runs["again"]).changes


def test_a_copy_is_said_to_be_no_second_measurement(runs: dict[str, Run], tmp_path: Path) -> None:
    copy = beside.copied(runs["again"], tmp_path / "again")
    assert of(runs["again"], copy).remarks.startswith("A and B are one run")


def test_runs_of_others_are_compared_with_ours_with_a_sentence_that_says_so(
    runs: dict[str, Run], tmp_path: Path
) -> None:
    """Two of others alone get none; emulated ones are refused beside either."""
    theirs = beside.copied(runs["again"], tmp_path / "theirs", provenance="imported")
    ours = beside.copied(runs["default"], tmp_path / "ours", provenance="azure")
    told = of(theirs, ours).remarks
    assert told.startswith("A measured by others, the rest by us: a change may be one of method, tool or")
    other = beside.copied(runs["default"], tmp_path / "other", provenance="imported")
    assert "by us" not in of(theirs, other).remarks
    for real in (theirs, ours):
        with pytest.raises(UsageError, match="emulat"):
            of(real, runs["again"])
