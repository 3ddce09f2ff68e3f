"""Sweeps: a grid of loads in a file, what presets and overrides change of it, and what they leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diskbook.design import derived_workloads, scenario_file
from diskbook.design.model import Scenario
from diskbook.facts.errors import UsageError
from support import SCENARIOS

BASE = (SCENARIOS / "small.toml").read_text("utf-8")
GRID = {"name": "g", "threads": [1, 4], "block_sizes": ["4K", "64K"], "queue_depth": 8}


def names(*grids: dict[str, Any]) -> list[str]:
    return [row["name"] for row in derived_workloads.workloads({"sweep": list(grids)})]


def test_loads_are_named_for_what_they_are() -> None:
    assert names(GRID) == [
        *("read-4k-1x8", "read-4k-4x8", "write-4k-1x8", "write-4k-4x8"),
        *("read-64k-1x8", "read-64k-4x8", "write-64k-1x8", "write-64k-4x8"),
    ]
    assert names({**GRID, "threads": [2], "block_sizes": [512], "write_pcts": [30]}) == ["write30-512-2x8"]


def test_other_keys_are_those_of_every_load() -> None:
    rows = derived_workloads.workloads({"sweep": [{**GRID, "sync": "dsync", "blocks": 3}]})
    assert {(row["sync"], row["blocks"], row["queue_depth"]) for row in rows} == {("dsync", 3, 8)}


def test_loads_of_one_name_are_one_load_for_all_arms() -> None:
    more = {**GRID, "name": "h", "threads": [4], "block_sizes": ["4K"], "arms": ["b"]}
    rows = {
        row["name"]: row["arms"]
        for row in derived_workloads.workloads({"sweep": [{**GRID, "arms": ["a"]}, more]})
    }
    assert rows["read-4k-4x8"] == ["a", "b"] and rows["read-4k-1x8"] == ["a"]
    every = {row["name"]: row["arms"] for row in derived_workloads.workloads({"sweep": [GRID, more]})}
    assert every["read-4k-4x8"] == []
    with pytest.raises(ValueError, match="differs in more than arms; give both the same keys"):
        derived_workloads.workloads({"sweep": [GRID, {**more, "sync": "dsync"}]})


def written(place: Path, more: str) -> Path:
    path = place / "own.toml"
    path.write_text(f"{BASE}\n{more}", "utf-8")
    return path


def loaded(place: Path, more: str, preset: str = "quick", **overrides: Any) -> Scenario:
    return scenario_file.load(str(written(place, more)), preset, overrides)


SWEEP = """
[[sweep]]
name = "g"
threads = [1, 2, 4]
block_sizes = ["4K", "8K"]
queue_depth = 4
runtime_s = 2
"""


def grid_of(scenario: Scenario) -> list[str]:
    return [item.name for item in scenario.workload if item.name.endswith("x4")]


def test_presets_and_overrides_change_the_grid_and_then_its_loads(tmp_path: Path) -> None:
    quick = "[preset.quick.sweep.g]\nthreads = [2]\n[preset.quick.workload.write-8k-2x4]\nblocks = 7\n"
    scenario = loaded(tmp_path, SWEEP + quick)
    assert grid_of(scenario) == ["read-4k-2x4", "write-4k-2x4", "read-8k-2x4", "write-8k-2x4"]
    assert scenario.workload_named("write-8k-2x4").blocks == 7
    other = loaded(tmp_path, SWEEP, **{"sweep.g.block_sizes": ["64K"], "sweep.g.write_pcts": [0]})
    assert grid_of(other) == ["read-64k-1x4", "read-64k-2x4", "read-64k-4x4"]
    assert len(grid_of(loaded(tmp_path, SWEEP + quick, "full"))) == 12


def test_what_a_preset_leaves_out_is_gone_with_its_comparisons(tmp_path: Path) -> None:
    scenario = scenario_file.load(str(SCENARIOS / "small.toml"), "quick")
    arm, load_name = scenario.comparison[0].arm, scenario.workload[0].name
    full = f'[preset.full.leave_out]\narm = ["{arm}"]\n'
    less = loaded(tmp_path, full, "full")
    assert arm not in [item.name for item in less.arm] and len(less.arm) == len(scenario.arm) - 1
    assert all(arm not in (item.arm, item.base_arm) for item in less.comparison)
    full = f'[preset.full.leave_out]\nworkload = ["{load_name}"]\n'
    less = loaded(tmp_path, full + SWEEP, "full")
    assert load_name not in [item.name for item in less.workload]
    assert load_name not in [item.workload for item in less.comparison]


def test_a_load_whose_arms_are_all_left_out_is_left_out(tmp_path: Path) -> None:
    arms = [item.name for item in scenario_file.load(str(SCENARIOS / "small.toml"), "quick").arm]
    more = f'{SWEEP}arms = ["{arms[0]}"]\n[preset.full.leave_out]\narm = ["{arms[0]}"]\n'
    assert grid_of(loaded(tmp_path, more, "full")) == []
    more = f'{SWEEP}arms = {arms[:2]}\n[preset.full.leave_out]\narm = ["{arms[0]}"]\n'.replace("'", '"')
    less = loaded(tmp_path, more, "full")
    assert {item.arms for item in less.workload if item.name.endswith("x4")} == {(arms[1],)}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ("sweep = 3", "'sweep' is not a list of tables"),
        (SWEEP.replace("threads = [1, 2, 4]", ""), "[[sweep]] g: the key 'threads' is missing"),
        (SWEEP.replace("threads = [1, 2, 4]", "threads = 4"), "[[sweep]] g: threads"),
        (SWEEP.replace("[1, 2, 4]", "[0]"), "[[sweep]] g: threads"),
        (SWEEP.replace("[1, 2, 4]", "[]"), "write at least one"),
        (SWEEP.replace("4K", "4X"), "'4X' is not a block size"),
        (SWEEP.replace("runtime_s", "runtime"), "there is no key 'runtime'; did you mean 'runtime_s'?"),
        (f"{SWEEP}{SWEEP.replace('2', '3')}", "differs in more than arms"),
        (f"{SWEEP}[preset.quick.sweep.h]\nthreads = [1]", "there is no sweep 'h'; known: g"),
        (
            f"{SWEEP}[preset.full.leave_out]\nworkload = ['w']",
            "[preset.full] leave_out: there is no workload 'w'",
        ),
        ("[preset.full.leave_out]\nworkload = 'w'", "write workload as a list of names"),
        (
            "[preset.full.leave_out]\nworkloads = ['w']",
            "there is no key 'workloads'; did you mean 'workload'?",
        ),
        ("[preset.full]\nleave_out = 3", "this must be a table of keys, not 3"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, more: str, text: str) -> None:
    path = tmp_path / "own.toml"
    head, body = ("sweep = 3\n", BASE) if more == "sweep = 3" else ("", f"{BASE}\n{more}")
    path.write_text(head + body, "utf-8")
    with pytest.raises(UsageError) as caught:
        scenario_file.load(str(path), "quick")
    assert text in str(caught.value), str(caught.value)
    assert str(caught.value).startswith("own.toml: ") or "preset" in str(caught.value)


@pytest.mark.parametrize("odd", [["a", "b"], {"a": 1}, 7, None])
def test_what_is_left_out_of_a_damaged_file_leaves_the_damage_for_the_check(odd: Any) -> None:
    """Rows are not checked yet: what is not a name is not a name of those, and stays."""
    raw = {
        "arm": [{"name": odd}, {"name": "gone"}],
        "workload": [{"name": odd, "arms": odd}, {"name": "w", "arms": [odd, "gone"]}],
        "comparison": [{"arm": odd, "base_arm": odd, "workload": odd}, {"arm": "gone", "workload": "w"}],
    }
    left = scenario_file.left_out(raw, {"arm": ["gone"]})
    assert left["arm"] == [{"name": odd}] and left["comparison"] == raw["comparison"][:1]
    assert left["workload"] == [{"name": odd, "arms": odd}, {"name": "w", "arms": [odd]}]
