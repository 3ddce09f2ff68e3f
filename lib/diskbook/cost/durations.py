"""How long a run takes apart from its trials: machines and disks made, moved, filled, failed and deleted.

Also counts the attach and detach calls of one replicate: for pools, blocks, failover tests and losses.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diskbook.design import attachments, layout, schedule
from diskbook.design.model import Arm, Disk, Scenario, Workload
from diskbook.facts import catalog, disk_options, neighbours
from diskbook.facts.arm import DELAYS_S
from diskbook.facts.catalog import OWN_DISK
from diskbook.facts.units import MB, MIB
from diskbook.tools.protocol import OVERWRITE_BLOCK_BYTES

DRILL_S = 120.0  # roughly: a machine off and on, a disk moved
OWN_DISK_MB_S = 200.0
"""A guess: how fast a disk of the user's own is filled."""


def around_s(scenario: Scenario) -> float:
    """Time of one replicate apart from its trials, in seconds on Azure.

    Machines and disks made, moved, filled and deleted, clusters and volumes made, drills, losses, and
    the wait between blocks.

    Times of operations are the emulator's idea of Azure's: the creation of a VM is recorded (75 s, in a zone
    168 s), the others are plausible. Prefill goes at the disk's limit in MB/s, the random pass after it at
    that or at its IOPS, one disk after the other.
    """
    prefill = sum(fill_s(scenario).values())
    over = sum(overwrite_s(scenario).values())
    if any(disk.sku == OWN_DISK for disk in scenario.disk):  # nothing is created, moved or deleted but files
        return prefill + over + schedule.waiting_s(scenario)
    vm = "vm-create-zonal" if any(machine.zone for machine in scenario.machine) else "vm-create"
    made = sum(DELAYS_S[step] for step in ("nsg", "vnet", "public-ip", "nic", vm))
    made += DELAYS_S["vm-extension"] * any(machine.os == "windows" for machine in scenario.machine)
    attached, detached = moves(scenario)
    moved = attached * DELAYS_S["disk-attach"] + detached * DELAYS_S["disk-detach"]
    prefill += over + sum(cache_s(scenario, arm, load) for arm, load in scenario.cells)
    drills = len(scenario.drill) * DRILL_S
    deleted = DELAYS_S["vm-delete"] + DELAYS_S["group-delete"]
    volumes = neighbours.volume_cost.around_s(scenario) if scenario.volume else 0.0
    moved += settling_s(scenario)
    return made + moved + prefill + volumes + drills + schedule.waiting_s(scenario) + deleted


def fill_s(scenario: Scenario) -> dict[str, float]:
    """Time to fill each disk and volume that arms measure, in seconds; fleets write theirs by block."""
    return {
        name: layout.filled_bytes(scenario, name) / MB / _written(scenario, name, MIB)
        for name in _conditioned(scenario)
    }


def overwrite_s(scenario: Scenario) -> dict[str, float]:
    """Time of the random pass over each of them, in seconds; 0 where the design leaves it out."""
    return {
        name: layout.overwritten_bytes(scenario, name) / MB / _written(scenario, name, OVERWRITE_BLOCK_BYTES)
        for name in _conditioned(scenario)
    }


def cache_s(scenario: Scenario, arm: Arm, load: Workload) -> float:
    """Time that the trials of a cell take to have the host cache as they ask for it, in seconds."""
    times = load.blocks * scenario.design.repeats
    if load.cache_state == "cold":
        return times * (DELAYS_S["disk-attach"] + DELAYS_S["disk-detach"])
    if load.cache_state == "warm":
        return times * load.working_set_bytes / MB / _mb_s(scenario, scenario.disk_of(arm))
    return 0.0


def _conditioned(scenario: Scenario) -> list[str]:
    """Disks and volumes that are filled once."""
    sets = neighbours.volume_rules.data_sets(scenario) if scenario.volume else {}
    return [
        name for name in dict.fromkeys(arm.disk or arm.volume for arm in scenario.arm) if name not in sets
    ]


def _written(scenario: Scenario, name: str, block_bytes: int) -> float:
    """MB/s at which a disk or a volume is written in blocks of a size: by its limits, without bursts."""
    arm = next(arm for arm in scenario.arm if name in (arm.disk, arm.volume))
    if arm.volume:
        return neighbours.volume_cost.written_mb_s(scenario, arm, block_bytes)
    disk = scenario.disk_named(name)
    if disk.sku == OWN_DISK:
        return OWN_DISK_MB_S
    mb_s = _mb_s(scenario, disk)
    return mb_s if disk.ephemeral else min(mb_s, disk_options.limits(disk).iops * block_bytes / MB)


def moves(scenario: Scenario) -> tuple[float, float]:
    """Attachments and detachments of one replicate, from the order of its trials (`scenario.attachments`)."""
    counts = moves_by_disk(scenario).values()
    return sum(attached for attached, _ in counts), sum(detached for _, detached in counts)


def moves_by_disk(scenario: Scenario) -> dict[str, tuple[float, float]]:
    """Attachments and detachments of each disk in the blocks of one replicate; those of pools stay.

    Of more than 50 blocks the first 50 are counted and stand for the others.
    """
    return _moves_in_blocks(scenario)[0]


def moves_of_drills(scenario: Scenario) -> dict[str, tuple[float, float]]:
    """Attachments and detachments of each disk in the failover tests of one replicate, after its blocks."""
    places = _moves_in_blocks(scenario)[1] if scenario.drill else {}
    moved: dict[str, tuple[float, float]] = {}
    for drill in scenario.drill:
        counts = Counter[str]()
        for machine in (drill.from_machine, drill.machine):
            if drill.kind != "shared":  # the other machines give it up
                counts["off"] += _release(places[drill.disk], drill.disk, [(drill.disk, machine)])
            on, off = _attach(scenario, places, drill.disk, machine)
            counts.update(on=on, off=off)
        before = moved.get(drill.disk, (0.0, 0.0))
        moved[drill.disk] = before[0] + counts["on"], before[1] + counts["off"]
    return moved


