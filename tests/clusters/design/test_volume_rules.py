"""Clusters and volumes in a scenario: what they name, what they need, what a pool holds."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from diskbook.clusters.design import volume_rules
from diskbook.design import azure_rules, scenario_tables
from diskbook.design.model import Scenario, Volume
from diskbook.facts.errors import UsageError

NODES = ("n1", "n2", "n3")
SIZE = "Standard_D32s_v3"


def raw(kind: str = "three-way", nodes: int = 3, **more: Any) -> dict[str, Any]:
    """Build the tables of a scenario with one volume on the P30 of a cluster, and a simple one beside it."""
    names = NODES[:nodes]
    volume = {
        "name": "v",
        "kind": kind,
        "cluster": "c",
        "disk": "p30",
        "columns": 2,
        "size_gib": 1024,
        **more,
    }
    machines = [{"name": name, "size": SIZE, "zone": "1", "os": "windows"} for name in (*names, "single")]
    simple = {
        "name": "s",
        "kind": "simple",
        "machine": "single",
        "disk": "own",
        "columns": 4,
        "size_gib": 4096,
    }
    p30 = {"sku": "Premium_LRS", "size_gib": 1024, "zone": "1", "count": 4}
    return {
        "name": "cluster",
        "preset": "quick",
        "scenario": {"title": "t", "article": "none", "question": "q", "region": "westeurope"},
        "machine": machines,
        "disk": [{"name": "p30", **p30}, {"name": "own", **p30}],
        "cluster": [{"name": "c", "nodes": list(names), "witness": "cloud"}],
        "volume": [volume, simple],
        "arm": [
            {"name": "ss-4", "volume": "s", "machine": "single"},
            {"name": "s2d", "volume": "v", "machine": "n1"},
            {"name": "s2d-remote", "volume": "v", "machine": "n1", "owner": "n2"},
        ],
        "workload": [{"name": "w", "block_size": "4K", "write_pct": 100}],
        "design": {},
        "comparison": [{"arm": "s2d-remote", "base_arm": "s2d", "workload": "w", "pairing": "same-disk"}],
    }


def made(tables: dict[str, Any]) -> Scenario:
    return scenario_tables.from_dict(tables, "cluster.toml")


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The tables with one key set, or with None left out."""
    tables = raw()
    place: Any = tables
    for part in path[:-1]:
        place = place[part]
    if value is None:
        place.pop(path[-1], None)
    else:
        place[path[-1]] = value
    return tables


def broken(tables: dict[str, Any]) -> dict[str, str]:
    return {violation.rule: str(violation) for violation in azure_rules.check(made(tables))}


NESTED_PARITY = {"size_gib": None, "mirror_gib": 100, "parity_gib": 500}


@pytest.mark.parametrize(
    ("kind", "nodes", "more"),
    [
        ("two-way", 2, {}),
        ("three-way", 3, {"columns": 4}),
        ("nested-mirror", 2, {}),
        ("nested-parity", 2, NESTED_PARITY),
    ],
)
def test_every_kind_of_volume_on_the_nodes_it_needs_breaks_no_rule(
    kind: str, nodes: int, more: dict[str, Any]
) -> None:
    scenario = made(raw(kind, nodes, **more))
    assert azure_rules.check(scenario) == []
    assert scenario_tables.from_dict(scenario.model_dump(mode="json"), "manifest") == scenario


def test_the_disks_of_a_machine_are_those_of_its_pools() -> None:
    scenario = made(raw())
    assert scenario.nodes_of(scenario.volume_named("v")) == NODES
    assert scenario.disks_of("n2") == {"p30": 4}
    assert scenario.disks_of("single") == {"own": 4}
    assert scenario.room_gib(scenario.arm_named("ss-4")) == 4096


def test_a_node_has_a_name_that_windows_takes() -> None:
    """15 characters with r99- before it; other machines may have longer names."""
    assert "node-name" not in broken(raw())
    long = scenario_tables.from_dict(json.loads(json.dumps(raw()).replace('"n2"', '"storage-no2"')), "x")
    assert volume_rules.MOST_NAME == 11 and not list(azure_rules.check(long))
    long = scenario_tables.from_dict(json.loads(json.dumps(raw()).replace('"n2"', '"storage-node"')), "x")
    (violation,) = azure_rules.check(long)
    assert str(violation) == (
        "[[machine]] storage-node: name: Windows takes 15 characters for a computer, "
        "r1- to r99- before it counted; take at most 11 for a machine of a pool"
    )
    tables = raw()
    tables["machine"].append({"name": "a-machine-of-no-pool", "size": SIZE, "zone": "1", "os": "windows"})
    assert broken(tables) == {}


