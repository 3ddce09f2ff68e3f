"""Sections of `diskbook plan` on creating and paying: what is created, its limits, its price, its quota."""

from collections import Counter
from collections.abc import Iterable, Sequence

from diskbook.cloud.azure.offers import Quota
from diskbook.cost.durations import overwrite_s, settling_s
from diskbook.cost.estimate import MARGIN, Estimate, Line, of_disks
from diskbook.design import company_rules, schedule
from diskbook.design.model import Arm, Disk, Machine, Network, Scenario
from diskbook.facts import catalog, disk_options, neighbours, table_writers
from diskbook.facts.units import MB, duration
from diskbook.stats import expected

WIDTH = 36
"""Letters of what is paid for: with the numbers after it a row has 80."""
UNITS = ("GiB", "IOP", "MB/")
"""Beginnings of what is counted in a unit of its own."""


_LASTING = (
    "  (one with an ephemeral OS disk cannot be deallocated: it is billed until teardown or 'diskbook sweep')"
)


def created(scenario: Scenario, estimate: Estimate) -> str:
    """What would be created, where, and for how long."""
    machines = Counter(_machine(scenario, machine) for machine in scenario.machine)
    disks = Counter(_disk(disk) for disk, _ in scenario.made_disks())
    count = len(scenario.machine)
    replicates = scenario.design.replicates
    each = f"for each of {replicates} replicates" if replicates > 1 else "for its replicate"
    named, group = scenario.azure.resource_group, "one resource group"
    if named:
        group = f"the existing resource group {named}, which stays"
    tags = ", ".join(f"{name}={value}" for name, value in scenario.azure.tags.items())
    return "\n".join(
        [
            f"would be created in {scenario.region}, in {group}, {each}:",
            *([f"  tags of your own: {tags}"] if tags else []),
            f"  machines:{_counted(machines)}; each with OS disk, {_interfaces(scenario)}",
            *_network(scenario.network),
            f"  data disks:{_counted(disks)}",
            *(neighbours.volume_cost.created(scenario) if scenario.has_clusters else ()),
            f"  all of it exists for about {duration(3600 * estimate.hours, minutes_from_s=0)}; "
            f"{count * replicates} machines at a time, which shut themselves down after "
            f"{round(estimate.worst_hours, 1):g} h",
            *(_LASTING for _ in _local(scenario)[:1]),
        ]
    )


def _interfaces(scenario: Scenario) -> str:
    if scenario.network.is_private:
        return "network interface in an existing subnet, no public address"
    return "network interface and public address"


def _network(network: Network) -> list[str]:
    """An existing subnet and the way into it, which are not the run's, nor what they cost."""
    place = company_rules.subnet(network) if network.is_private else None
    if place is None:
        return []
    way = f"jump host {network.jump_host}"
    if network.bastion:
        way = (
            f"tunnels of Bastion {network.bastion} in {company_rules.bastion_group(network)}, which stands "
            "already: its price is not the run's"
        )
    return [
        f"  network: private, subnet {place.name} of {place.network} in {place.group}, which is not changed "
        "and stays",
        f"  SSH: by {way}; the interfaces let it in from the virtual network alone",
        "  the subnet has to let machines out (NAT gateway, firewall or proxy): they fetch their tools",
    ]


def _counted(names: Counter[str]) -> str:
    texts = [f"{number} x {name}" for name, number in names.items()]
    return f" {', '.join(texts)}" if len(texts) <= 3 else "".join(f"\n    {text}" for text in texts)


def _machine(scenario: Scenario, machine: Machine) -> str:
    if scenario.os_disk_of(machine.name) is not None:
        return f"{machine.size} with an ephemeral OS disk"
    return machine.size if machine.os == "linux" else f"{machine.size} with Windows"


def _disk(disk: Disk) -> str:
    texts = [option.text(getattr(disk, option.name)) for option in disk_options.OPTIONS]
    texts.append(f"cache {disk.cache}" if disk.cache != "None" else "")
    options = ", ".join(text for text in texts if text)
    return f"{disk.sku} {disk.size_gib} GiB" + (f" ({options})" if options else "")


# Limits


def limits(scenario: Scenario) -> str:
    """Documented limits of machines and disks, and the lowest one that each arm meets by block size."""
    sizes = [catalog.find_vm_size(machine.size) for machine in scenario.machine]
    rows = [(f"disk {disk.name}", _rates(disk_options.limits(disk))) for disk in scenario.data_disks]
    rows += [(f"local disk of {size.name}", _rates(local_limits(size))) for size in _local(scenario)]
    rows += [(size.name, _rates(machine_limits(size))) for size in dict.fromkeys(sizes) if size]
    unknown = dict.fromkeys(
        item.size for item in scenario.machine if item.size.lower() not in catalog.vm_sizes()
    )
    rows += [(name, "in no table: Azure says them when the run begins") for name in unknown]
    arms = [(arm.name, lowest(scenario, arm)) for arm in scenario.arm]
    return "\n".join(
        [
            "documented limits (of a machine: uncached):",
            *_grouped(rows),
            "the lowest limit of each arm, of disk and machine:",
            *_grouped(arms),
        ]
    )


