"""How often a run attaches and detaches disks, beside what Azure calls frequent."""

from __future__ import annotations

from diskbook import load
from diskbook.plan import text
from support import SCENARIOS

SMALL = str(SCENARIOS / "small.toml")
DAY_S = 86_400.0


def test_calls_are_counted_beside_what_azure_calls_frequent() -> None:
    (few,) = text._calls(load.load(SMALL, "quick"), 60.0)
    assert few == (
        "  attach and detach calls: 10 a replicate, 10 on a day with replicates in parallel; lrs is detached "
        "2 times a day (5 or fewer; its frequent_attach is off)"
    )
    both = {f"disk.{name}.frequent_attach": True for name in ("lrs", "zrs")}
    (many,) = text._calls(load.load(SMALL, "full", {**both, "design.replicates": 2}), 60.0)
    assert "26 a replicate, 52 on a day" in many
    assert (
        "detached 6 times a day (frequent by Azure's word, more than 5 a day; its frequent_attach is on)"
        in many
    )
    (slow,) = text._calls(load.load(SMALL, "full"), 2 * DAY_S)
    assert "26 a replicate, 13 on a day" in slow and "detached 3 times a day (5 or fewer" in slow


def test_disks_that_stay_are_attached_once() -> None:
    (line,) = text._calls(load.load("s2d-azure", "quick"), 60.0)
    assert line.endswith("; no disk is detached")


def test_an_ultra_disk_can_be_planned() -> None:
    scenario = load.load(
        SMALL, "quick", {"disk.lrs.sku": "UltraSSD_LRS", "disk.lrs.size_gib": 64, "disk.lrs.iops": 4000}
    )
    assert scenario.skus_of("vm1") == {"UltraSSD_LRS", "Premium_ZRS"}
    assert scenario.skus_of("vm2") == {"UltraSSD_LRS", "Premium_ZRS"}  # a check wants it refused there
    assert "lrs-z1  UltraSSD_LRS 64 GiB on vm1" in text._design(scenario)
