"""Comparisons that will get no verdict on latency are named before anything is measured."""

from __future__ import annotations

import pytest

from diskbook.design import scenario_file
from diskbook.measure.plan import sample_size
from support import SCENARIOS


@pytest.mark.parametrize("name", scenario_file.names())
def test_the_workbooks_own_scenarios_have_their_single_ios(name: str) -> None:
    assert sample_size.missing_single_ios(scenario_file.load(name, "quick")) == []


def test_a_deep_load_alone_is_named() -> None:
    scenario = scenario_file.load(str(SCENARIOS / "planted.toml"), "quick")
    assert sample_size.missing_single_ios(scenario) == []
    without = scenario.model_copy(update={"workload": scenario.workload[2:]})
    deep = [item for item in scenario.comparison if item.workload == "write-qd128"]
    (note,) = sample_size.missing_single_ios(without.model_copy(update={"comparison": tuple(deep)}))
    assert note.startswith(
        "zrs-z1 / lrs-z1, write-qd128: without the same load at queue depth 1 on zrs-z1 and"
    )


def test_another_block_size_or_direction_tells_nothing() -> None:
    scenario = scenario_file.load(str(SCENARIOS / "planted.toml"), "quick")
    larger = scenario.workload[1].model_copy(update={"block_size": 8192})
    loads = (scenario.workload[0], larger, scenario.workload[2])
    assert len(sample_size.missing_single_ios(scenario.model_copy(update={"workload": loads}))) == 1
