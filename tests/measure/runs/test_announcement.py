"""What a run says before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.facts.units import duration
from diskbook.measure.runs import pipeline, stages
from diskbook.results import plan as plans
from diskbook.results.run import Run


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    return stages.begin("soon", "zone-disks", preset="quick")


def test_it_says_what_how_long_and_what_it_costs(begun: Run) -> None:
    first, second = pipeline.announcement(begun).splitlines()
    assert (
        first
        == "it will create 3 machines and 5 disks, measure 88 trials, analyse them, delete everything again"
    )
    time = duration(sum(pipeline.stage_seconds(begun).values()))
    assert second.startswith(f"it takes about {time}; it costs nothing (on Azure about ")
    assert "keep the machines" in pipeline.announcement(begun, keep=True)


def test_trials_take_most_of_the_time(begun: Run) -> None:
    expected = pipeline.stage_seconds(begun)
    assert list(expected) == ["1", "2", "3", "4"] and expected["2"] > sum(expected.values()) / 2


def test_a_run_that_goes_on_counts_what_is_left(begun: Run) -> None:
    before = pipeline.stage_seconds(begun)["2"]
    block = plans.blocks_of(begun)[0]
    begun.update_manifest(replicates=[{"replicate": 1}])
    begun.append("block", replicate=1, block=block.block, status="complete")
    planned, left = pipeline.count_trials(begun)
    assert (planned, left) == (88, 88 - len(block.trials))
    assert f"measure {left} of 88 trials" in pipeline.announcement(begun)
    assert pipeline.stage_seconds(begun)["2"] < before
