"""All sizes with all disks and stripes of a region, compared with a need: what fits, and what is cheapest.

A pair fits where the machine carries the need, the disks do, and Azure's rules let them be attached. So
machines and sets of disks are judged apart, in arrays, and only priced machines are paired with sets.
"""

import fnmatch
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache

import numpy as np

from diskbook.choose import candidates
from diskbook.choose.candidates import Candidate, Disks
from diskbook.choose.need import SURVIVES, Need
from diskbook.cost import estimate
from diskbook.cost.estimate import Item
from diskbook.facts import catalog, disk_options, limits as vm_limits, rules
from diskbook.facts.catalog import EPHEMERAL, VmSize
from diskbook.facts.limits import CACHED, FLEXIBLE, PREMIUM
from diskbook.facts.prices import Meter, Price, PriceList
from diskbook.facts.rules import DiskAsk
from diskbook.facts.units import MB
from diskbook.stats.credit import BURST_S, most_drawn

MOST_DISKS = 64
STEPS = (1, 2, 4)
"""IOPS and MB/s that are bought of Premium SSD v2 and Ultra: what the need takes, and multiples of it."""


@dataclass(frozen=True)
class Priced:
    """A candidate that carries the need, with its list price a month and its lasting rate."""

    candidate: Candidate
    usd: float
    lasting_iops: float


@dataclass(frozen=True)
class Found:
    """What carries a need, of `n_sizes` sizes and `n_sets` sets of disks that were looked at.

    `cheapest` has the cheapest candidate of each priced size, by price; `front` those than which none is
    cheaper, lasts at a higher rate and survives more; `unpriced` other sizes that carry it with some disks.
    """

    cheapest: tuple[Priced, ...]
    front: tuple[Priced, ...]
    unpriced: tuple[str, ...]
    n_sizes: int
    n_sets: int

    @property
    def fits(self) -> bool:
        """Whether anything carries the need."""
        return bool(self.cheapest or self.unpriced)


@dataclass(frozen=True)
class _Sets:
    """Sets of disks of one SKU that carry the need: USD of each, NaN where unknown, and lasting rate."""

    units: Sequence[Disks]
    unit: np.ndarray
    count: np.ndarray
    usd: np.ndarray
    lasting: np.ndarray

    def of(self, position: int) -> Disks:
        """The set at a position."""
        return replace(self.units[self.unit[position]], count=int(self.count[position]))


def bill(candidate: Candidate, need: Need) -> list[tuple[float, Item]]:
    """All that a candidate costs a month, each with its number: machine, OS disk, disks and billed I/Os.

    Left out: a public address, traffic, and unknown hourly limits of what I/Os cost (`BILLED_PER_HOUR`).
    """
    disks, machine = candidate.disks, _machine(candidate.size, need)
    if disks.disk.sku == EPHEMERAL:  # it is the OS disk
        return [(1.0, machine[0])]
    parts = [*estimate.billed(disks.disk, 1), *used(disks, need)]
    return [*((1.0, item) for item in machine), *((float(disks.count), item) for item in parts)]


def _machine(size: VmSize, need: Need) -> list[Item]:
    return [
        Item("machine", Meter(f"vm-{need.os}", size.name), 1, "second"),
        Item("OS disk", Meter("disk", estimate.OS_DISK[need.os]), 1, "hour"),
    ]


def usd_a_month(candidate: Candidate, need: Need, prices: PriceList) -> tuple[float | None, list[Price]]:
    """List price of a candidate a month, None where a part has no price; and the prices of its parts."""
    parts = bill(candidate, need)
    known = [prices.of(item.meter.kind, item.meter.name) for _, item in parts]
    sums = [estimate.sum_of([item], prices) for _, item in parts]
    if None in sums:
        return None, []
    total = math.fsum(count * (usd or 0.0) for (count, _), usd in zip(parts, sums, strict=True))
    return total, [price for price in known if price is not None]


def used(disks: Disks, need: Need) -> Iterator[Item]:
    """I/Os of one of the disks that are billed in a month."""
    share = need.beyond_cache if disks.cache != "None" else 1.0
    iops = share * need.iops / disks.count
    yield from estimate.billed_ios(disks.disk, iops, need.seconds_a_month, need.block_bytes)


