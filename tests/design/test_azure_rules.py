"""Azure's rules: each one in a scenario, and the same one at the control plane through the Azure clients."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from diskbook.design import scenario_file
from diskbook.design.azure_rules import ARM, Traits, check, check_sizes, failover_problems, misfit
from diskbook.design.model import Arm, Disk, Machine, Scenario
from diskbook.facts import catalog, paths
from diskbook.facts.errors import UsageError
from support.arm_plane import LOCATION, World, refused

TODAY = date(2026, 11, 20)
VM1 = {"name": "vm1", "size": "Standard_D4as_v4", "zone": "1"}
P30 = {"name": "d", "sku": "Premium_LRS", "size_gib": 1024, "zone": "1"}
ZRS = {"name": "d", "sku": "Premium_ZRS", "size_gib": 1024}


def scenario(
    disk: dict[str, Any], machine: dict[str, Any] | None = None, region: str = LOCATION, disks: int = 1
) -> Any:
    """Build the parts of a scenario that the rules of disks look at: disks, one machine, an arm each."""
    made = [Disk(**{**disk, "name": f"{disk['name']}{n or ''}"}) for n in range(disks)]
    vm = Machine(**(machine or VM1))
    arms = [Arm(name=f"arm{n}", disk=one.name, machine=vm.name) for n, one in enumerate(made)]
    parts = {"machine": (vm,), "disk": tuple(made), "arm": tuple(arms), "check": (), "drill": (), "cells": []}
    parts |= {
        "data_disks": made,
        "cluster": (),
        "volume": (),
        "disks_of": lambda _: {one.name: 1 for one in made},
        "skus_of": lambda _: {one.sku for one in made},
        "made_of": lambda disk: [(disk, None)],
    }
    return SimpleNamespace(region=region, **parts)


def disk_body(disk: dict[str, Any], region: str = LOCATION) -> dict[str, Any]:
    """Build the request for the same disk."""
    names = {
        "size_gib": "diskSizeGB",
        "max_shares": "maxShares",
        "bursting": "burstingEnabled",
        "iops": "diskIOPSReadWrite",
        "mb_s": "diskMBpsReadWrite",
        "frequent_attach": "optimizedForFrequentAttach",
    }
    creation = {"createOption": "Empty", "performancePlus": disk.get("performance_plus", False)}
    properties = {names[key]: value for key, value in disk.items() if key in names}
    body = {"location": region, "sku": {"name": disk["sku"]}, "properties": properties}
    body["properties"]["creationData"] = creation
    return body | ({"zones": [disk["zone"]]} if "zone" in disk else {})


@pytest.mark.parametrize(
    "disk",
    [
        P30,
        ZRS,
        {**P30, "bursting": True},
        {**P30, "performance_plus": True},
        {**P30, "frequent_attach": True},
    ],
)
def test_what_azure_takes_breaks_no_rule(disk: dict[str, Any]) -> None:
    assert check(scenario(disk), TODAY) == []


DISK_RULES = [
    ("sku", "sku", {**P30, "sku": "Premium_GRS"}, LOCATION),
    ("sku-region", "sku", ZRS, "westus"),
    ("sku-region", "sku", {**P30, "sku": "UltraSSD_LRS"}, "norwaywest"),
    ("zrs-zone", "zone", {**ZRS, "zone": "1"}, LOCATION),
    ("zone", "zone", P30, "westus"),
    ("zone-required", "zone", {"name": "d", "sku": "PremiumV2_LRS", "size_gib": 1024}, LOCATION),
    ("zone-required", "zone", {"name": "d", "sku": "UltraSSD_LRS", "size_gib": 1024}, LOCATION),
    ("size", "size_gib", {**P30, "size_gib": 40000}, LOCATION),
    ("max-shares", "max_shares", {**ZRS, "max_shares": 6}, LOCATION),
    ("bursting", "bursting", {**P30, "size_gib": 512, "bursting": True}, LOCATION),
    ("bursting", "bursting", {**P30, "sku": "StandardSSD_LRS", "bursting": True}, LOCATION),
    ("shared-bursting", "bursting", {**ZRS, "max_shares": 2, "bursting": True}, LOCATION),
    ("performance-plus", "performance_plus", {**P30, "size_gib": 512, "performance_plus": True}, LOCATION),
    (
        "performance-plus",
        "performance_plus",
        {**P30, "sku": "PremiumV2_LRS", "performance_plus": True},
        LOCATION,
    ),
    ("iops-range", "iops", {**P30, "sku": "PremiumV2_LRS", "iops": 90000}, LOCATION),
    ("mb-s-range", "mb_s", {**P30, "sku": "PremiumV2_LRS", "iops": 3000, "mb_s": 1200}, LOCATION),
]


DISK_CODES = {
    "zone": "LocationNotSupportAvailabilityZones",
    "zrs-zone": "OperationNotAllowed",
    **dict.fromkeys(("max-shares", "performance-plus", "iops-range", "mb-s-range"), "BadRequest"),
}


@pytest.mark.parametrize(("rule", "field", "disk", "region"), DISK_RULES)
def test_a_disk_rule(plane: World, rule: str, field: str, disk: dict[str, Any], region: str) -> None:
    found = {(one.rule, one.field): one for one in check(scenario(disk, region=region), TODAY)}
    broken = found[rule, f"[[disk]] d: {field}"]
    assert str(broken).startswith(f"[[disk]] d: {field}: ") and "\n" not in broken.sentence
    group = plane.group("disk-rules")
    create = plane.compute.disks.begin_create_or_update
    status, code, message = refused(lambda: create(group, "d", disk_body(disk, region)))
    assert status == (409 if rule == "zrs-zone" else 400)
    if rule == "sku-region":
        expected = f"Disks with sku '{disk['sku']}' are not available in this region."
        assert (code, message) == ("BadRequest", expected)
    else:
        assert code == DISK_CODES.get(rule, "InvalidParameter")
    assert not [one for one in plane.compute.disks.list_by_resource_group(group) if one.name == "d"]


def test_fixed_figures_are_no_choice() -> None:
    broken = check(scenario({**P30, "iops": 8000, "mb_s": 300}), TODAY)
    assert [(one.rule, one.field) for one in broken] == [
        ("performance-fixed", "[[disk]] d: iops"),
        ("performance-fixed", "[[disk]] d: mb_s"),
    ]


ATTACH_RULES = [
    ("attach-zone", "machine", {**P30, "zone": "2"}, VM1, "None"),
    ("attach-zone", "disk", {"name": "d", "sku": "Premium_LRS", "size_gib": 1024}, VM1, "None"),
    ("attach-zone", "machine", {**P30, "sku": "PremiumV2_LRS", "max_shares": 2, "zone": "3"}, VM1, "None"),
    ("cache-shared", "cache", {**ZRS, "max_shares": 2}, VM1, "ReadOnly"),
    ("cache-sku", "cache", {**P30, "sku": "PremiumV2_LRS"}, VM1, "ReadOnly"),
    ("cache-sku", "cache", {**P30, "sku": "UltraSSD_LRS"}, VM1, "ReadWrite"),
    ("cache-size", "cache", {**P30, "size_gib": 4096}, VM1, "ReadOnly"),
    ("cache-vm", "cache", P30, {**VM1, "size": "Standard_L16s"}, "ReadOnly"),
]


@pytest.mark.long
@pytest.mark.parametrize(("rule", "field", "disk", "machine", "cache"), ATTACH_RULES)
def test_an_attach_rule(
    plane: World, rule: str, field: str, disk: dict[str, Any], machine: dict[str, Any], cache: str
) -> None:
    broken = check(scenario({**disk, "cache": cache}, machine), TODAY)
    assert [(one.rule, one.field) for one in broken] == [(rule, f"[[arm]] arm0: {field}")]
    group = plane.group(f"attach-{ATTACH_RULES.index((rule, field, disk, machine, cache))}")
    made = plane.compute.disks.begin_create_or_update(group, "d", disk_body(disk)).result()
    plane.vm(group, "vm1", zone=machine["zone"], size=machine["size"])
    status, code, message = refused(lambda: plane.attach(group, "vm1", made.id, caching=cache))
    assert status == 400
    if rule == "attach-zone":
        shown = f"VM zone: '1'. Disk zone: '{disk.get('zone')}'."
        where = f"in the same zone as the VM. {shown}" if "zone" in disk else "in zone '1'."
        expected = f"Disk {made.id} cannot be attached to the VM because it is not {where}"
        assert (code, message) == ("BadRequest", expected)
    else:
        assert code == ("BadRequest" if rule == "cache-shared" else "InvalidParameter")
        assert "caching" in message.lower()


def test_a_machine_takes_so_many_disks() -> None:
    small = {**VM1, "size": "Standard_E2as_v5"}
    assert check(scenario(ZRS, small, disks=4), TODAY) == []
    broken = check(scenario(ZRS, small, disks=5), TODAY)
    assert [(one.rule, one.field) for one in broken] == [("max-data-disks", "[[machine]] vm1: size")]


def test_sizes_must_exist_and_not_be_retired() -> None:
    broken = check(scenario(ZRS, {**VM1, "size": "Standard_X1"}), TODAY)
    assert [one.rule for one in broken] == ["vm-size"]
    old = scenario(ZRS, {**VM1, "size": "Standard_DS3_v2"})
    assert check(old, TODAY) == []
    retired = check(old, date(2028, 6, 1))
    assert retired[0].rule == "vm-size-retired" and "Standard_D8s_v5" in retired[0].sentence


def test_regions_must_exist_and_have_the_zone() -> None:
    assert [one.field for one in check(scenario(ZRS, region="atlantis"), TODAY)] == ["[scenario] region"]
    zones = check(scenario({"name": "d", "sku": "Premium_LRS", "size_gib": 64}, region="westus"), TODAY)
    assert "[[machine]] vm1: zone" in [one.field for one in zones]


def test_ultra_needs_the_machines_consent(plane: World) -> None:
    group = plane.group("ultra")
    disk = plane.disk(group, "d", "UltraSSD_LRS", 64, zones=["1"])
    plane.vm(group, "vm1")
    code = refused(lambda: plane.attach(group, "vm1", disk.id))
    sentence = (
        "StorageAccountType UltraSSD_LRS can be used only when additionalCapabilities.ultraSSDEnabled is set."
    )
    assert code == (400, "InvalidParameter", sentence)
    allow = {"properties": {"additionalCapabilities": {"ultraSSDEnabled": True}}}
    plane.compute.virtual_machines.begin_update(group, "vm1", allow).result()
    plane.attach(group, "vm1", disk.id)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("Premium_LRS", 128), ("P10", 500, 100, 3500, 170)),
        (("Premium_LRS", 513), ("P30", 5000, 200, None, None)),
        (("Premium_ZRS", 1024, True), ("P30", 5000, 200, 30000, 1000)),
        (("Premium_LRS", 1024, True, True), ("P30", 8000, 300, 30000, 1000)),
        (("Premium_LRS", 1024, False, False, "P50"), ("P50", 7500, 250, None, None)),
        (("StandardSSD_ZRS", 1024), ("E30", 500, 100, 1000, 250)),
        (("Standard_LRS", 16384), ("S70", 2000, 500, None, None)),
        (("PremiumV2_LRS", 1024, False, False, None, 20000, 800), (None, 20000, 800, None, None)),
    ],
)
def test_limits_of_disks(asked: tuple, expected: tuple) -> None:
    limits = catalog.disk_limits(*asked)
    assert (limits.tier, limits.iops, limits.mb_s, limits.burst_iops, limits.burst_mb_s) == expected


def test_shared_disks_do_not_burst_and_credit_is_thirty_minutes() -> None:
    assert catalog.disk_limits("Premium_LRS", 128).credit_ios == (3500 - 500) * 1800
    assert catalog.disk_limits("Premium_LRS", 128, max_shares=2).burst_iops is None
    assert catalog.disk_tier("Premium_LRS", 1024).tier == "P30"
    assert [tier.credit_ios for tier in catalog.tiers_of("Premium_LRS")][:3] == [6084000] * 3


def test_names_nobody_knows_are_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'Standard_D4as_v4'"):
        catalog.vm_size("Standard_D4as_v44")
    with pytest.raises(UsageError, match="westeurope"):
        catalog.region("westeurop")


def test_a_working_set_lies_on_its_disk() -> None:
    found = check(zone_disks(**{"all_workloads.working_set_gib": 1023.5}))
    assert found == []
    found = check(zone_disks(**{"workload.randread-qd1.working_set_gib": 1024.0}))
    assert {(one.rule, one.field) for one in found} == {
        ("working-set", f"[[workload]] {load}: working_set_gib")
        for load in ("randread-qd1", "randread-qd1-probe")
    }


def test_a_disk_must_reach_the_machines_of_its_check() -> None:
    """A check that wants a refusal may break the rule; one that reads its data back may not."""
    found = check(zone_disks(**{"check.zrs-data-other-zone.disk": "lrs"}))
    assert [(one.rule, one.field) for one in found] == [
        ("attach-zone", "[[check]] zrs-data-other-zone: machine")
    ]
    assert check(zone_disks()) == []


def zone_disks(**overrides: Any) -> Scenario:
    """The scenario of that name, compared with the form but not yet against the rules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenario_file, "check", lambda scenario, where, **_: scenario)
        return scenario_file.load("zone-disks", "quick", overrides)


