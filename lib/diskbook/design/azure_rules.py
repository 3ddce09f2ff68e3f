"""Check a scenario against Azure's rules, and against what checks and images need, before creating anything.

An ephemeral OS disk has its own rules. Pure.

It lies on the local disk of its machine, or in its host cache, costs nothing, and is gone with the machine
(Azure's documentation "Ephemeral OS disks for Azure VMs"). It is measured by a file on it, so the system
needs room next to the working set.

Failover tests and checks of reservations need more of a scenario than Azure does.

The workbook's images need more of a VM size than Azure does. Pure.

Its images are of generation 2 and marked for NVMe: Ubuntu 24.04 LTS, Windows Server 2022 and 2025
(MicrosoftDocs/azure-compute-docs, articles/virtual-machines/enable-nvme-interface.md of 2026-06-18).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from diskbook.design import layout
from diskbook.design.model import Arm, Check, Disk, Drill, Machine, Scenario, Workload
from diskbook.facts import catalog, disk_options, neighbours, rules
from diskbook.facts.units import GIB, MIB

SYSTEM_GIB = 16
"""Room for the system: the image of Ubuntu Server takes some 3 GiB, logs and packages more."""
IMAGE_GIB = 30
"""An OS disk is no smaller than its image; that of Ubuntu Server has 30 GiB."""
_FIXED = {"zone": None, **{option.name: option.default for option in disk_options.OPTIONS}, "cache": "None"}

Problem = tuple[str, str, str]


def ephemeral_problems(scenario: Scenario) -> list[Problem]:
    """Say what stands in the way: name of the disk, its field, and one sentence with the way out."""
    return [problem for disk in scenario.disk if disk.ephemeral for problem in _of_ephemeral(scenario, disk)]


def _of_ephemeral(scenario: Scenario, disk: Disk) -> Iterator[Problem]:
    for field, value in _FIXED.items():
        if getattr(disk, field) != value:
            yield disk.name, field, f"an {disk.sku} disk has no such setting; leave {field} out"
    moves: list[Check | Drill] = [*scenario.check, *scenario.drill]
    for other in moves:
        if other.disk == disk.name:
            yield disk.name, "sku", f"the disk of '{other.name}' is to be attached, and an OS disk stays put"
    users = {arm.machine for arm in scenario.arm if arm.disk == disk.name}
    if len(users) != 1:
        yield disk.name, "sku", f"an {disk.sku} disk belongs to one machine; {len(users)} have arms on it"
        return
    machine = scenario.machine_named(users.pop())
    if scenario.os_disk_of(machine.name) is not disk:
        yield disk.name, "sku", f"machine {machine.name} has one OS disk already; leave this one out"
    yield from _on_machine(scenario, disk, machine)


def _on_machine(scenario: Scenario, disk: Disk, machine: Machine) -> Iterator[Problem]:
    if machine.os != "linux":
        yield disk.name, "sku", f"machine {machine.name} runs Windows; its OS disk is not measured"
    for drill in scenario.drill:
        if machine.name in (drill.machine, drill.from_machine):
            sentence = f"machine {machine.name} takes part in the drill {drill.name}, which deallocates; "
            yield disk.name, "sku", sentence + "a machine with an ephemeral OS disk cannot be"
    size = catalog.find_vm_size(machine.size)
    if size is None:
        yield disk.name, "sku", f"the local disk of {machine.size} is in no table; take a size of the table"
        return
    if size.placement(disk.size_gib) is None:
        room = max(size.os_disk_room_gib.values(), default=0)
        yield disk.name, "size_gib", _no_room(size.name, room, disk.size_gib)
    largest = max((load.working_set_gib for arm, load in scenario.cells if arm.disk == disk.name), default=0)
    if disk.size_gib < max(IMAGE_GIB, largest + SYSTEM_GIB):
        least = max(IMAGE_GIB, largest + SYSTEM_GIB)
        sentence = f"the system and a working set of {largest:g} GiB need {least:g} GiB; make it larger"
        yield disk.name, "size_gib", sentence


def _no_room(size: str, room_gib: int, asked_gib: int) -> str:
    if not room_gib:
        return f"{size} has neither local disk nor cache for an OS disk; take a size that has, as E4ads_v5"
    return f"{size} holds an OS disk of up to {room_gib} GiB, not {asked_gib}; make it smaller"


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
        if self.controllers == (catalog.NVME,):
            return catalog.NVME
        return catalog.SCSI if catalog.NVME in self.controllers else None

    def stands_in_for(self, other: "Traits") -> bool:
        """Whether a size like this may take the place of another: same processors, same controller."""
        return self.architecture == other.architecture and (self.controller == catalog.NVME) == (
            other.controller == catalog.NVME
        )


NOTHING_KNOWN = Traits("", (), ())


def documented(size: catalog.VmSize) -> Traits:
    """Traits of a size as the table has them."""
    return Traits(size.architecture, size.hyperv_generations, size.disk_controllers)


def check_sizes(scenario: Scenario) -> list[rules.Violation]:
    """Hold the machines of a scenario against what is documented of their sizes."""
    sizes = {machine.size: catalog.find_vm_size(machine.size) for machine in scenario.machine}
    traits = {name: documented(size) for name, size in sizes.items() if size is not None}
    return [
        rules.Violation("vm-size-unusable", f"[[machine]] {machine}: size", f"{sentence}; take another size")
        for machine, sentence in size_problems(scenario, traits)
    ]


def size_problems(scenario: Scenario, traits: Mapping[str, Traits]) -> Iterator[tuple[str, str]]:
    """Say which machines cannot have their size, and why; sizes without traits are passed over."""
    reserving = _reserving(scenario)
    for machine in scenario.machine:
        of_size = traits.get(machine.size)
        why = misfit(machine.os, of_size) if of_size else None
        if not why and of_size and of_size.controller == catalog.NVME and machine.name in reserving:
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
    if system == "windows" and traits.controller == catalog.NVME:
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


Asks = Mapping[str, rules.DiskAsk]
Vms = Mapping[str, rules.VmAsk]


def check(scenario: Scenario, today: date | None = None) -> list[rules.Violation]:
    """Hold a scenario against Azure's rules.

    - `scenario`: the scenario, read and consistent in itself.
    - `today`: the day to judge retired sizes by, by default today.

    Returns empty when nothing is broken; `field` names table, entry and key, e.g. "[[disk]] zrs: zone".
    """
    region = catalog.regions().get(scenario.region)
    if region is None:
        known = ", ".join(catalog.regions())
        return [
            rules.Violation(
                "region", "[scenario] region", f"'{scenario.region}' is not in the table; take one of {known}"
            )
        ]
    asks = {disk.name: _ask(scenario.made_of(disk)[0][0]) for disk in scenario.data_disks}
    vms = {machine.name: rules.VmAsk(machine.size, machine.zone) for machine in scenario.machine}
    violations: list[rules.Violation] = []
    for name, vm in vms.items():
        violations += _in("machine", name, rules.machine_violations(vm, region, today or date.today()))
        if rules.ULTRA in scenario.skus_of(name):
            violations += _in("machine", name, rules.ultra_violations(vm, region))
    for name, ask in asks.items():
        violations += _in("disk", name, rules.disk_violations(ask, region))
    violations += [*_of_arms(scenario, asks, vms), *_of_pools(scenario, asks, vms)]
    violations += [*_of_checks(scenario, asks, vms), *_of_drills(scenario, asks, vms)]
    if scenario.cluster or scenario.volume:
        violations += neighbours.volume_rules.violations(scenario)
    violations += check_sizes(scenario)
    return violations + _ephemeral(scenario) + _too_many_disks(scenario) + _working_sets(scenario)


def _of_arms(scenario: Scenario, asks: Asks, vms: Vms) -> Iterator[rules.Violation]:
    caches = {disk.name: disk.cache for disk in scenario.disk}
    for arm in scenario.arm:
        if arm.disk in asks and arm.machine in vms:
            broken = rules.attach_violations(asks[arm.disk], vms[arm.machine], caches[arm.disk])
            yield from _in("arm", arm.name, broken)


def _of_pools(scenario: Scenario, asks: Asks, vms: Vms) -> Iterator[rules.Violation]:
    for volume in scenario.volume:
        made = {name: disk for disk, name in scenario.made_of(scenario.disk_named(volume.disk))}
        for name in scenario.nodes_of(volume) if volume.disk in asks else ():
            yield from _in("volume", volume.name, rules.attach_violations(_ask(made[name]), vms[name]))


def _of_checks(scenario: Scenario, asks: Asks, vms: Vms) -> Iterator[rules.Violation]:
    for item in scenario.check:
        # A check that wants an attachment refused is there to break a rule.
        if item.kind == "attach-refused" or item.disk not in asks:
            continue
        for name in (item.machine, item.from_machine):
            if name is not None and name in vms:
                yield from _in("check", item.name, rules.attach_zone_violations(asks[item.disk], vms[name]))


def _of_drills(scenario: Scenario, asks: Asks, vms: Vms) -> Iterator[rules.Violation]:
    for drill in scenario.drill:
        if drill.disk not in asks:
            continue  # an OS disk, which the rules of ephemeral ones refuse
        for name in (drill.from_machine, drill.machine):
            yield from _in("drill", drill.name, rules.attach_violations(asks[drill.disk], vms[name]))


def _ephemeral(scenario: Scenario) -> list[rules.Violation]:
    return [
        rules.Violation("ephemeral-os", f"[[disk]] {disk}: {field}", sentence)
        for disk, field, sentence in ephemeral_problems(scenario)
    ]


def _ask(disk: Disk) -> rules.DiskAsk:
    return rules.DiskAsk(disk.sku, disk.size_gib, disk.zone, **disk_options.values(disk))


def _in(table: str, name: str, violations: Iterable[rules.Violation]) -> list[rules.Violation]:
    """Put table and entry of the scenario before the field of each violation."""
    return [
        rules.Violation(broken.rule, f"[[{table}]] {name}: {broken.field}", broken.sentence)
        for broken in violations
    ]


def _too_many_disks(scenario: Scenario) -> list[rules.Violation]:
    violations = []
    for machine in scenario.machine:
        size = catalog.find_vm_size(machine.size)
        disks = sum(scenario.disks_of(machine.name).values())
        if size and disks > size.max_data_disks:
            violations.append(
                rules.Violation(
                    "max-data-disks",
                    f"[[machine]] {machine.name}: size",
                    f"{size.name} takes {size.max_data_disks} data disks and the arms need {disks}; "
                    "take a larger size or fewer disks",
                )
            )
    return violations


def _working_sets(scenario: Scenario) -> list[rules.Violation]:
    """Working sets that do not fit on their disk, where they are prefilled and measured."""
    violations = []
    for arm, load in scenario.cells:
        if load.region == "unwritten":
            violations += _unwritten(scenario, arm, load)
            continue
        size_gib, place = scenario.room_gib(arm), arm.disk or arm.volume
        files = neighbours.volume_rules.on_each(scenario, arm, load) if load.is_fleet else 1
        if files * load.working_set_bytes > size_gib * GIB - layout.MARK_ROOM:
            several = f"{files} x " if files > 1 else ""
            violations.append(
                rules.Violation(
                    "working-set",
                    f"[[workload]] {load.name}: working_set_gib",
                    f"{several}{load.working_set_gib:g} GiB do not fit on the {size_gib:g} GiB of {place}; "
                    f"take a smaller working set or a larger {'disk' if arm.disk else 'volume'}",
                )
            )
    return list(dict.fromkeys(violations))


def _unwritten(scenario: Scenario, arm: Arm, load: Workload) -> list[rules.Violation]:
    """Each attempt at a trial that is to be the first somewhere takes a part of the disk for itself."""
    size_gib = scenario.room_gib(arm)
    begin, needed = (of(scenario, arm.disk) / GIB for of in (layout.unwritten_offset, layout.unwritten_bytes))
    if (begin + needed) * GIB <= size_gib * GIB - layout.MARK_ROOM:
        return []
    sentence = (
        f"trials that are to be the first where nobody wrote need {needed:g} GiB of {arm.disk} behind its "
        f"first {begin:.4g} GiB, and it has {size_gib:g} GiB; take a smaller working set, fewer blocks or a "
        "larger disk"
    )
    return [rules.Violation("working-set", f"[[workload]] {load.name}: working_set_gib", sentence)]


def failover_problems(scenario: Scenario) -> list[str]:
    """Say what is missing, a sentence each with field and way out; empty when all is well."""
    return [*_drills(scenario), *_reservation_checks(scenario)]


def _drills(scenario: Scenario) -> Iterator[str]:
    for item in scenario.drill:
        where = f"[[drill]] {item.name}"
        yield from _two_machines(scenario, where, item.from_machine, item.machine)
        yield from _room(scenario, where, item.disk)
        if item.kind == "shared":
            yield from _shares(scenario, where, item.disk)


def _reservation_checks(scenario: Scenario) -> Iterator[str]:
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
    end = layout.region_offset(scenario, disk) + layout.REGION_BYTES
    if end > size - layout.MARK_ROOM:
        yield (
            f"{where}: {disk} has no room for {layout.REGION_BYTES // MIB} MiB behind the working "
            "sets; take a larger disk or a smaller working_set_gib"
        )
