"""Loads on many machines and arms on several volumes: what fits, and the sentence for what does not."""

from __future__ import annotations

from typing import Any

import pytest

from diskbook.clusters.design import rules
from diskbook.design import scenario_file, scenario_tables
from diskbook.design.model import Scenario
from diskbook.facts.errors import UsageError
from diskbook.facts.units import GIB


def raw() -> dict[str, Any]:
    """Two nodes with two nested-parity volumes, one mirror beside them, and one server."""
    machines = [
        {"name": name, "size": "Standard_D32s_v5", "zone": "1", "os": "windows"}
        for name in ("n1", "n2", "one")
    ]
    p30 = {"sku": "Premium_LRS", "size_gib": 1024, "zone": "1", "count": 4}
    tiers = {"mirror_gib": 0.5, "parity_gib": 2.5, "count": 2}
    common = {"cluster": "c", "disk": "p30", "columns": 2}
    return {
        "name": "fleet",
        "preset": "quick",
        "scenario": {"title": "t", "article": "none", "question": "q", "region": "westeurope"},
        "machine": machines,
        "disk": [{"name": "p30", **p30}, {"name": "own", **p30}],
        "cluster": [{"name": "c", "nodes": ["n1", "n2"], "witness": "cloud"}],
        "volume": [
            {"name": "map", "kind": "nested-parity", **tiers, **common},
            {"name": "mirror", "kind": "two-way", "size_gib": 8, **common},
            {"name": "s", "kind": "simple", "machine": "one", "disk": "own", "columns": 4, "size_gib": 8},
        ],
        "arm": [
            {"name": "map", "volume": "map", "machine": "n1"},
            {"name": "map-moved", "volume": "map", "machine": "n1", "aligned": False},
            {"name": "mirror", "volume": "mirror", "machine": "n2"},
            {"name": "alone", "volume": "s", "machine": "one"},
        ],
        "workload": [
            {"name": "fleet", "block_size": "4K", "write_pct": 30, "threads": 10, "queue_depth": 8,
             "instances": 8, "working_set_gib": 0.25, "arms": ["map", "map-moved", "mirror"]},
            {"name": "few", "block_size": "4K", "write_pct": 0, "instances": 2, "working_set_gib": 0.125,
             "arms": ["map"]},
            {"name": "plain", "block_size": "4K", "write_pct": 0, "arms": ["alone", "mirror"]},
        ],
        "design": {},
    }  # fmt: skip


def scenario(tables: dict[str, Any] | None = None) -> Scenario:
    made = scenario_tables.from_dict(tables or raw(), "fleet.toml")
    return scenario_file.check(made, "fleet.toml")


def test_several_volumes_of_an_entry_are_owned_in_turn_and_share_a_fleet() -> None:
    made = scenario()
    arms = {name: made.arm_named(name) for name in ("map", "mirror")}
    assert made.owners_of(arms["map"]) == {"map-1": "n1", "map-2": "n2"}
    assert made.owners_of(arms["mirror"]) == {"mirror": "n2"}
    fleet = made.workload_named("fleet")
    assert [rules.on_each(made, arm, fleet) for arm in arms.values()] == [4, 8]
    assert fleet.outstanding == 640 and made.tool_of(arms["map"], fleet) == "vmfleet"
    assert made.tool_of(arms["mirror"], made.workload_named("plain")) == "diskspd"


def test_a_single_machine_is_a_fleet_on_the_first_volume() -> None:
    tables = raw()
    tables["workload"][1].update(instances=1, tool="vmfleet")
    made = scenario(tables)
    arm, few = made.arm_named("map"), made.workload_named("few")
    assert few.outstanding == 1 and made.tool_of(arm, few) == "vmfleet"
    assert rules.used(made, arm, few) == {"map-1": "n1"} and rules.on_each(made, arm, few) == 1


def test_a_data_set_is_that_of_the_largest_load_on_a_volume() -> None:
    sets = rules.data_sets(scenario())
    assert sets == {"map": (4, GIB // 4), "mirror": (8, GIB // 4)}
    assert sets["map"].size_bytes == GIB


@pytest.mark.parametrize(("mirror_gib", "inside"), [(0.5, False), (1.17, False), (1.18, True), (5, True)])
def test_a_data_set_stays_in_a_mirror_that_it_does_not_fill_to_85_percent(
    mirror_gib: float, inside: bool
) -> None:
    tables = raw()
    tables["volume"][0]["mirror_gib"] = mirror_gib
    made = scenario(tables)
    assert rules.stays_in_mirror(made, made.volume_named("map")) is inside
    assert not rules.stays_in_mirror(made, made.volume_named("mirror"))


SENTENCES = [
    (("workload", 0, "instances"), 9, "[[workload]] fleet on map: 9 instances cannot be spread evenly over "
     "2 volumes; take a multiple of 2"),
    (("workload", 1, "instances"), 3, "3 instances cannot be spread evenly over 2 volumes"),
    (("workload", 0, "arms"), ["alone"], "[[workload]] fleet on alone: a fleet runs on volumes of a"),
    (("workload", 2, "tool"), "vmfleet", "[[workload]] plain on alone: a fleet runs on volumes of"),
    (("workload", 2, "arms"), ["map"], "1 instances cannot be spread evenly"),
    (("arm", 0, "owner"), "n2", "[[arm]] map: each node owns one of the volumes map in turn; leave"),
    (("arm", 3, "aligned"), False, "[[arm]] alone: only a fleet on volumes of a cluster is aligned with"),
    (("arm", 2, "aligned"), False, "[[workload]] plain on mirror: the arm moves a fleet's machines; set "),
    (("machine", 2, "os"), "linux", "machine one runs Linux"),
    (("workload", 0, "working_set_gib"), 0.75, "4 x 0.75 GiB do not fit on the 3 GiB of map; take a smaller"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "words"), SENTENCES)
def test_what_does_not_fit_is_one_sentence(key: tuple[Any, ...], value: Any, words: str) -> None:
    tables: Any = raw()
    place = tables
    for part in key[:-1]:
        place = place[part]
    place[key[-1]] = value
    with pytest.raises(UsageError) as caught:
        scenario(tables)
    assert words in str(caught.value) and "\n" not in str(caught.value)
