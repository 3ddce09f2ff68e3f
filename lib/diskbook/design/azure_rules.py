"""A scenario held against Azure's rules, before anything is created."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from diskbook.design import ephemeral_rules, layout, size_rules
from diskbook.design.layout import MARK_ROOM
from diskbook.design.model import Arm, Disk, Scenario, Workload
from diskbook.facts import catalog, disk_options, neighbours
from diskbook.facts.rules import (
    ULTRA,
    DiskAsk,
    Violation,
    VmAsk,
    attach_violations,
    attach_zone_violations,
    disk_violations,
    machine_violations,
    ultra_violations,
)
from diskbook.facts.units import GIB

Asks = Mapping[str, DiskAsk]
Vms = Mapping[str, VmAsk]


def check(scenario: Scenario, today: date | None = None) -> list[Violation]:
    """Hold a scenario against Azure's rules.

    Parameters
    ----------
    scenario
        The scenario, read and consistent in itself.
    today
        The day to judge retired sizes by, by default today.

    Returns
    -------
    list of Violation
        Empty when nothing is broken; `field` names table, entry and key, e.g. "[[disk]] zrs: zone".
    """
    region = catalog.regions().get(scenario.region)
    if region is None:
        known = ", ".join(catalog.regions())
        return [
            Violation(
                "region", "[scenario] region", f"'{scenario.region}' is not in the table; take one of {known}"
            )
        ]
    asks = {disk.name: _ask(scenario.made_of(disk)[0][0]) for disk in scenario.data_disks}
    vms = {machine.name: VmAsk(machine.size, machine.zone) for machine in scenario.machine}
    violations: list[Violation] = []
    for name, vm in vms.items():
        violations += _in("machine", name, machine_violations(vm, region, today or date.today()))
        if ULTRA in scenario.skus_of(name):
            violations += _in("machine", name, ultra_violations(vm, region))
    for name, ask in asks.items():
        violations += _in("disk", name, disk_violations(ask, region))
    violations += [*_of_arms(scenario, asks, vms), *_of_pools(scenario, asks, vms)]
    violations += [*_of_checks(scenario, asks, vms), *_of_drills(scenario, asks, vms)]
    if scenario.cluster or scenario.volume:
        violations += neighbours.volume_rules.violations(scenario)
    violations += size_rules.check(scenario)
    return violations + _ephemeral(scenario) + _too_many_disks(scenario) + _working_sets(scenario)


def _of_arms(scenario: Scenario, asks: Asks, vms: Vms) -> Iterator[Violation]:
    caches = {disk.name: disk.cache for disk in scenario.disk}
    for arm in scenario.arm:
        if arm.disk in asks and arm.machine in vms:
            broken = attach_violations(asks[arm.disk], vms[arm.machine], caches[arm.disk])
            yield from _in("arm", arm.name, broken)


def _of_pools(scenario: Scenario, asks: Asks, vms: Vms) -> Iterator[Violation]:
    for volume in scenario.volume:
        made = {name: disk for disk, name in scenario.made_of(scenario.disk_named(volume.disk))}
        for name in scenario.nodes_of(volume) if volume.disk in asks else ():
            yield from _in("volume", volume.name, attach_violations(_ask(made[name]), vms[name]))


def _of_checks(scenario: Scenario, asks: Asks, vms: Vms) -> Iterator[Violation]:
    for item in scenario.check:
        # A check that wants an attachment refused is there to break a rule.
        if item.kind == "attach-refused" or item.disk not in asks:
            continue
        for name in (item.machine, item.from_machine):
            if name is not None and name in vms:
                yield from _in("check", item.name, attach_zone_violations(asks[item.disk], vms[name]))


def _of_drills(scenario: Scenario, asks: Asks, vms: Vms) -> Iterator[Violation]:
    for drill in scenario.drill:
        if drill.disk not in asks:
            continue  # an OS disk, which the rules of ephemeral ones refuse
        for name in (drill.from_machine, drill.machine):
            yield from _in("drill", drill.name, attach_violations(asks[drill.disk], vms[name]))


def _ephemeral(scenario: Scenario) -> list[Violation]:
    return [
        Violation("ephemeral-os", f"[[disk]] {disk}: {field}", sentence)
        for disk, field, sentence in ephemeral_rules.problems(scenario)
    ]


def _ask(disk: Disk) -> DiskAsk:
    return DiskAsk(disk.sku, disk.size_gib, disk.zone, **disk_options.values(disk))


def _in(table: str, name: str, violations: Iterable[Violation]) -> list[Violation]:
    """Put table and entry of the scenario before the field of each violation."""
    return [
        Violation(broken.rule, f"[[{table}]] {name}: {broken.field}", broken.sentence)
        for broken in violations
    ]


def _too_many_disks(scenario: Scenario) -> list[Violation]:
    violations = []
    for machine in scenario.machine:
        size = catalog.find_vm_size(machine.size)
        disks = sum(scenario.disks_of(machine.name).values())
        if size and disks > size.max_data_disks:
            violations.append(
                Violation(
                    "max-data-disks",
                    f"[[machine]] {machine.name}: size",
                    f"{size.name} takes {size.max_data_disks} data disks and the arms need {disks}; "
                    "take a larger size or fewer disks",
                )
            )
    return violations


def _working_sets(scenario: Scenario) -> list[Violation]:
    """Working sets that do not fit on their disk, where they are prefilled and measured."""
    violations = []
    for arm, load in scenario.cells:
        if load.region == "unwritten":
            violations += _unwritten(scenario, arm, load)
            continue
        size_gib, place = scenario.room_gib(arm), arm.disk or arm.volume
        files = neighbours.volume_rules.on_each(scenario, arm, load) if load.is_fleet else 1
        if files * load.working_set_bytes > size_gib * GIB - MARK_ROOM:
            several = f"{files} x " if files > 1 else ""
            violations.append(
                Violation(
                    "working-set",
                    f"[[workload]] {load.name}: working_set_gib",
                    f"{several}{load.working_set_gib:g} GiB do not fit on the {size_gib:g} GiB of {place}; "
                    f"take a smaller working set or a larger {'disk' if arm.disk else 'volume'}",
                )
            )
    return list(dict.fromkeys(violations))


def _unwritten(scenario: Scenario, arm: Arm, load: Workload) -> list[Violation]:
    """Each attempt at a trial that is to be the first somewhere takes a part of the disk for itself."""
    size_gib = scenario.room_gib(arm)
    begin, needed = (of(scenario, arm.disk) / GIB for of in (layout.unwritten_offset, layout.unwritten_bytes))
    if (begin + needed) * GIB <= size_gib * GIB - MARK_ROOM:
        return []
    sentence = (
        f"trials that are to be the first where nobody wrote need {needed:g} GiB of {arm.disk} behind its "
        f"first {begin:.4g} GiB, and it has {size_gib:g} GiB; take a smaller working set, fewer blocks or a "
        "larger disk"
    )
    return [Violation("working-set", f"[[workload]] {load.name}: working_set_gib", sentence)]
