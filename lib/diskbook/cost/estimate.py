"""What a run costs: the bill of materials of a scenario, for the time that it is planned to take.

Pure: prices come in as a `PriceList`. Machines are billed by the second, disks and addresses by the begun
hour, on-demand bursting and the transactions of Standard disks by use. Left out, since small or unknown:
outgoing traffic, taxes, the transactions of OS disks and of prefilling, discounts.

Reports show what one more replicate would cost, from the dated table of prices alone.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from diskbook.cost import durations
from diskbook.design import schedule
from diskbook.design.model import Arm, Disk, Scenario, Workload
from diskbook.design.vocabulary import Provenance
from diskbook.facts import catalog, disk_options, neighbours, prices
from diskbook.facts.errors import DiskbookError
from diskbook.facts.prices import HOURS_A_MONTH, Meter, Price, PriceList
from diskbook.stats import expected

MARGIN = 1.5
"""What a limit is compared with: the expected cost times this.

Times of operations on Azure are known from few recordings, a failed block is measured again, and prices may
have changed since they were read. The worst case is no measure for a limit: it takes a run that nobody looks
after until its machines end themselves.
"""
LEAST_LATENCY_S = 0.25e-3
"""Well below the mean of any published trial; bounds the I/Os that a load can make."""
DEALLOCATED_H = 24.0
"""Machines that expire later are only stopped, and billed on: Azure's auto-shutdown is a time of day."""
IO_BYTES, HDD_IO_BYTES, HDD_MOST = 256 * 1024, 16 * 1024, 16
"""A larger I/O is billed as several; on an S70 or S80 as 16 at most (disks-understand-billing, 2026-09)."""
BILLED_PER_HOUR = {"S4": 450_000, "S6": 858_000, "S70": 93_000_000, "S80": 110_000_000}
"""Most I/Os that are billed (Azure Storage Blog, 2026-03-10); not known for other Standard disks."""
FLEXIBLE = {"PremiumV2_LRS": ("v2", 3000, 125), "UltraSSD_LRS": ("ultra", 0, 0)}  # IOPS and MB/s included
# The OS disk that provisioning asks for, by the size of the image: Ubuntu 30 GiB, Windows Server 127 GiB.
OS_DISK = {"linux": "E4 LRS", "windows": "E10 LRS"}


@dataclass(frozen=True)
class Item:
    """Something billed, by the "second", begun "hour" or "use"; `count` is what one replicate has or uses."""

    what: str
    meter: Meter
    count: float
    by: str


@dataclass(frozen=True)
class Line:
    """An item for all replicates, priced; USD are None where no price is known."""

    what: str
    meter: Meter
    count: float
    hours: float | None
    price: Price | None
    usd: float | None
    worst_usd: float | None


@dataclass(frozen=True)
class Estimate:
    """What a run is expected to cost in USD, and what it would cost if it stood until it expires.

    `hours` is how long the machines of one replicate are expected to live, `worst_hours` until they expire,
    `usd_a_day_after` what is billed for each day after that until it is deleted.
    """

    replicates: int
    hours: float
    worst_hours: float
    lines: tuple[Line, ...]
    source: str
    notes: tuple[str, ...]
    usd_a_day_after: float = 0.0

    @property
    def usd(self) -> float:
        """Expected cost of what has a price."""
        return math.fsum(line.usd or 0.0 for line in self.lines)

    @property
    def worst_usd(self) -> float:
        """Cost until expiry of what has a price."""
        return math.fsum(line.worst_usd or 0.0 for line in self.lines)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """What no price is known of."""
        return tuple(line.what for line in self.lines if line.usd is None)

    @property
    def dearest(self) -> Line:
        """The line that costs most."""
        return max(self.lines, key=lambda line: line.usd or 0.0)


def items(scenario: Scenario) -> list[Item]:
    """The bill of materials of one replicate."""
    parts = [*_machines(scenario), *_disks(scenario), *_witnesses(scenario), *_use(scenario)]
    together: dict[tuple[str, Meter, str], Item] = {}
    for item in parts:
        key = (item.what, item.meter, item.by)
        earlier = together.get(key)
        together[key] = replace(item, count=item.count + earlier.count) if earlier else item
    return list(together.values())


def meters(scenario: Scenario) -> list[Meter]:
    """Everything that has to be priced."""
    return list(dict.fromkeys(item.meter for item in items(scenario)))


def life_s(scenario: Scenario) -> float:
    """Time that the machines of one replicate live, in seconds: on Azure all do at the same time."""
    single = scenario.model_copy(update={"design": scenario.design.model_copy(update={"replicates": 1})})
    return schedule.seconds(single) + durations.around_s(single) + expected.seconds(scenario)


def estimate(scenario: Scenario, prices: PriceList, expires_h: float, replicates: int = 0) -> Estimate:
    """Price a scenario whose machines end themselves after some hours; by default all its replicates."""
    number = replicates or scenario.design.replicates
    hours = life_s(scenario) / 3600
    worst = max(hours, expires_h)
    lines = tuple(_line(item, number, hours, worst, prices) for item in items(scenario))
    after = number * _usd_an_hour_after(scenario, worst, prices)
    return Estimate(number, hours, worst, lines, prices.source, prices.notes, 24 * after)


