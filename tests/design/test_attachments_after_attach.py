"""Trials right after an attach: one a visit, of the headline loads in turn, and only where disks settle."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest

from diskbook.design import attachments, scenario_file, schedule
from diskbook.design.model import Scenario
from support import SCENARIOS


def _settled(repeats: int = 1, settle_s: float = 120) -> Scenario:
    """A disk that moves and one that stays, with two headline loads and another one."""
    numbers = {"design.repeats": repeats, "design.settle_s": settle_s, "all_workloads.blocks": 6}
    scenario = scenario_file.load(str(SCENARIOS / "moved.toml"), "quick", numbers)
    (write,), (compared,) = scenario.workload, scenario.comparison
    names, families = ("write-qd1", "read-qd1", "other"), ("headline", "headline", "exploratory")
    changes = {
        "workload": [write.model_copy(update={"name": name}) for name in names],
        "comparison": [
            compared.model_copy(update={"workload": name, "family": family})
            for name, family in zip(names, families, strict=True)
        ],
    }
    return scenario.model_copy(update={key: tuple(items) for key, items in changes.items()})


@pytest.mark.parametrize("repeats", [1, 2])
def test_each_visit_begins_with_a_trial_right_after_the_attach(repeats: int) -> None:
    scenario = _settled(repeats)
    for block in attachments.plan_after_attach(scenario):
        visits = groupby(block.trials, key=lambda trial: (trial.repeat, trial.arm))
        assert all([trial.early for trial in trials].index(False) <= 1 for _, trials in visits)
        begun = [trial.position for trial in block.trials if trial.early]
        assert begun and set(begun) <= set(attachments.cycles(scenario, block))
        assert [trial.position for trial in block.trials] == list(range(1, len(block.trials) + 1))
        of_loads = {trial.workload for trial in block.trials if trial.early and trial.repeat == 1}
        assert len(of_loads) == 1  # the same one for all arms


def test_headline_loads_take_turns_and_arms_have_as_many() -> None:
    plan = attachments.plan_after_attach(_settled())
    times = Counter((trial.arm, trial.workload) for block in plan for trial in block.trials if trial.early)
    arms = ("lrs-z1", "zrs-z1", "zrs-z2")
    assert times == dict.fromkeys(((arm, name) for arm in arms for name in ("write-qd1", "read-qd1")), 3)


def test_the_compared_trials_stay_as_they_are() -> None:
    scenario = _settled()
    for planned, block in zip(schedule.plan(scenario), attachments.plan_after_attach(scenario), strict=True):
        kept = [(trial.repeat, trial.arm, trial.workload) for trial in block.trials if not trial.early]
        assert kept == [(trial.repeat, trial.arm, trial.workload) for trial in planned.trials]


@pytest.mark.parametrize(
    "scenario",
    [scenario_file.load("disk-options", "standard"), _settled(settle_s=0)],
)
def test_there_is_none_without_settling_or_without_attaches(scenario: Scenario) -> None:
    assert attachments.plan_after_attach(scenario) == schedule.plan(scenario)


@pytest.mark.parametrize("preset", ["standard", "full"])
@pytest.mark.parametrize("name", ["zone-disks", "shared-zrs", "disk-options"])
def test_disks_that_are_compared_settle_by_default(name: str, preset: str) -> None:
    assert scenario_file.load(name, preset).design.settle_s == 120
    assert scenario_file.load(name, "quick").design.settle_s == 0