def _moves_in_blocks(scenario: Scenario) -> tuple[dict[str, tuple[float, float]], dict[str, list[str]]]:
    """Attachments and detachments of each disk, and the machines that have it in the end."""
    counted, share = _first_blocks(scenario)
    alone = [disk.name for disk, machine in scenario.made_disks() if machine is None]
    places: dict[str, list[str]] = {name: [] for name in alone}
    attached, detached = Counter[str](), Counter[str]()
    between = attachments.moved_between(scenario)
    for block in counted:
        before = attachments.places_before(scenario, block)
        for disk in between:
            detached[disk] += _release(places[disk], disk, before)
        for disk, machine in before:
            if block is counted[0] or disk in between:
                attached[disk] += _attach(scenario, places, disk, machine)[0]
        cycles = attachments.cycles(scenario, block)
        for trial in block.trials:
            arm = scenario.arm_named(trial.arm)
            if arm.disk not in places:
                continue
            for _ in range(max(1, cycles.get(trial.position, 0))):
                done = _attach(scenario, places, arm.disk, arm.machine, again=trial.position in cycles)
                attached[arm.disk] += done[0]
                detached[arm.disk] += done[1]
    return {name: (attached[name] * share, detached[name] * share) for name in alone}, places


def attached_anew(scenario: Scenario) -> tuple[float, float]:
    """How often disks of one replicate are reattached in its blocks, and before how many visits of arms.

    Before the first compared trial of a visit the disk settles (`settling_s`).
    """
    blocks, share = _first_blocks(scenario)
    times = attachments.per_block(scenario, blocks).total()
    visits = sum(len(attachments.cycles(scenario, block)) for block in blocks)
    return times * share, visits * share


def settled_groups(scenario: Scenario) -> int:
    """Count the groups of blocks of a replicate that begin with a move between placements; 0 without."""
    return len(schedule.placement_groups(scenario)) if attachments.moved_between(scenario) else 0


def settling_s(scenario: Scenario) -> float:
    """Time that disks of one replicate settle, with the trials right after their attaches (`early`), in s."""
    visits = attached_anew(scenario)[1] * max(scenario.design.settle_s, attachments.trial_s(scenario))
    return visits + settled_groups(scenario) * scenario.design.settle_s


def _first_blocks(scenario: Scenario) -> tuple[list[schedule.Block], float]:
    """At most 50 blocks of the first replicate, and how many blocks each of them stands for.

    All of them where disks move between placements, which they do as often with any number of blocks.
    """
    blocks, most = schedule.n_blocks(scenario), 1000 if attachments.moved_between(scenario) else 50
    loads = tuple(load.model_copy(update={"blocks": min(load.blocks, most)}) for load in scenario.workload)
    single = scenario.design.model_copy(update={"replicates": 1})
    first = schedule.plan(scenario.model_copy(update={"design": single, "workload": loads}))
    return first, blocks / max(1, len(first))


def _release(machines: list[str], disk: str, needed: Sequence[tuple[str, str]]) -> int:
    """Take a disk from the machines that need it no more; number of detachments."""
    gone = [machine for machine in machines if (disk, machine) not in needed]
    for machine in gone:
        machines.remove(machine)
    return len(gone)


def _attach(
    scenario: Scenario, places: dict[str, list[str]], disk: str, machine: str, again: bool = False
) -> tuple[int, int]:
    """Place a disk on a machine; numbers of attachments and detachments that this takes."""
    place, detached = places.setdefault(disk, []), 0
    if machine in place and not again:
        return 0, 0
    if machine in place or len(place) >= scenario.disk_named(disk).max_shares:
        place.remove(machine if machine in place else place[0])
        detached = 1
    place.append(machine)
    return 1, detached


def _mb_s(scenario: Scenario, disk: Disk) -> float:
    """Return the limit of a disk in MB/s; of an ephemeral OS disk that of its machine, if known."""
    if disk.ephemeral:
        machine = next(arm.machine for arm in scenario.arm if arm.disk == disk.name)
        return catalog.vm_size(scenario.machine_named(machine).size).cached_mb_s or 100.0
    return disk_options.limits(disk).mb_s


@dataclass(frozen=True)
class AttachCalls:
    """Calls by what they are for, and how often each disk is detached.

    One call serves all disks of a pool on one machine. The scenario's checks are left out.
    """

    pools: int
    blocks: float
    drills: float
    losses: int
    detached: Mapping[str, float]

    @property
    def total(self) -> float:
        """All of them."""
        return self.pools + self.blocks + self.drills + self.losses


def attach_calls(scenario: Scenario) -> AttachCalls:
    """Count the attach and detach calls of one replicate."""
    blocks, drills = moves_by_disk(scenario), moves_of_drills(scenario)
    losses = neighbours.volume_rules.all_taken_away(scenario) if scenario.loss else ()
    taken = [disks for loss in losses for disks in loss.disks.values()]
    detached: Counter[str] = Counter(disk for disks in taken for disk in disks)
    for moves in (blocks, drills):
        detached.update({disk: off for disk, (_, off) in moves.items()})  # type: ignore[arg-type]
    return AttachCalls(
        pools=sum(len(scenario.pool_machines(disk.name)) for disk in scenario.data_disks),
        blocks=sum(map(sum, blocks.values())),
        drills=sum(map(sum, drills.values())),
        losses=2 * len(taken),
        detached=detached,
    )