def _usd_an_hour_after(scenario: Scenario, expires_h: float, prices: PriceList) -> float:
    """What one replicate costs an hour after its expiry: disks and addresses, and machines only stopped.

    Azure deallocates machines at their expiry, where that is within a day and their OS disk is not ephemeral
    (`azure.expiry`).
    """
    lasting = [(float(item.count), item.meter) for item in items(scenario) if item.by == "hour"]
    for machine in scenario.machine:
        if expires_h >= DEALLOCATED_H or scenario.os_disk_of(machine.name) is not None:
            size = catalog.find_vm_size(machine.size)
            lasting.append((1, Meter(f"vm-{machine.os}", size.name if size else machine.size)))
    return _hourly(lasting, prices)


def usd_an_hour(scenario: Scenario, prices: PriceList) -> float:
    """What one replicate costs for each hour that it stands; what has no known price is left out."""
    return _hourly(((item.count, item.meter) for item in items(scenario) if item.by != "use"), prices)


def _hourly(lasting: Iterable[tuple[float, Meter]], prices: PriceList) -> float:
    priced = [(count, prices.of(meter.kind, meter.name)) for count, meter in lasting]
    return math.fsum(count * price.usd_per_hour for count, price in priced if price is not None)


def _line(item: Item, replicates: int, hours: float, worst_h: float, prices: PriceList) -> Line:
    price = prices.of(item.meter.kind, item.meter.name)
    count = item.count * replicates
    if item.by == "use":
        usd = None if price is None else price.usd * count
        return Line(item.what, item.meter, count, None, price, usd, usd)
    billed, worst = (math.ceil(h) if item.by == "hour" else h for h in (hours, worst_h))
    if price is None:
        return Line(item.what, item.meter, count, billed, None, None, None)
    each = price.usd_per_hour * count
    return Line(item.what, item.meter, count, billed, price, each * billed, each * worst)


def month(disk: disk_options.Disk, prices: PriceList) -> float | None:
    """List price of a disk a month in USD, without what is billed by use; None where a price is not known."""
    return sum_of(billed(disk, 1), prices)


def sum_of(parts: Iterable[Item], prices: PriceList) -> float | None:
    """List price of items a month in USD; None where a price is not known."""
    total = 0.0
    for item in parts:
        price = prices.of(item.meter.kind, item.meter.name)
        if price is None:
            return None
        total += item.count * (price.usd if item.by == "use" else price.usd_per_hour * HOURS_A_MONTH)
    return total


def of_disks(estimate: Estimate, disks: Iterable[Disk]) -> float:
    """Expected cost of disks that are part of an estimate, in USD, for all replicates."""
    each = {line.what: (line.usd or 0.0) / line.count for line in estimate.lines}
    items_of = (item for disk in disks for item in billed(disk, 1))
    return estimate.replicates * math.fsum(item.count * each[item.what] for item in items_of)


def _machines(scenario: Scenario) -> Iterator[Item]:
    for machine in scenario.machine:
        size = catalog.find_vm_size(machine.size)
        name = size.name if size else machine.size
        system = "" if machine.os == "linux" else ", Windows"
        yield Item(f"machine {name}{system}", Meter(f"vm-{machine.os}", name), 1, "second")
        tier = OS_DISK[machine.os]
        if scenario.os_disk_of(machine.name) is None:
            yield Item(f"OS disk {tier.split()[0]} (StandardSSD_LRS)", Meter("disk", tier), 1, "hour")
        if not scenario.network.is_private:
            yield Item("public address", Meter("public-ip", "Standard"), 1, "hour")


def _disks(scenario: Scenario) -> Iterator[Item]:
    for disk in scenario.disk:
        for _ in scenario.made_of(disk):
            users = {arm.machine for arm in scenario.arm if arm.disk == disk.name}
            yield from billed(disk, max(1, min(disk.max_shares, len(users))))


def _witnesses(scenario: Scenario) -> Iterator[Item]:
    """Storage account of cloud witnesses. The least that is billed of one is not known: a GB is taken."""
    redundancy = scenario.witness_redundancy
    if redundancy is not None:
        yield Item("storage account of a witness", Meter("witness", f"Hot {redundancy}"), 1, "hour")


def billed(disk: disk_options.Disk, sharers: int) -> Iterator[Item]:
    """What a disk costs by the hour; an ephemeral OS disk comes with its machine."""
    if disk.sku != catalog.EPHEMERAL:
        yield from _flexible(disk) if disk.sku in FLEXIBLE else _sized(disk, sharers)


def _sized(disk: disk_options.Disk, sharers: int) -> Iterator[Item]:
    tier, redundancy = disk_options.limits(disk).tier, disk.sku.partition("_")[2]
    yield Item(f"disk {tier} ({disk.sku})", Meter("disk", f"{tier} {redundancy}"), 1, "hour")
    if sharers > 1:
        # The same price for LRS and ZRS.
        yield Item(f"further mounts of {tier}", Meter("mount", f"{tier} LRS"), sharers - 1, "hour")
    for option in disk_options.OPTIONS:
        value = getattr(disk, option.name)
        if option.meter and value != option.default:
            yield Item(option.text(value), Meter(option.meter, redundancy), 1, "hour")


