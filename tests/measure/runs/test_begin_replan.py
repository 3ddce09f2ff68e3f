"""Settings of a run that has measured nothing can change; others are refused with the reason."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from diskbook.facts.errors import UsageError
from diskbook.measure.runs.begin import begin, change_settings
from diskbook.results import plan as plans
from diskbook.results.run import Run
from support import SCENARIOS

SIZE = {"machine.vm1.size": "Standard_D8as_v4"}
GROUP = {"name": "diskbook-g-1-00000000", "deleted_utc": None}


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Scenario of the run, which a test may change."""
    return str(shutil.copy(SCENARIOS / "tiny.toml", tmp_path / "tiny.toml"))


@pytest.fixture
def run(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run that has begun, with nothing made for it."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    return begin("changed", file, overrides={"design.seed": 5})


def _refused(run: Run, file: str | None, settings: dict[str, Any]) -> str:
    before = run.manifest
    with pytest.raises(UsageError) as caught:
        change_settings(run, file, settings)
    assert run.manifest == before
    return str(caught.value)


def test_another_size_is_planned_and_signed(run: Run, file: str) -> None:
    run.update_manifest(
        images={"linux": "1.0.0"}, resource_groups=[{**GROUP, "deleted_utc": "2026-01-01T00:00:00+00:00"}]
    )
    change_settings(run, file, {**SIZE, "design.replicates": 2})
    scenario = run.scenario
    assert scenario.machine_named("vm1").size == "Standard_D8as_v4" and scenario.design.seed == 5
    assert run.is_signed and run.manifest["overrides"] == {"design.seed": 5, "design.replicates": 2, **SIZE}
    assert run.manifest["images"] == {} and run.manifest["resource_groups"]
    assert not plans.is_scenario_changed(run)
    assert {block.replicate for block in plans.blocks_of(run) if not block.evidence} == {1, 2}


def test_a_plan_that_is_written_after_a_trial_does_not_count(run: Run, file: str) -> None:
    run.append("trial", trial="t", status="failed")
    assert "it has trials" in _refused(run, file, SIZE)
    run.update_manifest(scenario={**run.manifest["scenario"], "preset": "full"})
    plans.write(run)
    with pytest.raises(Exception, match="is not the plan that the run began with"):
        plans.blocks_of(run)


def test_what_stands_goes_first(run: Run, file: str) -> None:
    run.update_manifest(resource_groups=[GROUP])
    assert "first 'diskbook teardown changed'" in _refused(run, file, SIZE)


def test_the_scenario_must_be_named_and_as_it_was(run: Run, file: str) -> None:
    assert "name it, 'diskbook run DIR/tiny.toml --resume changed" in _refused(run, None, SIZE)
    path = Path(file)
    path.write_text(path.read_text().replace("runtime_s = ", "runtime_s = 1"))
    assert "its scenario tiny is not as it was" in _refused(run, file, SIZE)


def test_settings_that_do_not_fit(run: Run, file: str) -> None:
    assert "no VM size 'Standard_X'" in _refused(run, file, {"machine.vm1.size": "Standard_X"})
    network = {"kind": "private", "subnet": "a/b", "resource_group": "g", "jump_host": "me@jump"}
    settings = {f"network.{key}": value for key, value in network.items()}
    assert "cannot change the network of run changed" in _refused(run, file, settings)


def test_a_run_of_no_cloud_keeps_its_settings(run: Run, file: str) -> None:
    run.update_manifest(cloud="inventory")
    assert "it uses no cloud" in _refused(run, file, SIZE)