def _grouped(rows: Sequence[tuple[str, str]]) -> list[str]:
    """One line for all names that share a text."""
    together: dict[str, list[str]] = {}
    for name, text in rows:
        together.setdefault(text, []).append(name)
    names = {text: ", ".join(members).replace(", disk ", ", ") for text, members in together.items()}
    width = min(42, max(len(name) for name in names.values()))
    return [f"  {name:<{width}}  {text}" for text, name in names.items()]


def _local(scenario: Scenario) -> list[catalog.VmSize]:
    """Sizes of the machines whose OS disk is ephemeral, as far as they are known."""
    holders = [item for item in scenario.machine if scenario.os_disk_of(item.name) is not None]
    sizes = [catalog.find_vm_size(machine.size) for machine in holders]
    return list(dict.fromkeys(size for size in sizes if size))


def local_limits(size: catalog.VmSize) -> catalog.DiskLimits:
    """Limits of a machine for its local disk and host cache together, in the form of a disk's."""
    return catalog.DiskLimits(None, size.cached_iops or 0, round(size.cached_mb_s or 0))


def machine_limits(size: catalog.VmSize) -> catalog.DiskLimits:
    """Uncached limits of a machine, in the form of a disk's."""
    burst_mb_s = None if size.uncached_burst_mb_s is None else round(size.uncached_burst_mb_s)
    return catalog.DiskLimits(
        None, size.uncached_iops, round(size.uncached_mb_s), size.uncached_burst_iops, burst_mb_s
    )


def _rates(of: catalog.DiskLimits) -> str:
    tier = f"{of.tier}, " if of.tier else ""
    text = f"{tier}{of.iops:,} IOPS, {of.mb_s:,} MB/s"
    if not of.iops:
        return "not known"
    if of.burst_iops is None or of.burst_mb_s is None:
        return text
    return f"{text}; bursts to {of.burst_iops:,} IOPS, {of.burst_mb_s:,} MB/s"


def lowest(scenario: Scenario, arm: Arm) -> str:
    """The lowest limit of an arm for each block size that it is measured with; burst limits in brackets."""
    if arm.volume:
        return neighbours.volume_cost.lowest(scenario, arm)
    holders = _holders(scenario, arm)
    sizes = {load.block_size_bytes for load in scenario.workload if load.meets(arm.name)}
    texts = []
    for block in sorted(sizes) if holders else ():
        base = min(_iops(who, what.iops, what.mb_s, block) for who, what in holders)
        burst = min(
            _iops(who, what.burst_iops or what.iops, what.burst_mb_s or what.mb_s, block)
            for who, what in holders
        )
        more = f", bursting {_limit_text(burst)}" if burst != base else ""
        texts.append(f"{block // 1024 or block / 1024:g} KiB: {_limit_text(base)}{more}")
    return "; ".join(texts) or "not known"


def _holders(scenario: Scenario, arm: Arm) -> list[tuple[str, catalog.DiskLimits]]:
    """Whose limits an arm meets, with them."""
    size = catalog.find_vm_size(scenario.machine_named(arm.machine).size)
    disk = scenario.disk_named(arm.disk)
    if disk.ephemeral:
        return [("VM, local disk", local_limits(size))] if size and size.cached_iops else []
    return [("disk", disk_options.limits(disk)), *([("VM", machine_limits(size))] if size else [])]


def _iops(who: str, iops: float, mb_s: float, block: int) -> tuple[float, str]:
    by_rate = mb_s * MB / block
    return (by_rate, f"{who}, {mb_s:,.0f} MB/s") if by_rate < iops else (float(iops), who)


def _limit_text(limit: tuple[float, str]) -> str:
    iops, holder = limit
    return f"{iops:,.0f} IOPS ({holder})"


# Cost