def test_windows_takes_no_arm_processors_and_all_take_generation_2() -> None:
    arm, old = Traits(ARM, ("V2",), ()), Traits("x64", ("V1",), ())
    assert "Windows Server has no image" in str(misfit("windows", arm)) and misfit("linux", arm) is None
    assert "images of generation 1 alone" in str(misfit("linux", old))


def test_a_machine_of_windows_is_told_that_its_size_has_arm_processors() -> None:
    found = check_sizes(scenario_file.load("local-disk", "quick"))
    assert found == []
    made = scenario(P30, {**VM1, "size": "Standard_B2pls_v2", "os": "windows"})
    (violation,) = check_sizes(made)
    assert violation.field == "[[machine]] vm1: size" and "has Arm64 processors" in violation.sentence


def test_only_a_failover_test_on_a_shared_disk_needs_one() -> None:
    drills = scenario_file.load(str(paths.ROOT / "tests/scenarios/drills.toml"), "quick")
    assert failover_problems(drills) == []
    alone = drills.model_copy(
        update={"check": (), "disk": tuple(disk.model_copy(update={"max_shares": 1}) for disk in drills.disk)}
    )
    (problem,) = failover_problems(alone)
    assert problem.startswith("[[drill]] shared-crash: zrs is not shared (max_shares = 1)")
