"""Whose a resource group is. What is asked of a cloud is in test_teardown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from diskbook.cloud.azure import inventory, requests


def resource(identity: str, run: str | None = None, managed_by: str | None = None) -> Any:
    tags = {"diskbook-run": run} if run else None
    return SimpleNamespace(id=identity, tags=tags, managed_by=managed_by)


MACHINE = resource("/g/virtualMachines/vm", "r")
EXTENSION = resource("/g/virtualMachines/VM/extensions/e")
ATTACHED = resource("/g/disks/payroll", managed_by="/g/virtualMachines/vm")
OS_DISKS = [
    resource(f"/g/disks/{requests.os_disk_name('r1-vm1')}"),
    resource(f"/g/disks/r1-vm1_OsDisk_1_{'0a' * 16}"),
]


def test_what_azure_makes_for_a_machine_belongs_to_its_run() -> None:
    assert inventory.foreign([MACHINE, EXTENSION, *OS_DISKS], "r") == []
    assert inventory.foreign([EXTENSION, *OS_DISKS], "r") == [EXTENSION]
    assert inventory.foreign([MACHINE, ATTACHED], "r") == [ATTACHED]


def test_what_is_another_run_s_or_nobody_s_does_not() -> None:
    others = [resource("/g/virtualMachines/vm2", "s"), resource("/g/disks/d")]
    assert inventory.foreign([MACHINE, *others], "r") == others


def test_a_message_names_a_few_and_counts_the_rest() -> None:
    disks = [resource(f"/g/disks/d{number}") for number in range(8)]
    text = inventory.foreign_text(disks, "r")
    assert text == "disks d0, disks d1, disks d2, disks d3, disks d4 and 3 more without the tag of run r"
