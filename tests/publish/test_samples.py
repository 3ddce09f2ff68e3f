"""The committed sample runs: whole, small, labelled, and read by the notebook of their scenario."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest

from diskbook.design import scenario_file
from diskbook.facts import paths
from diskbook.publish import post
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.show import lead
from diskbook.results import tables
from diskbook.results.run import Run
from support.notebooks import run_cells

MOST_BYTES = 5_000_000  # logs of every I/O of held rates take 1.3 MB of the largest one
DRAWN = {".png", ".svg", ""}  # stand in figures/ as well, and are not committed here
NAMES = scenario_file.sampled()


@pytest.fixture(scope="module", params=NAMES)
def copy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A copy of a sample, since an analysis writes into its run."""
    target = tmp_path_factory.mktemp("samples") / f"sample-{request.param}"
    shutil.copytree(paths.RUNS / target.name, target)
    return Run(target)


@pytest.fixture(scope="module")
def a(copy: Run) -> Analysis:
    return analyse(copy)


def test_a_scenario_with_a_sample_is_one_that_can_be_run() -> None:
    assert set(NAMES) <= set(scenario_file.names())
    assert {path.name for path in paths.RUNS.glob("sample-*")} == {f"sample-{name}" for name in NAMES}


@pytest.mark.long
def test_a_sample_is_small_finished_and_emulated(copy: Run) -> None:
    size = sum(path.stat().st_size for path in copy.folder.rglob("*") if path.suffix not in DRAWN)
    assert size <= MOST_BYTES
    assert copy.manifest["provenance"] == "emulated" and copy.done("benchmark") and copy.done("teardown")
    assert all(row["deleted_utc"] for row in copy.manifest["resource_groups"])
    assert not (copy.folder / "keys").exists() and "EMULATED" in (copy.folder / "report.html").read_text()


def test_a_sample_was_made_by_the_scenario_as_it_stands(copy: Run) -> None:
    made, name = copy.manifest["scenario"], copy.manifest["scenario"]["name"]
    now = scenario_file.load(name, scenario_file.SAMPLE).model_dump(mode="json")
    for kind in ("machine", "disk", "arm", "workload", "comparison"):
        assert len(made[kind]) == len(now[kind])
        for one, other in zip(made[kind], now[kind], strict=True):
            # A key that was added since has its default then; "any" tool was fio before; labels may change.
            known = one.keys() - {"tool", "label"}
            assert {key: one[key] for key in known} == {key: other[key] for key in known}


def test_its_tables_are_those_of_its_raw_results(a: Analysis) -> None:
    """Other tests read them. Python 3.12 and later add floats more exactly: the last digit may differ."""
    committed = tables.read(paths.RUNS / a.run.name)
    for name in ("trials", "bins", "series", "guest"):
        pd.testing.assert_frame_equal(getattr(committed, name), getattr(a.tables, name), rtol=1e-14, atol=0)


@pytest.mark.long
def test_every_trial_succeeded(a: Analysis) -> None:
    assert set(a.trials["status"]) == {"ok"} and len(lead.answers(a)) >= 3


@pytest.mark.long
def test_the_committed_post_is_that_of_the_sample(a: Analysis) -> None:
    name = a.scenario.name
    renew = f"'diskbook post sample-{name}' writes it again, 'make samples' those of all samples"
    files = post.contents(a)
    there = {f"{name}/{path.name}" for path in (paths.POSTS / name).glob("*")}
    assert there | {f"{name}.md"} == files.keys(), renew
    for path, content in files.items():
        assert (paths.POSTS / path).read_bytes() == content, f"docs/posts/{path}: {renew}"


def test_its_post_says_at_once_that_it_is_emulated(copy: Run) -> None:
    words = (paths.POSTS / f"{copy.scenario.name}.md").read_text("utf-8")
    title, first, *_ = [line for line in words.split("\n---\n", 1)[1].splitlines() if line]
    assert title.startswith("# On the emulator, ") and first.startswith("On the emulator, ")
    assert words.count("![") == 2 and words.count("\n| --- |") == 1


@pytest.mark.long
def test_arms_on_two_machines_once_measured_are_no_finding(a: Analysis) -> None:
    """Among them h-plain / h-nic-off of disk-options: 0.90 times, which is the machines' own noise."""
    apart = a.comparisons["pairing"] != "same-machine"
    rows = a.comparisons[apart & (a.comparisons["n_replicates"] == 1)]
    assert set(rows["verdict"]) <= {"inconclusive", "capped", "saturated", "invalid"}
    if a.scenario.name == "disk-options":
        row = rows[(rows["base_arm"] == "h-nic-off") & (rows["scope"] == "these disks")].iloc[0]
        assert row["verdict"] in ("inconclusive", "invalid") and "different machines" in row["warnings"]
        assert "h-nic-off" not in set(a.percentile_ratios["base_arm"])


@pytest.mark.whole
def test_the_notebook_of_the_scenario_reads_it(a: Analysis) -> None:
    run_cells(a.scenario.name, a)