def find(need: Need, prices: PriceList, today: date, sizes: Collection[VmSize] | None = None) -> Found:
    """Find what carries a need, among all sizes (or those given), disks and stripes of its region."""
    region = catalog.region(need.region)
    all_sizes = catalog.vm_sizes().values() if sizes is None else sizes
    machines = _Machines(need, [size for size in all_sizes if _wanted(size, need, region, today)])
    looked, kinds = _kinds(need, region, prices, catalog.sku_names(), STEPS)
    fitting: dict[str, None] = {}
    priced = _paired(machines, kinds, need, prices, fitting)
    # Of what is bought by the I/O, the front takes exactly the rate of each of its steps.
    steps = {math.ceil(1e4 * row.lasting_iops / need.peak_iops - 1e-6) / 1e4 for row in undominated(priced)}
    more, kinds = _kinds(need, region, prices, rules.FLEXIBLE_SKUS, sorted(steps - {*STEPS}))
    priced += _paired(machines, kinds, need, prices, fitting)
    cheapest = _cheapest(priced)
    names = {row.candidate.size.name for row in cheapest}
    unpriced = tuple(name for name in fitting if name not in names)
    n_sizes = len({size.name for size, _ in machines.rows})
    return Found(cheapest, undominated(priced), unpriced, n_sizes, looked + more)


def undominated(priced: Sequence[Priced]) -> tuple[Priced, ...]:
    """Candidates than which none is as cheap, lasts at as high a rate and survives as much, by price."""
    front: list[Priced] = []
    best = [0.0] * len(SURVIVES)
    for row in sorted(priced, key=_order):
        level = row.candidate.disks.survives
        if row.lasting_iops > best[level] * (1 + 1e-9):
            front.append(row)
            best[: level + 1] = [max(value, row.lasting_iops) for value in best[: level + 1]]
    return tuple(front)


def _order(row: Priced) -> tuple[float, float, int, int]:
    """By price; of equals first what lasts at the highest rate, survives most, and has the fewest disks."""
    return round(row.usd, 4), -row.lasting_iops, -row.candidate.disks.survives, row.candidate.disks.count


def _cheapest(priced: Sequence[Priced]) -> tuple[Priced, ...]:
    """The first of each size in their order."""
    best: dict[str, Priced] = {}
    for row in sorted(priced, key=_order):
        best.setdefault(row.candidate.size.name, row)
    return tuple(best.values())


def _undominated(
    sets: _Sets, few: np.ndarray, machine_iops: float, usd: float | None
) -> Iterator[tuple[int, float, float]]:
    """Priced sets that last longer than all cheaper ones on a machine: position, rate, USD of both."""
    places = np.flatnonzero(few & ~np.isnan(sets.usd))
    if usd is None or not len(places):
        return
    lasting = np.minimum(sets.lasting[places], machine_iops)
    order = np.lexsort((sets.count[places], -lasting, np.round(sets.usd[places], 4)))
    best = np.maximum.accumulate(np.concatenate([[0.0], lasting[order][:-1]]))
    for place in order[lasting[order] > best * (1 + 1e-9)]:
        yield int(places[place]), float(lasting[place]), usd + float(sets.usd[places[place]])


class _Machines:
    """Sizes at each attachment, judged against a need for every kind of limit that its disks may meet."""

    def __init__(self, need: Need, sizes: Sequence[VmSize]) -> None:
        self.rows = [(size, how) for size in sizes for how in size.attachments]
        limits = [vm_limits.by_kind(size.name, how) for size, how in self.rows]
        self._carry, self._lasting = {}, {}
        for kind, share in {(PREMIUM, 1.0), (FLEXIBLE, 1.0), (PREMIUM, need.beyond_cache), (CACHED, 1.0)}:
            of_kind = [row[kind] for row in limits]
            iops, mb_s, *bursts = (
                np.array([getattr(row, name) or 0.0 for row in of_kind], float)
                for name in ("iops", "mb_s", "burst_iops", "burst_mb_s")
            )
            pairs = zip((iops, mb_s), bursts, (need.iops, need.mb_s), strict=True)
            carry = [_carries(share * demand, need.seconds, base, burst) for (base, burst, demand) in pairs]
            self._carry[kind, share] = carry[0] & carry[1]
            self._lasting[kind, share] = _lasting(need, iops, mb_s, share)
        self._need = need

    def _keys(self, unit: Disks) -> list[tuple[str, float]]:
        kind = FLEXIBLE if unit.disk.sku in rules.FLEXIBLE_SKUS else PREMIUM
        return [(kind, 1.0)] if unit.cache == "None" else [(kind, self._need.beyond_cache), (CACHED, 1.0)]

    def carry(self, unit: Disks, position: int) -> bool:
        """Whether the machine lets the need through to disks of a kind."""
        return all(self._carry[key][position] for key in self._keys(unit))

    def lasting(self, unit: Disks, position: int) -> float:
        """Rate that the machine lets through for ever, in IOPS of the need's block size."""
        return min(float(self._lasting[key][position]) for key in self._keys(unit))


