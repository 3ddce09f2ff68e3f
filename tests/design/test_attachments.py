"""Which disks are attached again in a block: all that a comparison joins equally often, others never."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest

from diskbook.design import attachments, scenario_file, schedule
from diskbook.design.model import Scenario
from support import synthetic

DISKS = {"zrs", "lrs", "lrs-b"}


def _scenario(**overrides: object) -> Scenario:
    changes = {key.replace("__", "."): value for key, value in overrides.items()}
    return synthetic.every_block("quick", changes)


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_disks_that_are_compared_are_attached_as_often(repeats: int) -> None:
    scenario = _scenario(design__repeats=repeats, design__replicates=2)
    for block in schedule.plan(scenario):
        counts = attachments.per_block(scenario, [block])
        assert counts == dict.fromkeys(DISKS, 3 * repeats)  # as many as the zone-redundant disk has visits


@pytest.mark.parametrize("repeats", [1, 2])
def test_every_visit_begins_right_after_an_attach(repeats: int) -> None:
    """An arm that ends one repeat and begins the next is attached again between them, as all others are."""
    scenario = _scenario(design__repeats=repeats)
    for block in schedule.plan(scenario):
        visits = groupby(block.trials, key=lambda trial: (trial.repeat, trial.arm))
        first = {next(trials).position for _, trials in visits}
        assert set(attachments.cycles(scenario, block)) == first


def test_the_rest_of_the_cycles_is_spread_over_visits() -> None:
    scenario = _scenario(design__repeats=2)
    arms = tuple(arm for arm in scenario.arm if arm.name != "zrs-z3")
    lone = scenario.model_copy(update={"arm": arms, "comparison": scenario.comparison[:1]})
    block = schedule.plan(lone)[0]
    by_arm = Counter[str]()
    for position, times in attachments.cycles(lone, block).items():
        by_arm[block.trials[position - 1].arm] += times
        assert times in (1, 2)
    assert by_arm == {"zrs-z1": 2, "zrs-z2": 2, "lrs-z1": 4}  # and lrs-b, which nothing is compared with: 0


def test_disks_that_stay_are_left_alone() -> None:
    for name in ("disk-options", "s2d-azure", "nested-resiliency"):
        scenario = scenario_file.load(name, "quick")
        assert not attachments.cycled(scenario)
        assert not any(attachments.cycles(scenario, block) for block in schedule.plan(scenario))


def test_a_disk_that_all_its_machines_share_does_not_move() -> None:
    scenario = _scenario()
    shared = tuple(
        disk.model_copy(update={"max_shares": 3}) if disk.name == "zrs" else disk for disk in scenario.disk
    )
    assert not attachments.cycled(scenario.model_copy(update={"disk": shared}))
    by_two = scenario_file.load("shared-zrs", "quick")
    arms = tuple(arm.model_copy(update={"placement": None}) for arm in by_two.arm)
    assert attachments.cycled(by_two.model_copy(update={"arm": arms})) == [{"zrs", "lrs"}]  # of 3 machines


def test_disks_are_filled_where_they_are_visited_first() -> None:
    scenario = _scenario()
    block = schedule.plan(scenario)[0]
    first = next(trial.arm for trial in block.trials if trial.arm.startswith("zrs"))
    places = [("lrs", "vm1"), ("lrs-b", "vm1"), ("zrs", scenario.arm_named(first).machine)]
    assert sorted(attachments.places_before(scenario, block)) == places


def test_disks_that_stay_are_attached_to_all_their_machines_before_the_first_block() -> None:
    scenario = scenario_file.load("disk-options", "quick")
    alone = {(arm.disk, arm.machine) for arm in scenario.arm if not scenario.disk_named(arm.disk).ephemeral}
    block = schedule.plan(scenario)[0]
    assert set(attachments.places_before(scenario, block)) == alone
    volumes = scenario_file.load("nested-resiliency", "quick")
    assert attachments.places_before(volumes, schedule.plan(volumes)[0]) == []


# --- placements: disks move between groups of blocks


@pytest.mark.parametrize("name", ["zone-disks", "shared-zrs"])
def test_with_placements_no_disk_is_attached_anew_in_a_block(name: str) -> None:
    scenario = scenario_file.load(name, "quick")
    assert not attachments.cycled(scenario)
    assert attachments.moved_between(scenario) == {"zrs"}
    assert not any(attachments.cycles(scenario, block) for block in schedule.plan(scenario))


@pytest.mark.parametrize("name", ["zone-disks", "shared-zrs"])
def test_all_disks_of_a_block_can_be_attached_at_the_same_time(name: str) -> None:
    """A disk has as many machines as it may have, and every other one is on its own from the first block."""
    scenario = scenario_file.load(name, "full")
    for block in schedule.plan(scenario):
        places = attachments.places_before(scenario, block)
        machines = Counter(disk for disk, _ in places)
        assert set(machines) == {disk.name for disk in scenario.disk}
        assert all(count <= scenario.disk_named(disk).max_shares for disk, count in machines.items())
        arms = {scenario.arm_named(trial.arm) for trial in block.trials}
        assert {(arm.disk, arm.machine) for arm in arms} <= set(places)


def test_a_trial_for_evidence_needs_its_own_disk_alone() -> None:
    scenario = scenario_file.load("zone-disks", "quick", {"design.evidence_s": 150})
    (block,) = schedule.evidence_blocks(scenario, [("zrs-z2", "randwrite-qd256")])
    assert attachments.places_before(scenario, block) == [("zrs", "vm2")]