def test_each_disk_of_a_pool_is_made_by_its_own_name() -> None:
    scenario = made(raw())
    disks = scenario.made_disks()
    assert [(disk.name, machine) for disk, machine in disks[:5]] == [
        *((f"p30-n1-{number}", "n1") for number in (1, 2, 3, 4)),
        ("p30-n2-1", "n2"),
    ]
    assert len(disks) == len({disk.name for disk, _ in disks}) == 16
    assert {(disk.count, disk.sku, disk.size_gib) for disk, _ in disks} == {(1, "Premium_LRS", 1024)}
    assert disks[-1] == (disks[-1][0], "single")
    assert disks[-1][0].name == "own-single-4"


def test_a_pools_disk_without_a_zone_is_made_in_that_of_its_machine() -> None:
    tables = raw()
    for number, machine in enumerate(tables["machine"][:3], 1):
        machine["zone"] = str(number)
    assert "attach-zone" in broken(tables)
    del tables["disk"][0]["zone"]
    assert broken(tables) == {}
    zones = {(machine, disk.zone) for disk, machine in made(tables).made_disks()}
    assert zones == {("n1", "1"), ("n2", "2"), ("n3", "3"), ("single", "1")}
    tables["disk"][0]["sku"] = "Premium_ZRS"
    assert {disk.zone for disk, machine in made(tables).made_disks() if machine == "n2"} == {None}


def test_a_disk_of_no_pool_is_made_as_it_is_and_an_ephemeral_one_with_its_machine() -> None:
    tables = raw()
    tables["disk"] += [{"name": "alone", "sku": "Premium_LRS", "size_gib": 32, "zone": "1"}]
    tables["disk"] += [{"name": "local", "sku": "EphemeralOS", "size_gib": 64}]
    tables["arm"] += [{"name": "alone", "disk": "alone", "machine": "single"}]
    scenario = made(tables)
    assert scenario.made_disks()[-1] == (scenario.disk_named("alone"), None)
    assert scenario.disk_of(scenario.arm_named("alone")).name == "alone"
    assert scenario.disk_of(scenario.arm_named("s2d")).name == "p30"


REFERENCES = [
    (("cluster", 0, "nodes"), ["n1", "n4"], "[[cluster]] c: there is no machine 'n4'"),
    (("cluster", 0, "nodes"), ["n1", "n1"], "n1 is named twice in nodes"),
    (
        ("cluster",),
        [{"name": "c", "nodes": ["n1", "n2", "n3"]}, {"name": "b", "nodes": ["n3"]}],
        "one cluster",
    ),
    (("volume", 0, "cluster"), "d", "[[volume]] v: there is no cluster 'd'"),
    (("volume", 0, "cluster"), None, "a three-way volume is a cluster's; name cluster"),
    (("volume", 1, "cluster"), "c", "a simple volume is one machine's; name machine"),
    (("volume", 0, "disk"), "p3", "[[volume]] v: there is no disk 'p3'"),
    (("volume", 0, "size_gib"), None, "a three-way volume has no tiers; write size_gib"),
    (("volume", 0, "kind"), "nested-parity", "a nested-parity volume has two tiers"),
    (("volume", 0, "kind"), "raid5", "[[volume]] v: kind"),
    (("volume", 0, "name"), "s", "[[volume]]: the name 's' is used twice"),
    (("arm", 1, "volume"), "w", "[[arm]] s2d: there is no volume 'w'"),
    (("arm", 1, "volume"), None, "the key 'disk' is missing; write what the arm measures"),
    (("arm", 1, "disk"), "p30", "write disk or volume, not both"),
    (("arm", 1, "machine"), "single", "machine single is not a node of v; take one of n1, n2, n3"),
    (("arm", 2, "owner"), "single", "owner single is not a node of v"),
    (("arm", 0), {"name": "a", "disk": "own", "machine": "single"}, "own is in the pool of s"),
    (("volume", 1, "disk"), "p30", "count is for the disks of a pool"),
]


