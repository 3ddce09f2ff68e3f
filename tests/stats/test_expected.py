"""Which cells are measured once more for the platform's metrics: those that may sit on a limit, no others."""

from __future__ import annotations

import pytest

from diskbook.design import scenario_file, schedule
from diskbook.design.model import Scenario
from diskbook.facts.errors import UsageError
from diskbook.stats import expected


@pytest.fixture(scope="module")
def zones() -> Scenario:
    return scenario_file.load("zone-disks", "standard")


def test_each_cell_that_may_sit_on_a_limit_has_one_trial(zones: Scenario) -> None:
    chosen = expected.of(zones)
    deep = {"randread-qd256", "randwrite-qd256"}
    assert set(chosen.cells) == {(arm.name, load.name) for arm, load in zones.cells if load.name in deep}
    assert set(chosen.reasons) | set(chosen.cells) == {(arm.name, load.name) for arm, load in zones.cells}
    planned = [(block.trials[0].arm, block.trials[0].workload) for block in expected.blocks(zones)]
    assert sorted(planned) == sorted(chosen.cells)


def test_they_come_after_all_that_is_compared_spread_over_replicates(zones: Scenario) -> None:
    last = max(block.block for block in schedule.plan(zones))
    blocks = expected.blocks(zones)
    assert all(block.evidence and block.block > last and len(block.trials) == 1 for block in blocks)
    by_replicate = [sum(block.replicate == number for block in blocks) for number in (1, 2, 3)]
    assert by_replicate == [3, 3, 2]
    assert len({(block.replicate, block.block) for block in blocks}) == len(blocks)
    assert expected.seconds(zones) == pytest.approx(3 * (30 + 150 + 0.6))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"region": "unwritten"}, "written before"),
        ({"cache_state": "cold"}, "cold cache"),
        ({"runtime_s": 2400.0}, "its own trials of 2400 s hold whole minutes"),
        ({"rate": 4000.0}, "below every limit"),
    ],
)
def test_a_cell_without_one_has_a_reason(zones: Scenario, changes: dict, why: str) -> None:
    loads = tuple(
        item.model_copy(update=changes) if item.name == "randread-qd256" else item for item in zones.workload
    )
    chosen = expected.of(zones.model_copy(update={"workload": loads}))
    assert why in chosen.reasons["lrs-z1", "randread-qd256"]


@pytest.mark.parametrize(("rate", "held"), [(4700.0, False), (4800.0, True)])
def test_a_held_rate_close_to_the_limit_may_sit_on_it(zones: Scenario, rate: float, held: bool) -> None:
    """A P30 has 5,000 IOPS; from 95 % on a cell may sit on a limit."""
    loads = tuple(
        item.model_copy(update={"rate": rate}) if item.name == "randread-qd256" else item
        for item in zones.workload
    )
    chosen = expected.of(zones.model_copy(update={"workload": loads}))
    assert (("lrs-z1", "randread-qd256") in chosen.cells) == held


def test_of_volumes_the_cell_that_asks_most_of_a_machine_has_it() -> None:
    volumes = scenario_file.load("s2d-azure", "standard")
    chosen = expected.of(volumes)
    assert chosen.cells == (("ss-4", "read-64k-18x8"), ("s2d-3", "write-64k-18x8"))
    assert chosen.reasons["ss-4", "write-64k-18x8"].startswith("ss-4, read-64k-18x8 asks most")
    assert "disks of a pool" in chosen.reasons["ss-4", "read-4k-18x8"]


def test_quick_has_none_and_says_nothing_of_cells() -> None:
    quick = scenario_file.load("zone-disks", "quick")
    assert expected.blocks(quick) == [] and expected.seconds(quick) == 0 and expected.reasons(quick, ()) == {}


def test_a_trial_that_was_not_made_is_said(zones: Scenario) -> None:
    chosen = expected.of(zones).cells
    reasons = expected.reasons(zones, chosen[1:])
    assert "failed, or was not made" in reasons[chosen[0]] and chosen[1] not in reasons


def test_a_disk_of_ones_own_has_no_limit_and_so_none() -> None:
    zones = scenario_file.load("zone-disks", "standard")
    disks = tuple(item.model_copy(update={"sku": "own-disk"}) for item in zones.disk)
    assert expected.of(zones.model_copy(update={"disk": disks})).cells == ()


@pytest.mark.parametrize("seconds", [30, 119.9])
def test_a_trial_that_may_hold_no_minute_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match=r"evidence_s.*may hold no whole minute .* write 120 or more, or 0"):
        scenario_file.load("zone-disks", "standard", {"design.evidence_s": seconds})


def test_a_trial_for_evidence_offers_the_same_load_for_longer(zones: Scenario) -> None:
    trial = expected.blocks(zones)[0].trials[0]
    plain = zones.workload_named(trial.workload)
    assert schedule.offered(zones, trial) == plain.model_copy(update={"runtime_s": 150.0})