def cost(estimate: Estimate, limit: float | None, cloud: str) -> str:
    """The cost as a table, with its source, its worst case and the limit."""
    what = "cost" if cloud == "azure" else "cost, if it ran on Azure (on the emulator it costs nothing)"
    total = {"expected": _usd(estimate.usd), "at worst": _usd(estimate.worst_usd)}
    rows = [*map(_row, estimate.lines), {"": "in all, USD", "USD each": "", "hours": "", **total}]
    table = table_writers.Table.of(rows, right=("USD each", "hours", "expected", "at worst"))
    notes = [f"  prices: {estimate.source}", *(f"  {note}" for note in estimate.notes)]
    guessed = sorted(
        {line.what for line in estimate.lines if line.price and line.price.quality == "inferred"}
    )
    if guessed:
        notes.append(f"  inferred, not read: the price of {'; '.join(guessed)}")
    if estimate.unpriced:
        notes.append(f"  no price is known of {'; '.join(estimate.unpriced)}: it is not in the sum")
    notes += [
        f"  at worst: never torn down, it costs {estimate.worst_usd:.2f} USD until it expires after "
        f"{round(estimate.worst_hours, 1):g} h, and then "
        f"{estimate.usd_a_day_after:.2f} USD a day for what expiry does not end, until "
        "'diskbook sweep --delete'. Without outgoing traffic, taxes and discounts",
    ]
    return "\n".join(
        [f"{what}:", table_writers.text(table, 2, WIDTH), *notes, f"  {_limit(estimate, limit)}"]
    )


def shares(scenario: Scenario, estimate: Estimate) -> list[str]:
    """What parts of a run are of its cost: of its time, what stands meanwhile, by the hour."""
    hourly = [(line, line.price) for line in estimate.lines if line.price and line.hours is not None]
    usd_an_hour = sum(price.usd_per_hour * line.count for line, price in hourly)
    random_pass, evidence, settling = (
        [f"  of it {what}: about {seconds / 3600 * usd_an_hour:.2f} USD; {without}"] * bool(seconds)
        for what, seconds, without in (
            (
                "the random pass over the filled disks",
                sum(overwrite_s(scenario).values()),
                "design.no_overwrite leaves it out, with its reason",
            ),
            ("the trials for evidence", expected.seconds(scenario), "design.evidence_s = 0 leaves them out"),
            (
                "settling after attaches",
                settling_s(scenario),
                "design.settle_s = 0 leaves it out, and the check for an attach effect with it",
            ),
        )
    )
    return [*random_pass, *evidence, *_other_placements(scenario, estimate), *settling]


def _other_placements(scenario: Scenario, estimate: Estimate) -> list[str]:
    """What the disks of other placements than the first cost, which are there to be compared with."""
    first, *others = schedule.placements(scenario).values()
    there = {scenario.arm_named(name).disk for name in first}
    names = dict.fromkeys(scenario.arm_named(name).disk for arms in others for name in arms)
    disks = [scenario.disk_named(name) for name in names if name and name not in there]
    if not disks:
        return []
    usd = of_disks(estimate, disks)
    return [
        f"  of it {', '.join(disk.name for disk in disks)}, to compare with in the other placements: about "
        f"{usd:.2f} USD"
    ]


def _row(line: Line) -> dict[str, str]:
    what = f"{line.count:,.0f} {line.what}" if line.what[:3] in UNITS else f"{line.count:,.0f} x {line.what}"
    return {
        "": what,
        "USD each": "unknown" if line.price is None else f"{line.price.usd:.6g}{_per(line.price.unit)}",
        "hours": "" if line.hours is None else f"{line.hours:.1f}",
        "expected": _usd(line.usd),
        "at worst": _usd(line.worst_usd),
    }


def _per(unit: str) -> str:
    return {
        "1 Hour": "/h",
        "1/Hour": "/h",
        "1 GiB/Hour": "/h",
        "1/Month": "/month",
        "1 GB/Month": "/month",
        "10K": "",
    }[unit]


def _usd(usd: float | None) -> str:
    return "?" if usd is None else f"{usd:.2f}"


def _limit(estimate: Estimate, limit: float | None) -> str:
    if estimate.unpriced:
        stops = "" if limit is None else ": the run would stop before anything is created"
        named = "a limit" if limit is None else f"the limit of {limit:g} USD"
        return (
            f"without a price of {'; '.join(estimate.unpriced)} nobody can tell whether {named} holds{stops}"
        )
    weighed = estimate.usd * MARGIN
    margin = f"{weighed:.2f} USD (expected and {100 * (MARGIN - 1):.0f} %)"
    if limit is None:
        return f"no limit binds here; --max-cost-usd or design.max_cost_usd is compared with {margin}"
    verdict = "is within" if weighed <= limit else "EXCEEDS"
    return f"{margin} {verdict} the limit of {limit:g} USD" + (
        "" if weighed <= limit else ": the run would stop before anything is created"
    )


# Quota


def quota(need: Sequence[tuple[Quota, int]], names: Iterable[tuple[str, int]]) -> str:
    """What the run takes of each quota, with what is free where the subscription was asked."""
    if need:
        rows = [f"  {item.name}: {number} of {item.free} free (limit {item.limit})" for item, number in need]
        return "\n".join(["quota needed at a time, of this subscription:", *rows])
    rows = [f"  {name}: {number}" for name, number in names]
    return "\n".join(["quota needed at a time (--cloud azure asks what is free):", *rows])