@pytest.mark.parametrize(("path", "value", "words"), REFERENCES)
def test_a_wrong_name_or_key_is_refused_in_one_sentence(
    path: tuple[Any, ...], value: Any, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        made(changed(path, value))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_an_arm_on_a_disk_has_no_owner() -> None:
    tables = raw()
    tables["disk"].append({"name": "d", "sku": "Premium_LRS", "size_gib": 1024, "zone": "1"})
    tables["arm"].append({"name": "a", "disk": "d", "machine": "n1", "owner": "n1"})
    with pytest.raises(UsageError, match="only a volume has an owner"):
        made(tables)


RULES = [
    ("nested-nodes", raw("nested-mirror", 3), "exactly two nodes, not 3"),
    ("mirror-nodes", raw("three-way", 2), "at least 3 nodes, not 2"),
    ("columns", raw("nested-mirror", 2, columns=3), "take at most 2"),
    ("columns", raw("three-way", 3, columns=8), "take at most 4"),
    ("pool-size", raw("nested-mirror", 2, size_gib=2049), "8,196 GiB with all copies do not fit"),
    ("pool-size", raw("nested-mirror", 2, size_gib=3072), "12,288 GiB"),
    ("pool-size", raw("nested-parity", 2, size_gib=None, mirror_gib=1024, parity_gib=1537), "8,195 GiB"),
    ("max-data-disks", changed(("disk", 0, "count"), 33), "takes 32 data disks and the arms need 33"),
    ("nested-disks", changed(("disk", 0, "count"), 3), ""),
    ("pool-disks", changed(("disk", 0, "count"), 1), "at least 2 disks, not 1"),
    ("pool-local", changed(("disk", 0, "sku"), "EphemeralOS"), "local storage"),
    ("pool-cache", changed(("disk", 0, "cache"), "ReadOnly"), "cache p30 unknown to the pool"),
    ("pool-system", changed(("machine", 0, "os"), "linux"), "machine n1 runs Linux"),
    ("attach-zone", changed(("machine", 1, "zone"), "2"), "zone"),
    ("cluster-nodes", changed(("cluster", 0, "nodes"), ["n1"]), "2 or 3 nodes, not 1"),
    ("working-set", changed(("workload", 0, "working_set_gib"), 1025), "take a smaller working set"),
]


@pytest.mark.parametrize(("rule", "tables", "words"), RULES)
def test_a_rule_of_volumes(rule: str, tables: dict[str, Any], words: str) -> None:
    tables = copy.deepcopy(tables)
    if rule == "nested-disks":
        tables["volume"][0]["kind"] = "nested-mirror"
    if rule == "pool-local":
        tables["disk"][0].pop("zone")
    if rule == "cluster-nodes":
        tables["arm"].pop()  # whose owner is not a node then
        tables.pop("comparison")
    sentences = broken(tables)
    assert rule in sentences and words in sentences[rule] and "\n" not in sentences[rule]


def test_two_nodes_without_a_witness_are_refused() -> None:
    tables = raw("two-way", 2)
    tables["cluster"][0].pop("witness")
    assert 'write witness = "cloud"' in broken(tables)["cluster-witness"]


def efficiency(disks: int, mirror_gib: int, parity_gib: int) -> float:
    """Usable share of the footprint of nested mirror-accelerated parity, in percent."""
    volume = Volume(
        name="v", kind="nested-parity", disk="d", columns=2, mirror_gib=mirror_gib, parity_gib=parity_gib
    )
    return 100 * volume.room_gib / volume_rules.footprint_gib(volume, 2, disks)


@pytest.mark.parametrize(
    ("disks", "documented"),
    [(4, (35.7, 34.1, 32.6)), (5, (37.7, 35.7, 33.9)), (6, (39.1, 36.8, 34.7)), (9, (40.0, 37.5, 35.3))],
)
def test_the_documented_efficiency_of_nested_parity(disks: int, documented: tuple[float, ...]) -> None:
    shares = [efficiency(disks, mirror, 100 - mirror) for mirror in (10, 20, 30)]
    assert shares == pytest.approx(documented, abs=0.06)


def test_the_footprints_of_two_volumes_of_600_gb() -> None:
    two_way = Volume(name="v", kind="two-way", disk="d", columns=2, size_gib=600, count=2)
    nested = Volume(name="v", kind="nested-mirror", disk="d", columns=2, size_gib=600, count=2)
    tiered = Volume(
        name="v", kind="nested-parity", disk="d", columns=2, mirror_gib=100, parity_gib=500, count=2
    )
    taken = [volume_rules.footprint_gib(volume, 2, 4) for volume in (two_way, nested, tiered)]
    assert taken == pytest.approx([2400, 4800, 3467], abs=1)
