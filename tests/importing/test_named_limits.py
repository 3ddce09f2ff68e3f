"""Limits that somebody names for an import: what goes before what, and what is lacking."""

from __future__ import annotations

from typing import Any

import pytest

from diskbook.facts.errors import UsageError
from diskbook.importing import named_limits
from diskbook.importing.named_limits import Named

NONE = dict.fromkeys(("iops", "mb_s", "burst_iops", "burst_mb_s"))


def manifest(disk: dict[str, Any] = NONE, vm: dict[str, Any] = NONE, **named: Any) -> dict[str, Any]:
    disks = {"a": {"sku": "unknown", "limits": disk}}
    machines = {"m": {"size": "unknown", "limits": vm}}
    return {
        "provenance": "imported",
        "imported": {"named": named},
        "replicates": [{"disks": disks, "machines": machines}],
        "scenario": {"disk": []},
    }


def test_a_number_goes_before_a_table_and_keeps_only_a_burst_above_it() -> None:
    tabled = {"disk": {**NONE, "iops": 500.0, "burst_iops": 3500.0}, "vm": dict(NONE)}
    known = named_limits.in_force(tabled, Named(disk_iops=5000.0, vm_mb_s=96.0))
    assert (known["disk"]["iops"], known["disk"]["burst_iops"], known["vm"]["mb_s"]) == (5000.0, None, 96.0)
    assert named_limits.in_force(tabled, Named(disk_iops=1100.0))["disk"]["burst_iops"] == 3500.0
    assert tabled["disk"]["iops"] == 500.0


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_number_that_is_no_limit_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match=r"--vm-iops .*: a limit is more than 0"):
        named_limits.in_force({"disk": dict(NONE), "vm": dict(NONE)}, Named(vm_iops=value))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            manifest(),
            "no limit of disk and machine is known; it lacks --disk-sku and --size-gib (or --disk-iops and "
            "--disk-mb-s) and --vm-size (or --vm-iops and --vm-mb-s), which 'diskbook why' takes as well",
        ),
        (manifest({"iops": 500.0}), "no limit of the machine is known; it lacks --vm-size (or"),
        (manifest({"iops": 500.0}, vm_size="Standard_X"), "it lacks --vm-iops and --vm-mb-s, which"),
        (manifest({}, {"iops": 500.0}), "no limit of the disk is known; it lacks --disk-sku and --size-gib"),
        (manifest({"iops": 500.0}, {"mb_s": 96.0}), ""),
    ],
)
def test_what_is_lacking_is_one_line(given: dict[str, Any], words: str) -> None:
    line = named_limits.lacking(given)
    assert words in line and bool(line) == bool(words) and "\n" not in line


def test_an_older_import_is_known_by_its_disk_and_machine() -> None:
    old = manifest({"iops": 500.0})
    del old["imported"]["named"]
    old["replicates"][0]["disks"]["a"]["sku"] = "Premium_LRS"
    old["scenario"]["disk"] = [{"name": "a", "size_gib": 128}]
    assert Named.of_manifest(old).given == {"disk_sku": "Premium_LRS", "size_gib": 128}


def test_the_head_says_what_holds_and_for_how_long() -> None:
    kept, given = manifest({"iops": 500.0}, disk_sku="Premium_LRS", size_gib=128), Named(vm_iops=3200.0)
    lines = named_limits.head(kept, given)
    assert lines[0] == "limits by --disk-sku Premium_LRS --size-gib 128, named at the import"
    assert lines[1].startswith("limits by --vm-iops 3200, for this answer alone")


def test_only_what_is_given_is_changed() -> None:
    known = {"disk": {"iops": 1.0}, "vm": {"iops": 2.0}}
    changed = named_limits.with_limits(manifest(), known, Named(vm_iops=2.0))
    (part,) = changed["replicates"]
    assert part["machines"]["m"]["limits"] == {"iops": 2.0} and part["disks"]["a"]["limits"] == NONE
