"""What the workbook's images and ways need of a VM size, besides Azure's own rules. Pure.

Its images are of generation 2 and marked for NVMe: Ubuntu 24.04 LTS, Windows Server 2022 and 2025
(MicrosoftDocs/azure-compute-docs, articles/virtual-machines/enable-nvme-interface.md of 2026-06-18).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from diskbook.design.model import Scenario
from diskbook.facts import catalog
from diskbook.facts.catalog import NVME, SCSI
from diskbook.facts.rules import Violation

GENERATION = "V2"
"""Hyper-V generation of all images that machines are made from."""
ARM = "Arm64"


@dataclass(frozen=True)
class Traits:
    """What decides whether a machine may have a size: empty where nobody says it."""

    architecture: str
    generations: tuple[str, ...]
    controllers: tuple[str, ...]

    @property
    def controller(self) -> str | None:
        """The disk controller to ask for: NVMe only where there is no other; None leaves it to Azure."""
        if self.controllers == (NVME,):
            return NVME
        return SCSI if NVME in self.controllers else None

    def stands_in_for(self, other: Traits) -> bool:
        """Whether a size like this may take the place of another: same processors, same controller."""
        return self.architecture == other.architecture and (self.controller == NVME) == (
            other.controller == NVME
        )


NOTHING_KNOWN = Traits("", (), ())


def documented(size: catalog.VmSize) -> Traits:
    """Traits of a size as the table has them."""
    return Traits(size.architecture, size.hyperv_generations, size.disk_controllers)


def check(scenario: Scenario) -> list[Violation]:
    """Hold the machines of a scenario against what is documented of their sizes."""
    sizes = {machine.size: catalog.find_vm_size(machine.size) for machine in scenario.machine}
    traits = {name: documented(size) for name, size in sizes.items() if size is not None}
    return [
        Violation("vm-size-unusable", f"[[machine]] {machine}: size", f"{sentence}; take another size")
        for machine, sentence in problems(scenario, traits)
    ]


def problems(scenario: Scenario, traits: Mapping[str, Traits]) -> Iterator[tuple[str, str]]:
    """Say which machines cannot have their size, and why; sizes without traits are passed over."""
    reserving = _reserving(scenario)
    for machine in scenario.machine:
        of_size = traits.get(machine.size)
        why = misfit(machine.os, of_size) if of_size else None
        if not why and of_size and of_size.controller == NVME and machine.name in reserving:
            why = (
                "has an NVMe disk controller alone, and persistent reservations are tested by SCSI's commands"
            )
        if why:
            yield machine.name, f"{machine.size} {why}"


def misfit(system: str, traits: Traits) -> str | None:
    """Say why no machine of this system can have such a size; None where one can."""
    if traits.generations and GENERATION not in traits.generations:
        return "takes images of generation 1 alone, and those of the workbook are of generation 2"
    if system == "windows" and traits.architecture == ARM:
        return "has Arm64 processors, for which Windows Server has no image"
    if system == "windows" and traits.controller == NVME:
        # "SCSI logical unit has the LUN incremented by 1", and "the LUN is equivalent to the namespace ID":
        # articles/virtual-machines/enable-nvme-remote-faqs.yml of 2025-05-23 says both.
        return (
            "has an NVMe disk controller alone, and how Windows numbers the disks behind one is documented "
            "in two ways, so that a disk could be taken for another"
        )
    return None


def _reserving(scenario: Scenario) -> set[str]:
    """Names of the machines that ask for persistent reservations."""
    pairs = [(item.from_machine, item.machine) for item in scenario.check if item.kind == "reservation"]
    pairs += [(item.from_machine, item.machine) for item in scenario.drill if item.kind == "shared"]
    return {str(name) for pair in pairs for name in pair}
