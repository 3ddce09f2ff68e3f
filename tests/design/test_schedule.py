"""The plan of a run: balanced, random, reproducible."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from diskbook.design import scenario_file, schedule
from diskbook.design.model import Scenario
from diskbook.facts.errors import DiskbookError
from support import synthetic


def _plan(**overrides: object) -> list[schedule.Block]:
    changes = {key.replace("__", "."): value for key, value in overrides.items()}
    return schedule.plan(synthetic.every_block("quick", changes))


def test_every_cell_comes_as_often_as_its_blocks_and_repeats_say() -> None:
    blocks = _plan(design__repeats=2, design__replicates=3)
    counts = Counter((trial.arm, trial.workload) for block in blocks for trial in block.trials)
    for (_, workload), count in counts.items():
        blocks_of = {"probe": 1, "qd256": 2}.get(workload.rpartition("-")[2], 4)
        assert count == 2 * 3 * blocks_of
    probes = [arm for arm, workload in counts if workload.endswith("probe")]
    assert len(counts) == 5 * 5 + len(probes)


def test_the_seed_alone_decides_the_order() -> None:
    assert _plan(design__seed=5) == _plan(design__seed=5)
    assert _plan(design__seed=5) != _plan(design__seed=6)


def test_more_replicates_do_not_change_the_first_ones() -> None:
    few, many = _plan(design__replicates=1), _plan(design__replicates=4)
    assert many[: len(few)] == few


def test_arms_come_in_a_random_order_then_in_its_reverse() -> None:
    orders = set()
    for block in _plan(design__repeats=2, design__replicates=10):
        arms = [trial.arm for trial in block.trials]
        half = list(dict.fromkeys(arms[: len(arms) // 2]))
        assert list(dict.fromkeys(arms[len(arms) // 2 :])) == half[::-1]
        orders.add(tuple(half))
    assert len(orders) > 10  # of 40 drawn


def test_names_are_unique_and_positions_count_up() -> None:
    trials = [trial for block in _plan(design__repeats=3) for trial in block.trials]
    assert len({trial.name(1) for trial in trials}) == len(trials)
    for block in _plan():
        assert [trial.position for trial in block.trials] == list(range(1, len(block.trials) + 1))


@pytest.mark.long
@pytest.mark.parametrize("n_arms", [2, 3, 5, 15])
def test_of_any_two_arms_each_leads_in_half_of_the_blocks(n_arms: int) -> None:
    for blocks, replicates in itertools.product(range(1, 7), [1, 2, 3, 5]):
        case = f"{blocks} blocks, {replicates} replicates"
        scenario = of_arms(n_arms, blocks, replicates)
        first = [
            list(dict.fromkeys(trial.arm for trial in block.trials)) for block in schedule.plan(scenario)
        ]
        assert len(first) == blocks * replicates, case
        for arm, other in itertools.combinations([arm.name for arm in scenario.arm], 2):
            leads = [order.index(arm) < order.index(other) for order in first]
            assert abs(2 * sum(leads) - len(first)) <= 1, case  # one more where odd
            for replicate in range(replicates):
                of_one = leads[replicate * blocks : (replicate + 1) * blocks]
                assert abs(2 * sum(of_one) - blocks) <= 1, case


def test_which_arm_leads_first_is_random() -> None:
    scenario = of_arms(2, 1, 1)
    firsts = Counter(
        schedule.plan(scenario.model_copy(update={"design": changed}))[0].trials[0].arm
        for changed in (scenario.design.model_copy(update={"seed": seed}) for seed in range(400))
    )
    assert len(firsts) == 2 and min(firsts.values()) > 160  # four standard deviations


def test_a_workload_of_few_blocks_is_as_balanced() -> None:
    blocks = _plan(design__replicates=4)
    first = [
        next(trial.arm for trial in block.trials if trial.workload.endswith("256") and trial.arm in PAIR)
        for block in blocks
        if any(trial.workload.endswith("256") for trial in block.trials)
    ]
    assert len(first) == 8 and Counter(first) == dict.fromkeys(PAIR, 4)


PAIR = ("lrs-z1", "zrs-z1")


def of_arms(n_arms: int, blocks: int, replicates: int) -> Scenario:
    """A scenario with as many arms; what they stand for does not matter to the plan."""
    scenario = scenario_file.load("zone-disks", "quick", {"design.replicates": replicates})
    arms = tuple(scenario.arm[0].model_copy(update={"name": f"arm{number}"}) for number in range(n_arms))
    workload = scenario.workload[0].model_copy(update={"blocks": blocks, "arms": None})
    return scenario.model_copy(update={"arm": arms, "workload": (workload,)})


def test_workloads_come_in_one_order_for_all_arms_of_a_repeat() -> None:
    orders = set()
    for block in _plan(design__repeats=2, design__replicates=4):
        for repeat in (1, 2):
            of_arm: dict[str, list[str]] = {}
            for trial in block.trials:
                if trial.repeat == repeat and not trial.workload.endswith("probe"):
                    of_arm.setdefault(trial.arm, []).append(trial.workload)
            assert len({tuple(order) for order in of_arm.values()}) == 1
            orders.add((len(block.trials), *of_arm["lrs-z1"]))
    assert len(orders) > 8  # of 32 drawn


# --- placements: which zone is measured when


def _by_zone(**overrides: object) -> list[schedule.Block]:
    changes = {key.replace("__", "."): value for key, value in overrides.items()}
    return schedule.plan(scenario_file.load("zone-disks", "quick", changes))


def zone_of(block: schedule.Block) -> str:
    """The zone of a block, which all of its arms share."""
    (zone,) = {trial.arm[-1] for trial in block.trials}
    return zone


def test_a_block_has_all_arms_of_one_placement() -> None:
    zones = {"1": {"lrs-z1", "lrs-b-z1", "zrs-z1"}, "2": {"lrs-z2", "zrs-z2"}, "3": {"lrs-z3", "zrs-z3"}}
    for block in _by_zone():
        assert {trial.arm for trial in block.trials} == zones[zone_of(block)]


@pytest.mark.parametrize("blocks", [1, 2, 4, 5, 10])
def test_placements_come_in_an_order_and_in_its_reverse(blocks: int) -> None:
    for number in (1, 2, 3):
        plan = [item for item in _by_zone(all_workloads__blocks=blocks, design__replicates=3)
                if item.replicate == number]  # fmt: skip
        assert [item.block for item in plan] == list(range(1, 3 * blocks + 1))
        groups = [zone for zone, _ in itertools.groupby(map(zone_of, plan))]
        assert groups == groups[::-1] if blocks > 1 else sorted(groups) == ["1", "2", "3"]
        assert len(groups) == (5 if blocks > 1 else 3)
        assert Counter(map(zone_of, plan)) == dict.fromkeys("123", blocks)


def test_the_order_of_placements_is_drawn_for_each_replicate() -> None:
    firsts = Counter(zone_of(block) for block in _by_zone(design__replicates=60) if block.block == 1)
    assert set(firsts) == set("123") and max(firsts.values()) < 35
    assert [zone_of(block) for block in _by_zone()] == [zone_of(block) for block in _by_zone()]


def test_rounds_number_the_blocks_of_each_placement() -> None:
    rounds: dict[str, list[int]] = {}
    for block in _by_zone():
        (number,) = {trial.round for trial in block.trials}
        rounds.setdefault(zone_of(block), []).append(number)
    assert rounds == {zone: [1, 2, 3, 4] for zone in "123"}
    assert {trial.round for block in _plan() for trial in block.trials} == {0}


def test_of_two_arms_of_a_placement_each_leads_in_half_of_the_blocks() -> None:
    for zone in "123":
        leads = [block.trials[0].arm for block in _by_zone(design__replicates=2) if zone_of(block) == zone]
        pair = [arm for arm in leads if not arm.startswith("lrs-b")]
        if zone != "1":
            assert Counter(pair) == {f"lrs-z{zone}": 4, f"zrs-z{zone}": 4}


def test_trials_for_evidence_come_after_all_blocks() -> None:
    scenario = scenario_file.load("zone-disks", "quick", {"design.evidence_s": 150})
    last = max(block.block for block in schedule.plan(scenario))
    assert [block.block for block in schedule.evidence_blocks(scenario, [("zrs-z2", "randwrite-qd256")])] == [
        last + 1
    ]
    assert last == schedule.n_blocks(scenario) == 12


def test_arms_have_placements_all_or_none() -> None:
    with pytest.raises(DiskbookError, match="zrs-z3: other arms have a placement and this one has none"):
        scenario_file.load("zone-disks", "quick", {"arm.zrs-z3.placement": None})
