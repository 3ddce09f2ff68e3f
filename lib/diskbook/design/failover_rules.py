"""What a drill, or a check of reservations, needs of a scenario besides Azure's own rules."""

from __future__ import annotations

from collections.abc import Iterator

from diskbook.design.layout import MARK_ROOM, REGION_BYTES, region_offset
from diskbook.design.model import Scenario
from diskbook.facts.units import GIB, MIB


def check(scenario: Scenario) -> list[str]:
    """Say what is missing, a sentence each with field and way out; empty when all is well."""
    return [*_of_drills(scenario), *_of_checks(scenario)]


def _of_drills(scenario: Scenario) -> Iterator[str]:
    for item in scenario.drill:
        where = f"[[drill]] {item.name}"
        yield from _two_machines(scenario, where, item.from_machine, item.machine)
        yield from _room(scenario, where, item.disk)
        if item.kind == "shared":
            yield from _shares(scenario, where, item.disk)


def _of_checks(scenario: Scenario) -> Iterator[str]:
    for item in scenario.check:
        if item.kind == "reservation":
            where = f"[[check]] {item.name}"
            yield from _two_machines(scenario, where, str(item.from_machine), item.machine)
            yield from _room(scenario, where, item.disk)
            yield from _shares(scenario, where, item.disk)


def _two_machines(scenario: Scenario, where: str, first: str, second: str) -> Iterator[str]:
    if first == second:
        yield f"{where}: machine and from_machine are both {first}; name two machines"
    for name in (first, second):
        if scenario.machine_named(name).os != "linux":
            yield f"{where}: {name} is a Windows machine, and this is done on Linux ones only; take another"


def _shares(scenario: Scenario, where: str, disk: str) -> Iterator[str]:
    if scenario.disk_named(disk).max_shares < 2:
        yield f"{where}: {disk} is not shared (max_shares = 1); set max_shares of the disk to 2 or more"


def _room(scenario: Scenario, where: str, disk: str) -> Iterator[str]:
    size = scenario.disk_named(disk).size_gib * GIB
    end = region_offset(scenario, disk) + REGION_BYTES
    if end > size - MARK_ROOM:
        yield (
            f"{where}: {disk} has no room for {REGION_BYTES // MIB} MiB behind the working "
            "sets; take a larger disk or a smaller working_set_gib"
        )
