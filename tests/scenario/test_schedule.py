"""The plan of a run: balanced, random, reproducible."""

from __future__ import annotations

from collections import Counter

from diskbook import load
from diskbook.scenario import schedule


def _plan(**overrides: object) -> list[schedule.Block]:
    changes = {key.replace("__", "."): value for key, value in overrides.items()}
    return schedule.plan(load.load("zone-disks", "quick", changes))


def test_every_cell_comes_as_often_as_its_blocks_and_repeats_say() -> None:
    blocks = _plan(design__repeats=2, design__replicates=3)
    counts = Counter((trial.arm, trial.workload) for block in blocks for trial in block.trials)
    for (_, workload), count in counts.items():
        assert count == 2 * 3 * (1 if workload.endswith("256") else 4)
    assert len(counts) == 5 * 5


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