def _flexible(disk: disk_options.Disk) -> Iterator[Item]:
    kind, free_iops, free_mb_s = FLEXIBLE[disk.sku]
    limits = disk_options.limits(disk)
    parts = (
        ("capacity", "GiB", disk.size_gib),
        ("iops", "IOPS", limits.iops - free_iops),
        ("mb-s", "MB/s", limits.mb_s - free_mb_s),
    )
    for part, unit, count in parts:
        if count > 0:
            above = " beyond the included" if part != "capacity" and free_iops else ""
            yield Item(f"{unit} of {disk.sku}{above}", Meter(f"{kind}-{part}", disk.sku), count, "hour")


def _use(scenario: Scenario) -> Iterator[Item]:
    """I/Os that are billed: at most as many as the load, the disk and the machine allow."""
    alone = expected.of(scenario).cells if scenario.design.evidence_s else ()
    for arm, load in scenario.cells:
        disk = scenario.disk_of(arm)
        if disk.ephemeral:
            continue
        seconds = scenario.design.repeats * load.blocks * (load.ramp_s + load.runtime_s)
        if (arm.name, load.name) in alone:
            seconds += (load.ramp_s + scenario.design.evidence_s) / scenario.design.replicates
        if arm.volume:
            each, disks = neighbours.volume_cost.most_of_a_pool(scenario, arm, load, LEAST_LATENCY_S)
            yield from billed_ios(disk, each, disks * seconds)
        else:
            most = _most_iops(scenario, arm, load)
            yield from billed_ios(disk, most, seconds, load.block_size_bytes)


def billed_ios(
    disk: disk_options.Disk, iops: ArrayLike, seconds: ArrayLike, block_bytes: float = 1
) -> Iterator[Item]:
    """What I/Os cost by use: those above the base of a disk that bursts on demand, and all of Standard disks.

    Rates and how long they last may be arrays; `block_bytes` is the mean size of an I/O.
    """
    if disk.sku in FLEXIBLE or disk.sku == catalog.EPHEMERAL:
        return
    tier = catalog.disk_tier(disk.sku, disk.size_gib)
    units = math.ceil(block_bytes / (HDD_IO_BYTES if disk.sku == "Standard_LRS" else IO_BYTES))
    rates = np.asarray(iops, float) * (min(units, HDD_MOST) if tier.tier in ("S70", "S80") else units)
    if disk_options.values(disk)["bursting"] and rates.max() > tier.iops:
        redundancy = disk.sku.partition("_")[2]
        count = float((np.clip(rates - tier.iops, 0, None) * seconds).sum()) / 1e4
        yield Item("10,000 I/Os above the base", Meter("burst-transactions", redundancy), count, "use")
    elif not disk.sku.startswith("Premium"):
        meter = Meter("operations", f"{tier.tier} LRS")
        hours = float((np.ones_like(rates) * seconds).sum()) / 3600
        most = hours * BILLED_PER_HOUR.get(tier.tier, math.inf)
        yield Item(
            f"10,000 I/Os of {disk.sku}", meter, min(float((rates * seconds).sum()), most) / 1e4, "use"
        )


def _most_iops(scenario: Scenario, arm: Arm, load: Workload) -> float:
    disk, machine = scenario.disk_named(arm.disk), scenario.machine_named(arm.machine)
    limits = disk_options.limits(disk)
    size = catalog.find_vm_size(machine.size)
    caps = [load.outstanding / LEAST_LATENCY_S, float(limits.burst_iops or limits.iops)]
    if load.rate is not None:
        caps.append(load.rate)
    if size is not None:
        caps.append(float(size.uncached_burst_iops or size.uncached_iops))
    return min(caps)


PRICED = (Provenance.AZURE, Provenance.EMULATED)
"""Provenances whose machines and disks have a price of Azure."""


class Priced(NamedTuple):
    """USD of one replicate, None where a price is not known; and what that rests on, in words."""

    usd: float | None
    basis: str


def another_replicate(scenario: Scenario, provenance: str) -> Priced:
    """Price one more replicate at list price; what was not measured on Azure, nor emulated, has none."""
    if provenance not in PRICED:
        return Priced(None, f"has no price here: {provenance} machines and disks are not Azure's to bill")
    try:
        known = prices.from_table(scenario.region, meters(scenario), prices.table())
        bill = estimate(scenario, known, 0.0, replicates=1)
    except DiskbookError as error:
        return Priced(None, f"has no price here: {error}")
    if bill.unpriced:
        return Priced(None, f"has no price here: none is known of {', '.join(bill.unpriced)}")
    what = "costs that at list price"
    if provenance == Provenance.EMULATED:
        what = "would cost that in Azure at list price; emulated, it is free"
    return Priced(bill.usd, f"{what} ({known.source})")
