"""How often a run attaches and detaches disks, beside what Azure calls frequent."""

from __future__ import annotations

import re
from pathlib import Path

from diskbook.clusters import cost as cluster_cost
from diskbook.design import scenario_file
from diskbook.design.model import Design
from diskbook.facts import paths
from diskbook.measure.plan import terminal
from support import SCENARIOS

SMALL = str(SCENARIOS / "small.toml")
DAY_S = 86_400.0


def test_calls_are_counted_beside_what_azure_calls_frequent() -> None:
    few, bucket = terminal._calls(scenario_file.load(SMALL, "quick"), 60.0)
    assert bucket == (
        "  that is 10 a minute on average; Azure's buckets allow 12 per machine (refilled by 4 a minute) and "
        "1,500 per subscription and region (refilled by 500 a minute)"
    )
    assert few == (
        "  attach and detach calls: 10 a replicate (10 for blocks), 10 on a day with replicates in parallel; "
        "lrs is detached 2 times a day (5 or fewer; its frequent_attach is off)"
    )
    both = {f"disk.{name}.frequent_attach": True for name in ("lrs", "zrs")}
    many, _ = terminal._calls(scenario_file.load(SMALL, "full", {**both, "design.replicates": 2}), 60.0)
    assert "26 a replicate (26 for blocks), 52 on a day" in many
    assert (
        "detached 6 times a day (frequent by Azure's word, more than 5 a day; its frequent_attach is on)"
        in many
    )
    slow, _ = terminal._calls(scenario_file.load(SMALL, "full"), 2 * DAY_S)
    assert (
        "26 a replicate (26 for blocks), 13 on a day" in slow and "detached 3 times a day (5 or fewer" in slow
    )


def test_disks_that_stay_are_attached_once() -> None:
    line, _ = terminal._calls(scenario_file.load("s2d-azure", "quick"), 60.0)
    assert "calls: 5 a replicate (5 for pools)" in line and line.endswith("; no disk is detached")


def test_pools_on_machines_with_local_nvme_disks_are_named() -> None:
    sizes = {"machine.n1.size": "Standard_L16s_v3"}
    for overrides, expected in ((sizes, True), ({}, False)):
        lines = cluster_cost._local_nvme(scenario_file.load("s2d-azure", "quick", overrides))
        assert ("n1 (2x1.92 TB); the run keeps them out of the pool" in "".join(lines)) is expected


def test_a_scenario_without_a_design_takes_the_defaults(tmp_path: Path) -> None:
    text = (paths.SCENARIOS / "first-run.toml").read_text("utf-8")
    without = tmp_path / "without.toml"
    without.write_text(re.sub(r"\[design\][^\[]*", "", text), "utf-8")
    assert "[design]" in text and scenario_file.load(str(without), "quick").design == Design()


def test_losses_and_their_calls_are_in_the_plan() -> None:
    losses, calls, _ = terminal._calls(scenario_file.load("nested-resiliency", "quick"), 6000.0)
    assert losses == (
        "  losses: 21 a replicate, in 11 steps, since volumes of a pool lose the same members together; "
        "nodes are switched off 6 times, disks are taken away 12 times, and all come back"
    )
    assert calls == (
        "  attach and detach calls: 25 a replicate (5 for pools, 20 for losses), 25 on a day with replicates "
        "in parallel; p30-n2-1 is detached 3 times a day (5 or fewer; its frequent_attach is off)"
    )
    standard, _, _ = terminal._calls(scenario_file.load("nested-resiliency", "standard"), 6000.0)
    assert standard.startswith("  losses: 15 a replicate, in 5 steps")


def test_an_ultra_disk_can_be_planned() -> None:
    scenario = scenario_file.load(
        SMALL, "quick", {"disk.lrs.sku": "UltraSSD_LRS", "disk.lrs.size_gib": 64, "disk.lrs.iops": 4000}
    )
    assert scenario.skus_of("vm1") == {"UltraSSD_LRS", "Premium_ZRS"}
    assert scenario.skus_of("vm2") == {"UltraSSD_LRS", "Premium_ZRS"}  # a check wants it refused there
    assert "lrs-z1  UltraSSD_LRS 64 GiB on vm1" in terminal._design(scenario)
