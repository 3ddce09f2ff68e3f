"""The plan of a run: written before the first trial, kept, and what of it is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diskbook.design import attachments, scenario_file, schedule
from diskbook.facts.errors import DiskbookError
from diskbook.results import plan as plans, run as runs
from diskbook.results.run import Run
from diskbook.stats import expected
from support import SCENARIOS, synthetic
from support.manifests import MINIMAL


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    made = runs.create("one")
    scenario = synthetic.every_block("quick", {"design.replicates": 2})
    replicates = [{"replicate": 1, "origin": 1}, {"replicate": 3, "origin": 2}]
    made.write_manifest(
        {
            **MINIMAL,
            "run": "one",
            "scenario": scenario.model_dump(mode="json"),
            "replicates": replicates,
        }
    )
    return made


def complete(run: Run, replicate: int, block: int, status: str = "complete") -> None:
    run.append("block", replicate=replicate, block=block, status=status)


def test_the_plan_is_that_of_the_scenario_and_stays(run: Run) -> None:
    plans.write(run)
    assert plans.blocks_of(run) == schedule.plan(run.scenario)
    assert not plans.is_scenario_changed(run)
    (event,) = [row for row in run.ledger() if row["event"] == "plan"]
    assert event["blocks"] == len(schedule.plan(run.scenario)) == 8


def test_trials_right_after_an_attach_are_part_of_the_plan(run: Run) -> None:
    scenario = scenario_file.load(str(SCENARIOS / "moved.toml"), "quick", {"design.settle_s": 120})
    run.update_manifest(scenario=scenario.model_dump(mode="json"))
    plans.write(run)
    blocks = plans.blocks_of(run)
    assert blocks == attachments.plan_after_attach(scenario)
    assert [trial.early for trial in blocks[0].trials] == [True, False] * 3


def test_a_run_from_before_there_were_plans_keeps_its_order(run: Run) -> None:
    assert plans.blocks_of(run) == schedule.plan(run.scenario, balanced=False) != schedule.plan(run.scenario)
    assert not plans.is_scenario_changed(run)


def test_what_is_complete_counts_on_whichever_machines(run: Run) -> None:
    plans.write(run)
    assert plans.progress(run) == plans.Progress(8, 0, 0)
    for block in (1, 2, 3, 4):
        complete(run, 3, block)  # the second machines of planned replicate 2
    assert plans.progress(run) == plans.Progress(8, 4, 1)
    complete(run, 1, 1)
    complete(run, 1, 1)
    complete(run, 1, 2, "begun")
    complete(run, 7, 3)  # of no replicate
    assert plans.progress(run) == plans.Progress(8, 5, 0)
    assert [block.block for block in plans.remaining(run, 1)] == [2, 3, 4]
    assert plans.remaining(run, 2) == []
    for block in (2, 3, 4):
        complete(run, 1, block)
    progress = plans.progress(run)
    assert progress.complete == progress.planned


def test_looks_in_blocks_are_part_of_the_plan_and_end_it(run: Run) -> None:
    asked = {"design.replicates": 1, "design.looks": [2, 4], "design.look_unit": "blocks"}
    run.update_manifest(scenario=synthetic.every_block("quick", asked).model_dump(mode="json"))
    plans.write(run)
    looks = json.loads((run.folder / plans.FILE).read_text())["looks"]
    assert (looks["unit"], looks["after"]) == ("blocks", [2, 4])
    assert 0.02 < looks["levels"][-1] < 0.05 and looks["levels"] == sorted(looks["levels"])
    for block in (1, 2):
        complete(run, 1, block)
    assert plans.progress(run) == plans.Progress(4, 2, 2)
    run.append("look", stops=False)
    assert [block.block for block in plans.remaining(run, 1)] == [3, 4]
    run.append("look", stops=True)
    assert plans.remaining(run, 1) == []


@pytest.mark.parametrize("change", ["other", "gone", "twice"])
def test_another_plan_than_the_one_it_began_with_is_refused(run: Run, change: str) -> None:
    plans.write(run)
    path = run.folder / plans.FILE
    if change == "gone":
        path.unlink()
    elif change == "other":
        path.write_text(path.read_text().replace('"block":4', '"block":5'))
    else:
        run.append("plan", sha256="0" * 64, blocks=8)
    with pytest.raises(DiskbookError, match="is not the plan that the run began with; restore it"):
        plans.blocks_of(run)


def test_families_that_are_relabelled_afterwards_are_noticed(run: Run) -> None:
    plans.write(run)
    scenario = json.loads(json.dumps(run.manifest["scenario"]))
    scenario["comparison"][0]["family"] = "secondary"
    run.update_manifest(scenario=scenario)
    assert plans.is_scenario_changed(run)


def test_trials_for_evidence_are_planned_kept_and_no_part_of_what_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was cut during them resumes those that are missing."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    made = runs.create("evidence")
    scenario = scenario_file.load("zone-disks", "quick", {"design.evidence_s": 150})
    manifest = {**MINIMAL, "run": "evidence", "scenario": scenario.model_dump(mode="json")}
    made.write_manifest({**manifest, "replicates": [{"replicate": 1, "origin": 1}]})
    plans.write(made)
    compared = [block for block in plans.blocks_of(made) if not block.evidence]
    alone = [block for block in plans.blocks_of(made) if block.evidence]
    assert compared == schedule.plan(scenario) and alone == expected.blocks(scenario) and len(alone) > 2
    for block in [*compared, alone[0]]:
        complete(made, 1, block.block)
    assert plans.remaining(made, 1) == alone[1:]
    done = plans.progress(made)
    assert (done.planned, done.complete, done.whole) == (len(compared), len(compared), 1)


def test_blocks_keep_their_placement_and_round_over_a_cut(tmp_path: Path) -> None:
    """A run that is resumed goes on in the order that was drawn, and its next blocks are those that lack."""
    scenario = scenario_file.load("zone-disks", "quick", {"design.replicates": 2})
    made = Run(tmp_path)
    rows = [{"replicate": number, "origin": number} for number in (1, 2)]
    made.write_manifest(
        {**MINIMAL, "run": "one", "scenario": scenario.model_dump(mode="json"), "replicates": rows}
    )
    plans.write(made)
    planned = schedule.plan(scenario)
    assert plans.blocks_of(made) == planned and len(planned) == 2 * 3 * 4
    for block in range(1, 6):
        complete(made, 2, block)
    left = plans.remaining(made, 2)
    assert left == [block for block in planned if block.replicate == 2][5:]
    assert [block.block for block in left] == list(range(6, 13))
    assert {block.round for block in left} == {1, 2, 3, 4} - ({1} if left[0].round == 2 else set())
