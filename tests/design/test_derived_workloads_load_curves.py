"""Loads at shares of a cap: one load a share, its rate of the arm's own cap, and what has no known cap."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from diskbook.design import derived_workloads, scenario_file, scenario_tables
from diskbook.design.model import Scenario, Workload
from diskbook.facts.catalog import OWN_DISK
from diskbook.facts.errors import UsageError

DISKS = {
    "plain": 'sku = "Premium_ZRS"\nsize_gib = 1024',
    "burst": 'sku = "Premium_ZRS"\nsize_gib = 1024\nbursting = true',
    "credit": 'sku = "Premium_LRS"\nsize_gib = 512\nzone = "1"',
    "v2": 'sku = "PremiumV2_LRS"\nsize_gib = 1024\nzone = "1"\niops = 8000\nmb_s = 300',
    "cached": 'sku = "Premium_LRS"\nsize_gib = 1024\nzone = "1"\ncache = "ReadOnly"',
}
HEAD = """
[scenario]
title = "t"
article = "none"
question = "q"
region = "westeurope"
[design]
[[machine]]
name = "vm"
size = "Standard_E16as_v5"
zone = "1"
"""
LOAD = """
[[workload]]
name = "reads"
block_size = "4K"
write_pct = 0
threads = 2
queue_depth = 16
rate_of_cap = [0.1, 0.25, 0.5, 0.75, 0.9]
"""


def loaded(place: Path, *disks: str, workload: str = LOAD) -> Scenario:
    arms = [
        f'[[disk]]\nname = "{name}"\n{DISKS[name]}\n[[arm]]\nname = "{name}"\ndisk = "{name}"\nmachine = "vm"'
        for name in disks
    ]
    path = place / "own.toml"
    path.write_text("\n".join([HEAD, *arms, workload]), "utf-8")
    return scenario_file.load(str(path), "standard")


def rates(scenario: Scenario) -> dict[str, float | None]:
    return {item.name: item.rate for item in scenario.workload}


def test_a_load_becomes_one_a_share(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, "plain", "credit")
    five = {"reads-10": 500, "reads-25": 1250, "reads-50": 2500, "reads-75": 3750, "reads-90": 4500}
    assert rates(loaded(tmp_path, "plain")) == five
    assert {item.arms for item in loaded(tmp_path, "plain").workload} == {()}
    # A P20 lasts at 2,300 IOPS, whatever its credit lets it do for half an hour.
    assert scenario.workload_named("reads-90-of-2300").rate == 2070


def test_the_rate_belongs_to_the_arm_where_caps_differ(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, "plain", "v2")
    assert len(scenario.workload) == 10
    own = {(arm.name, item.name, item.rate) for arm, item in scenario.cells if "-90" in item.name}
    assert own == {("plain", "reads-90-of-5000", 4500.0), ("v2", "reads-90-of-8000", 7200.0)}


def test_a_cap_is_the_lowest_limit_that_lasts(tmp_path: Path) -> None:
    """Of 64K what the disk's MB/s give; of a disk that bursts on demand the machine's own base."""
    scenario = loaded(tmp_path, "plain", "burst")
    plain, burst = scenario.arm
    small = scenario.workload[0]
    large = small.model_copy(update={"block_size": 65536})
    assert derived_workloads.lasting_iops(scenario, plain, large) == pytest.approx(200e6 / 65536)
    assert derived_workloads.lasting_iops(scenario, burst, small) == 25_600
    assert derived_workloads.lasting_iops(scenario, burst, large) == pytest.approx(384e6 / 65536)


def test_rates_are_whole_ios_in_each_thread(tmp_path: Path) -> None:
    odd = LOAD.replace("threads = 2", "threads = 3").replace("[0.1, 0.25, 0.5, 0.75, 0.9]", "[0.123]")
    assert rates(loaded(tmp_path, "plain", workload=odd)) == {"reads-12-3": 615}


def test_a_manifest_has_the_loads_and_not_the_shares(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, "plain")
    raw = scenario.model_dump(mode="json")
    assert "rate_of_cap" not in raw["workload"][0]
    assert scenario_tables.from_dict(raw, "manifest") == scenario


@pytest.mark.parametrize(
    ("disks", "change", "message"),
    [
        (["plain"], ("[0.1,", "[0.0, 0.1,"), "write shares of a cap that grow, above 0 and at most 1"),
        (["plain"], ("0.9]", "1.1]"), "write shares of a cap that grow, above 0 and at most 1"),
        (["plain"], ("0.25", "0.1"), "write shares of a cap that grow"),
        (["plain"], ("[0.1, 0.25, 0.5, 0.75, 0.9]", "0.5"), "write shares of a cap that grow"),
        (["plain"], ("[0.1,", '["a",'), "write shares of a cap that grow"),
        (["plain"], ("[0.1,", "[nan,"), "write shares of a cap that grow"),
        (["plain"], ("rate_of_cap", "rate = 100\nrate_of_cap"), "rate says it in IOPS; keep one of both"),
        (["plain"], ('"reads"', f'"{"r" * 38}"'), "is too long; shorten the load's"),
        (["plain", "cached"], ("", ""), "cached has a host cache, so its cap depends on what"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_one_sentence(
    tmp_path: Path, disks: list[str], change: tuple[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as refused:
        loaded(tmp_path, *disks, workload=LOAD.replace(*change) if change[0] else LOAD)
    assert "own.toml: [[workload]]" in str(refused.value) and "\n" not in str(refused.value)


def test_a_disk_of_ones_own_and_a_volume_have_no_known_cap() -> None:
    volumes, disks = scenario_file.load("s2d-azure", "quick"), scenario_file.load("local-disk", "quick")
    own = disks.model_copy(
        update={"disk": tuple(disk.model_copy(update={"sku": OWN_DISK}) for disk in disks.disk)}
    )
    for scenario, reason in ((own, "is a disk of your own"), (volumes, "measures a volume")):
        with pytest.raises(ValueError, match=reason):
            derived_workloads.lasting_iops(scenario, scenario.arm[0], scenario.workload[0])


def test_disk_options_holds_its_loads_in_every_preset() -> None:
    for preset, arms in (("quick", 2), ("sample", 2), ("standard", 3), ("full", 3)):
        scenario = scenario_file.load("disk-options", preset)
        held = [(arm.name, item.name) for arm, item in scenario.cells if item.rate]
        assert len(held) == 5 * arms and len({arm for arm, _ in held}) == arms


@pytest.mark.parametrize(
    ("changes", "depth"), [({}, 100), ({"rate": 10}, 16), ({"threads": 2}, 1), ({"queue_depth": 8}, 8)]
)
def test_a_held_rate_has_as_many_ios_as_give_each_40_ms(changes: dict[str, float], depth: int) -> None:
    load = {"name": "w", "block_size": "4K", "write_pct": 0, "rate": 2500, **changes}
    assert Workload.model_validate(load).queue_depth == depth
