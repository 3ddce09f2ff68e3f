"""What asks for a state of the disk, its data or its host cache that it cannot have is one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from diskbook.design import consistency, scenario_file
from diskbook.facts.errors import UsageError

LOAD = "workload.randread-qd1"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({f"{LOAD}.data": "compressible"}, 'data = "compressible", but it writes nothing'),
        ({f"{LOAD}.data": "zeros"}, "data"),
        ({f"{LOAD}.region": "unwritten", f"{LOAD}.cache_state": "warm"}, "no cache holds what nobody wrote"),
        ({f"{LOAD}.region": "unwritten", f"{LOAD}.working_set_gib": 400}, "behind its first"),
        ({"design.no_overwrite": ""}, "no_overwrite"),
    ],
)
def test_a_state_that_cannot_be_had_is_one_sentence(changes: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as error:
        scenario_file.load("zone-disks", "standard", changes)
    assert all(line.startswith("zone-disks.toml: ") for line in str(error.value).splitlines())


def test_places_and_caches_of_ones_own_take_a_managed_disk() -> None:
    with pytest.raises(UsageError, match=r'on ephemeral: cache_state = "cold" is for managed disks'):
        scenario_file.load("disk-options", "quick", {"workload.access-time.cache_state": "cold"})
    with pytest.raises(UsageError, match='region = "unwritten" is for managed disks'):
        scenario_file.load("s2d-azure", "quick", {"workload.read-4k-1x1.region": "unwritten"})


@pytest.mark.parametrize("name", ["zone-disks", "disk-options"])
def test_control_cells_are_of_one_block_in_standard_and_full_and_not_in_quick(name: str) -> None:
    for preset in ("standard", "full"):
        scenario = scenario_file.load(name, preset)
        loads = [scenario.workload_named(item.workload) for item in scenario.comparison]
        states = {(item.region, item.data, item.cache_state) for item in loads}
        assert ("unwritten", "random", "any") in states and len(states) > 2
        asked = [load for load in loads if load.region == "unwritten" or load.cache_state != "any"]
        assert {load.blocks for load in asked} == {1} and scenario.design.no_overwrite is None
    quick = scenario_file.load(name, "quick")
    assert {(item.region, item.cache_state) for item in quick.workload} == {("filled", "any")}


def test_a_warm_cache_is_for_linux() -> None:
    warm = {f"{LOAD}.cache_state": "warm", "machine.vm1.os": "windows"}
    with pytest.raises(UsageError, match=r'randread-qd1\b.*cache_state = "warm" is for Linux machines'):
        scenario_file.load("zone-disks", "standard", warm)


def test_repeats_count_as_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = {"design.repeats": 2}
    scenario = scenario_file.load("zone-disks", "standard", twice)
    blocks = sum(load.blocks for load in scenario.workload)
    trials = scenario.design.replicates * 2 * len(scenario.arm) * blocks
    monkeypatch.setattr(consistency, "MOST_TRIALS", trials - 1)
    with pytest.raises(UsageError, match=f"replicates, repeats and blocks make {trials} trials"):
        scenario_file.load("zone-disks", "standard", twice)
