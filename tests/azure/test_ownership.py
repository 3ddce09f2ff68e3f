"""Whose a resource group is. What is asked of a cloud is in test_teardown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from diskbook.azure import ownership


def resource(identity: str, run: str | None = None, managed_by: str | None = None) -> Any:
    tags = {"diskbook-run": run} if run else None
    return SimpleNamespace(id=identity, tags=tags, managed_by=managed_by)


MACHINE = resource("/g/virtualMachines/vm", "r")
EXTENSION = resource("/g/virtualMachines/VM/extensions/e")
OS_DISK = resource("/g/disks/os", managed_by="/g/virtualMachines/vm")


def test_what_azure_makes_for_a_machine_belongs_to_its_run() -> None:
    assert ownership.strangers([MACHINE, EXTENSION, OS_DISK], "r") == []
    assert ownership.strangers([EXTENSION, OS_DISK], "r") == [EXTENSION, OS_DISK]


def test_what_is_another_run_s_or_nobody_s_does_not() -> None:
    others = [resource("/g/virtualMachines/vm2", "s"), resource("/g/disks/d")]
    assert ownership.strangers([MACHINE, *others], "r") == others


def test_a_message_names_a_few_and_counts_the_rest() -> None:
    disks = [resource(f"/g/disks/d{number}") for number in range(8)]
    text = ownership.strangers_text(disks, "r")
    assert (
        text == "in it disks d0, disks d1, disks d2, disks d3, disks d4 and 3 more without the tag of run r"
    )