def _paired(
    machines: _Machines, kinds: Sequence[_Sets], need: Need, prices: PriceList, fitting: dict[str, None]
) -> list[Priced]:
    """Priced pairs of a machine and a set that lasts longer than all cheaper ones; adds sizes that fit."""
    priced, region = list[Priced](), catalog.region(need.region)
    for position, (size, attachment) in enumerate(machines.rows):
        usd = estimate.sum_of(_machine(size, need), prices)
        if usd is None and size.name in fitting:
            continue
        for sets in kinds:
            few = sets.count <= size.max_data_disks
            if not few.any() or not machines.carry(sets.units[0], position):
                continue
            if candidates.attach_sentences(Candidate(size, attachment, sets.of(int(few.argmax()))), region):
                continue
            fitting[size.name] = None
            for place, lasting, cost in _undominated(
                sets, few, machines.lasting(sets.units[0], position), usd
            ):
                priced.append(Priced(Candidate(size, attachment, sets.of(place)), cost, lasting))
        for local, own_usd in _ephemeral(size, attachment, need, prices):
            fitting[size.name] = None
            priced += [] if own_usd is None else [Priced(local, own_usd, local.lasting_iops(need))]
    return priced


def _lasting(need: Need, iops: np.ndarray, mb_s: np.ndarray, share: float) -> np.ndarray:
    """Lower of two limits, in IOPS of the need's block size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lower: np.ndarray = np.minimum(iops, mb_s * MB / need.peak_block_bytes) / share
    return lower


def _carries(demand: np.ndarray, seconds: np.ndarray, base: np.ndarray, burst: np.ndarray) -> np.ndarray:
    """Whether limits let a demand through, by their base or by a bucket that starts full."""
    peak = float(demand.max())
    fits: np.ndarray = base >= peak
    unsure = np.flatnonzero(~fits & (burst >= peak))
    for value in np.unique(base[unsure]):
        drawn = most_drawn(demand, seconds, float(value))
        same = unsure[base[unsure] == value]
        fits[same] = drawn <= (burst[same] - value) * BURST_S
    return fits


def _wanted(size: VmSize, need: Need, region: catalog.Region, today: date) -> bool:
    """Whether a size is what was asked for, and can be had."""
    asked = size.vcpus >= need.vcpus and size.memory_gib >= need.memory_gib and matches(size.name, need.vm)
    ask = rules.VmAsk(size.name, region.first_zone)
    return asked and not rules.machine_violations(ask, region, today)


def matches(name: str, pattern: str) -> bool:
    """Whether a name of a size or SKU matches a pattern, with or without "Standard_" and in any case."""
    lower, glob = name.lower(), pattern.lower()
    return not pattern or any(
        fnmatch.fnmatchcase(text, glob) for text in (lower, lower.removeprefix("standard_"))
    )


def _kinds(
    need: Need, region: catalog.Region, prices: PriceList, skus: Iterable[str], steps: Sequence[float]
) -> tuple[int, list[_Sets]]:
    """Sets of disks that carry a need, by SKU and cache; and how many were looked at."""
    looked, kinds = 0, []
    for sku in skus:
        offered = catalog.sku_offered(sku, region) and matches(sku, need.disk)
        if not offered or Disks(DiskAsk(sku, 1)).survives < SURVIVES.index(need.survive):
            continue
        made = _flexible(sku, need, steps) if sku in rules.FLEXIBLE_SKUS else _sized(sku, need)
        ranges = [row for row in made if not _broken(row[0], region)]
        for kept in ("None", "ReadOnly") if need.cache_hits and sku in rules.CACHED_SKUS else ("None",):
            most = catalog.HOST_CACHE_UP_TO_GIB if kept != "None" else math.inf
            own = [row for row in ranges if row[0].size_gib <= most]
            looked += sum(len(counts) for _, counts in own)
            sets = _judged(own, kept, need, prices) if own else None
            kinds += [sets] if sets is not None and len(sets.count) else []
    return looked, kinds


@cache
def _broken(disk: DiskAsk, region: catalog.Region) -> bool:
    return bool(rules.disk_violations(candidates.in_zone(disk, region), region))


def _sized(sku: str, need: Need) -> Iterator[tuple[DiskAsk, range]]:
    """All sizes of a SKU with all their options, and the numbers that hold the data."""
    higher = [tier.tier for tier in catalog.tiers_of(sku)] if sku in rules.PREMIUM_SKUS else []
    for tier in catalog.tiers_of(sku):
        counts = range(math.ceil(need.size_gib / tier.up_to_gib), MOST_DISKS + 1)
        for raised, bursting, plus in itertools.product([None, *higher], (False, True), (False, True)):
            if raised != tier.tier:
                yield DiskAsk(sku, tier.up_to_gib, None, raised, 1, bursting, plus), counts


def _flexible(sku: str, need: Need, steps: Sequence[float]) -> Iterator[tuple[DiskAsk, range]]:
    """Premium SSD v2 or Ultra with what the need takes, or multiples, in every number."""
    peaks = need.peak_iops, float(need.mb_s.max())
    for count, times in itertools.product(range(1, MOST_DISKS + 1), steps):
        each = [times * peak / count for peak in peaks]
        bought = catalog.flexible_skus()[sku].least(math.ceil(need.size_gib / count), *each)
        if bought is not None:
            size, iops, mb_s = bought
            yield DiskAsk(sku, size, iops=iops, mb_s=mb_s), range(count, count + 1)


def _judged(own: Sequence[tuple[DiskAsk, range]], kept: str, need: Need, prices: PriceList) -> _Sets:
    """Sets of disks of one SKU and cache that carry the need."""
    disks = [disk for disk, _ in own]
    index = np.repeat(np.arange(len(own)), [len(counts) for _, counts in own])
    count = np.concatenate([np.arange(counts.start, counts.stop) for _, counts in own])
    known = [disk_options.limits(disk) for disk in disks]
    base = np.array([limits.lasting for limits in known], float)[index] * count[:, None]
    burst = np.array([(limits.burst_iops or 0, limits.burst_mb_s or 0) for limits in known], float)
    burst = burst[index] * count[:, None]
    share = need.beyond_cache if kept != "None" else 1.0
    carry = [
        _carries(share * demand, need.seconds, base[:, unit], burst[:, unit])
        for unit, demand in enumerate((need.iops, need.mb_s))
    ]
    fits = carry[0] & carry[1]
    index, count, base = index[fits], count[fits], base[fits]
    lasting = _lasting(need, base[:, 0], base[:, 1], share)
    month = [estimate.month(disk, prices) for disk in disks]
    each = np.array([math.nan if usd is None else usd for usd in month])[index]
    usd = count * each + _usd_of_use(disks, index, count, kept, need, prices)
    return _Sets([Disks(disk, 1, kept) for disk in disks], index, count, usd, lasting)


def _usd_of_use(
    disks: Sequence[DiskAsk], index: np.ndarray, count: np.ndarray, kept: str, need: Need, prices: PriceList
) -> np.ndarray:
    """What the I/Os of each set cost a month."""

    @cache
    def usd(sku: str, size_gib: int, bursting: bool, number: int) -> float:
        stripe = Disks(DiskAsk(sku, size_gib, bursting=bursting), number, kept)
        each = estimate.sum_of(used(stripe, need), prices)
        return math.nan if each is None else number * each

    costs = np.zeros(len(index))
    for place, (position, number) in enumerate(zip(index, count, strict=True)):
        disk = disks[position]
        if disk.bursting or disk.sku not in (*rules.FLEXIBLE_SKUS, *rules.PREMIUM_SKUS):
            costs[place] = usd(disk.sku, disk.size_gib, disk.bursting, int(number))
    return costs


def _ephemeral(
    size: VmSize, attachment: str, need: Need, prices: PriceList
) -> Iterator[tuple[Candidate, float | None]]:
    """The machine's ephemeral OS disk, where the data need to survive nothing."""
    local = Candidate(size, attachment, Disks(DiskAsk(EPHEMERAL, candidates.os_disk_gib(need.size_gib))))
    asked = need.survive == "none" and matches(EPHEMERAL, need.disk)
    if asked and not candidates.attach_sentences(local, catalog.region(need.region)) and local.carries(need):
        yield local, usd_a_month(local, need, prices)[0]
