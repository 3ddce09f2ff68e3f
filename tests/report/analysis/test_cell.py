"""Every setting of a cell is compared, or left out by name with a reason; what comes later is compared."""

from __future__ import annotations

from typing import Any

import pytest

from diskbook.design import scenario_file
from diskbook.design.model import (
    Arm,
    Cluster,
    Comparison,
    Disk,
    Machine,
    Record,
    Scenario,
    Volume,
    Workload,
)
from diskbook.report.analysis import cell
from support import s2d

MANIFEST = {"provenance": "emulated", "emulator": {"profile": "default"}}
OF_VOLUMES = (Volume, Cluster)
FIELDS = [(kind, name) for kind in cell.LEFT_OUT if kind not in OF_VOLUMES for name in kind.model_fields]
COMPARED = [(kind, name) for kind, name in FIELDS if name not in cell.LEFT_OUT[kind]]
OF_THE_CELL = (Disk, Machine, Workload)


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return scenario_file.load("zone-disks", "quick")


def of(scenario: Scenario) -> dict[str, Any]:
    return cell.of(scenario, scenario.comparison[0], MANIFEST)


def with_first_arm(scenario: Scenario, record: Record) -> Scenario:
    """The scenario with another disk, machine or workload of that name in its first comparison."""
    kind = next(kind for kind in OF_THE_CELL if isinstance(record, kind))
    rows = getattr(scenario, kind.__name__.lower())
    changed = tuple(record if row.name == record.name else row for row in rows)  # type: ignore[attr-defined]
    return scenario.model_copy(update={kind.__name__.lower(): changed})


def record_of(scenario: Scenario, kind: type[Record]) -> Record:
    """Record of that kind in the first comparison, the disk being that of the base arm."""
    item = scenario.comparison[0]
    arm = scenario.arm_named(item.base_arm)
    records: dict[type[Record], Record] = {
        Scenario: scenario,
        type(scenario.scenario): scenario.scenario,
        type(scenario.design): scenario.design,
        Comparison: item,
        Arm: arm,
        Disk: scenario.disk_named(arm.disk),
        Machine: scenario.machine_named(arm.machine),
        Workload: scenario.workload_named(item.workload),
    }
    return records[kind]


def test_what_is_left_out_is_there_and_has_a_reason() -> None:
    for kind, reasons in cell.LEFT_OUT.items():
        assert reasons.keys() <= kind.model_fields.keys(), kind
        assert all(reasons.values()), kind


def test_every_other_setting_is_compared(scenario: Scenario) -> None:
    for kind, name in COMPARED:
        assert name in cell.settings(record_of(scenario, kind)), kind
        assert any(key == name or f": {name}" in key for key in of(scenario)), (kind, name)


def test_another_value_makes_another_cell(scenario: Scenario) -> None:
    for kind, name in (pair for pair in COMPARED if pair[0] in OF_THE_CELL):
        other = record_of(scenario, kind).model_copy(update={name: "another"})
        difference = cell.difference(of(scenario), of(with_first_arm(scenario, other)))
        assert f": {name}" in difference and " is another, not " in difference, (kind, name)


@pytest.mark.parametrize("kind", OF_THE_CELL)
def test_a_setting_that_comes_later_is_compared(scenario: Scenario, kind: type[Record]) -> None:
    later: Any = type("Later", (kind,), {"__annotations__": {"turbo": bool}, "turbo": False})
    now = record_of(scenario, kind).model_dump()
    plain, turbo = (with_first_arm(scenario, later(**now, turbo=turbo)) for turbo in (False, True))
    difference = cell.difference(of(plain), of(turbo))
    assert difference.partition(": ")[2].startswith("turbo") and difference.endswith(" is True, not False")


def test_the_same_settings_are_the_same_cell(scenario: Scenario) -> None:
    assert cell.difference(of(scenario), of(scenario_file.load("zone-disks", "quick"))) == ""


def test_zones_are_compared_by_their_pattern(scenario: Scenario) -> None:
    key = "pattern of zones (disk and machine of the arm, of the base arm)"
    assert of(scenario)[key] == "none a, a a"
    regional = with_first_arm(scenario, record_of(scenario, Disk).model_copy(update={"zone": None}))
    assert of(regional)[key] == "none a, none a"


# Arms on volumes


def of_volumes(scenario: Scenario, arm: str = "s2d-3", base: str = "ss-4") -> dict[str, Any]:
    items = [item for item in scenario.comparison if (item.arm, item.base_arm) == (arm, base)]
    return cell.of(scenario, items[0], MANIFEST)


def with_rows(scenario: Scenario, table: str, /, **changes: Any) -> Scenario:
    rows = tuple(row.model_copy(update=changes) for row in getattr(scenario, table))
    return scenario.model_copy(update={table: rows})


def test_a_cell_of_a_volume_is_its_kind_its_nodes_and_its_disks() -> None:
    values = of_volumes(s2d.scenario())
    assert values["arm: kind of the volume"] == "three-way" and len(values["arm: nodes"]) == 3
    assert values["base arm: kind of the volume"] == "simple" and len(values["base arm: nodes"]) == 1
    assert values["arm: columns of the volume"] == 4 and values["arm: count of the disk"] == 4
    assert values["arm: load away from the owner"] is False
    assert of_volumes(s2d.scenario(), "s2d-3-remote", "s2d-3")["arm: load away from the owner"] is True


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in OF_VOLUMES for name in kind.model_fields if name not in cell.LEFT_OUT[kind]],
)
def test_another_setting_of_a_volume_or_cluster_makes_another_cell(kind: type[Record], name: str) -> None:
    scenario = s2d.scenario()
    changed = with_rows(scenario, kind.__name__.lower(), **{name: "another"})
    assert f": {name} of the" in cell.difference(of_volumes(scenario), of_volumes(changed))


def test_disks_nodes_sizes_owner_and_zones_of_a_volume_make_a_cell() -> None:
    scenario = s2d.scenario()
    two = tuple(item.model_copy(update={"nodes": item.nodes[:2]}) for item in scenario.cluster)
    changes = {
        "count": with_rows(scenario, "disk", count=5),
        "zones": scenario.model_copy(update={"cluster": two}),
        "size": with_rows(scenario, "machine", size="Standard_D16s_v5"),
        "load away": with_rows(scenario, "arm", owner="n3"),
    }
    for word, changed in changes.items():
        assert word in cell.difference(of_volumes(scenario), of_volumes(changed)), word
    rows = [item.model_copy(update={"zone": "2"}) if item.name == "n3" else item for item in scenario.machine]
    apart = of_volumes(scenario.model_copy(update={"machine": tuple(rows)}))
    assert "pattern of zones" in cell.difference(of_volumes(scenario), apart)


def test_names_of_volumes_nodes_and_pools_do_not_make_a_cell() -> None:
    scenario = s2d.scenario()
    text = scenario.model_dump_json().replace('"mirror"', '"m"').replace('"n2"', '"node2"')
    renamed = Scenario.model_validate_json(text.replace('"p30-8"', '"more"'))
    assert renamed != scenario
    assert cell.difference(of_volumes(scenario), of_volumes(renamed)) == ""
