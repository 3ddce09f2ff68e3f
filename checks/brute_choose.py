"""What carries a need, by one plain loop over every size with every disk and stripe.

It shares the tables, limits and prices with `diskbook.choose`, and no rule: those are written here once more.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from random import Random
from typing import NamedTuple

import numpy as np

from diskbook.choose import search
from diskbook.choose.need import Need
from diskbook.facts import catalog, limits as vm_limits, prices as price_table
from diskbook.facts.prices import UNITS, Meter, Price, PriceList

MONTH_H = 730
LEVELS = {"none": 0, "machine": 1, "zone": 2}
BURST_S = 1800
NO_ULTRA = ("standardDSv2Family", "standardLSFamily", "standardBSFamily")


class Stripe(NamedTuple):
    """Disks of one kind: base and burst of IOPS and MB/s, and what is billed each month."""

    sku: str
    cached: bool
    number: int
    limits: tuple[tuple[float, float], tuple[float, float]]
    parts: tuple[tuple[str, str, float], ...]

    def usd(self, prices: PriceList) -> float | None:
        """USD a month; None where a part has no price."""
        total = 0.0
        for kind, name, number in self.parts:
            each = _usd(prices, kind, name) if number else 0.0
            if each is None:
                return None
            total += number * each
        return self.number * total


Carrying = tuple[Stripe, float, float | None]
"""A stripe that carries the need, its lasting rate, and USD a month."""


class Answer(NamedTuple):
    """Least USD by size, the front as (USD, lasting IOPS, level), and all sizes that carry the need."""

    cheapest: dict[str, float]
    front: list[tuple[float, float, int]]
    fitting: set[str]


def answer(need: Need, sizes: Sequence[catalog.VmSize], prices: PriceList, today: date) -> Answer:
    """Try everything."""
    region = catalog.regions()[need.region]
    stripes = _carrying(need, prices, [*_fixed(need, region), *_all_bought(need, region, (1, 2, 4))])
    first = _answer(need, sizes, prices, today, stripes)
    # What is bought by the I/O is bought once more for each rate of the front.
    rates = {math.ceil(1e4 * lasting / float(max(need.iops)) - 1e-6) / 1e4 for _, lasting, _ in first.front}
    stripes += _carrying(need, prices, _all_bought(need, region, sorted(rates - {1, 2, 4})))
    return _answer(need, sizes, prices, today, stripes)


def _carrying(need: Need, prices: PriceList, stripes: Iterable[Stripe]) -> list[Carrying]:
    """Stripes that carry the need; of those alike but for their price, the cheapest."""
    best: dict[tuple[str, bool, int, float], Carrying] = {}
    for row in stripes:
        share = _share(need, row.cached)
        if _carry(need, share, row.limits):
            lasting, usd = _lasting(need, row.limits, share), row.usd(prices)
            alike = row.sku, row.cached, row.number, lasting
            if alike not in best or _rank(usd) < _rank(best[alike][2]):
                best[alike] = row, lasting, usd
    return list(best.values())


def _rank(usd: float | None) -> float:
    return math.inf if usd is None else usd


def _answer(
    need: Need,
    sizes: Sequence[catalog.VmSize],
    prices: PriceList,
    today: date,
    stripes: Sequence[Carrying],
) -> Answer:
    os_disk = _usd(prices, "disk", "E4 LRS" if need.os == "linux" else "E10 LRS")
    pairs: dict[tuple[float, int], float] = {}
    cheapest: dict[str, float] = {}
    fitting: set[str] = set()
    for size in sizes:
        if size.vcpus < need.vcpus or size.memory_gib < need.memory_gib or size.retired(today):
            continue
        vm_hour = prices.of(f"vm-{need.os}", size.name)
        for each, lasting, level in _on_size(need, size, stripes):
            fitting.add(size.name)
            own = 0.0 if level == 0 else os_disk
            if vm_hour is None:
                break
            if each is not None and own is not None:
                usd = vm_hour.usd * MONTH_H + own + each
                pairs[lasting, level] = min(usd, pairs.get((lasting, level), math.inf))
                cheapest[size.name] = min(usd, cheapest.get(size.name, math.inf))
    return Answer(cheapest, _front([(usd, *rate) for rate, usd in pairs.items()]), fitting)


def _on_size(
    need: Need, size: catalog.VmSize, stripes: Sequence[Carrying]
) -> Iterator[tuple[float | None, float, int]]:
    """USD of the disks, lasting rate and level of each set of disks with which a size carries the need."""
    for attachment in size.disk_controllers or ("",):
        rows = {row.disk_kind: row for row in vm_limits.limits_of(size) if row.attachment == attachment}
        kinds = [(cached, flexible) for cached in (False, True) for flexible in (False, True)]
        machine = {kind: _machine(need, rows, *kind) for kind in kinds}
        for row, own, each in stripes:
            carries, lasting = machine[row.cached, row.sku in ("PremiumV2_LRS", "UltraSSD_LRS")]
            if not carries or row.number > size.max_data_disks or (row.cached and not size.host_cache):
                continue
            if row.sku == "UltraSSD_LRS" and size.family in NO_ULTRA:
                continue
            yield each, min(lasting, own), 2 if row.sku.endswith("ZRS") else 1
        local, lasting = _local(need, size, rows)
        if local:
            yield 0.0, lasting, 0


def _front(pairs: list[tuple[float, float, int]]) -> list[tuple[float, float, int]]:
    best, front = [0.0, 0.0, 0.0], []
    for usd, lasting, level in sorted(pairs, key=lambda pair: (round(pair[0], 4), -pair[1], -pair[2])):
        if lasting > best[level] * (1 + 1e-9):
            front.append((usd, lasting, level))
            for lower in range(level + 1):
                best[lower] = max(best[lower], lasting)
    return front


def _share(need: Need, cached: bool) -> float:
    return 1 - need.cache_hits * need.read_share if cached else 1.0


def _machine(
    need: Need, rows: dict[str, vm_limits.Limit], cached: bool, flexible: bool
) -> tuple[bool, float]:
    row = rows["premium_ssd_v2_or_ultra"] if flexible else rows["premium_ssd"]
    row = rows["premium_ssd"] if row.iops is None else row
    own = _pair(row.iops, row.burst_iops), _pair(row.mb_s, row.burst_mb_s)
    share = _share(need, cached)
    if not cached:
        return _carry(need, 1.0, own), _lasting(need, own, 1.0)
    cache = rows.get("premium_ssd_host_cache")
    if cache is None or cache.iops is None:
        return False, 0.0
    second = _pair(cache.iops, None), _pair(cache.mb_s, None)
    carries = _carry(need, share, own) and _carry(need, 1.0, second)
    return carries, min(_lasting(need, own, share), _lasting(need, second, 1.0))


def _pair(base: float | None, burst: float | None) -> tuple[float, float]:
    return base or 0.0, burst or base or 0.0


def _local(need: Need, size: catalog.VmSize, rows: dict[str, vm_limits.Limit]) -> tuple[bool, float]:
    cache = rows.get("premium_ssd_host_cache")
    room = max(size.local_gib, size.cache_gib or 0) if size.ephemeral_os else 0
    needed = max(30, need.size_gib + 16)  # the image, and the system beside the data
    if need.survive != "none" or need.disk or cache is None or cache.iops is None or needed > room:
        return False, 0.0
    own = _pair(cache.iops, None), _pair(cache.mb_s, None)
    return _carry(need, 1.0, own), _lasting(need, own, 1.0)


@lru_cache(maxsize=4096)
def _carry(need: Need, share: float, limits: tuple[tuple[float, float], ...]) -> bool:
    seconds_each = need.seconds.tolist()
    for (base, burst), demand in zip(limits, (need.iops.tolist(), need.mb_s.tolist()), strict=True):
        peak = share * max(demand)
        if peak <= base:
            continue
        if peak > burst:
            return False
        left = full = (burst - base) * BURST_S
        before = -1.0
        while left != before:  # round after round, until a round leaves the credit as it was
            before = left
            for rate, seconds in zip(demand, seconds_each, strict=True):
                if len(demand) == 1:  # a constant rate above the base drains any credit
                    return False
                left = min(full, left - (share * rate - base) * seconds)
                if left < -1e-9 * max(1.0, full):
                    return False
    return True


def _lasting(need: Need, limits: Sequence[tuple[float, float]], share: float) -> float:
    return min(limits[0][0], limits[1][0] / max(need.mb_s) * max(need.iops)) / share if share else math.inf


def _fixed(need: Need, region: catalog.Region) -> Iterator[Stripe]:
    for tier in catalog.disk_tiers():
        for sku in tier.skus:
            if LEVELS[need.survive] > (2 if sku.endswith("ZRS") else 1) or (need.disk and need.disk != sku):
                continue
            if sku.endswith("ZRS") and sku not in region.zrs_skus:
                continue
            for count in range(1, 65):
                if count * tier.up_to_gib >= need.size_gib:
                    yield from _of_tier(need, tier, sku, count)


def _all_bought(need: Need, region: catalog.Region, bought: Sequence[float]) -> Iterator[Stripe]:
    for flexible in catalog.flexible_skus().values():
        offered = region.ultra if flexible.sku == "UltraSSD_LRS" else region.premium_v2
        if offered and need.survive != "zone" and need.disk in ("", flexible.sku):
            yield from _bought(need, flexible, bought)


@lru_cache
def _raised(tier: catalog.DiskTier) -> list[catalog.DiskTier]:
    """The tier, and those that a Premium disk of its size can be raised to."""
    premium = [other for other in catalog.disk_tiers() if other.family == "Premium"]
    if tier not in premium:
        return [tier]
    names = [other.tier for other in premium]
    own, most = names.index(tier.tier), names.index("P50") + 1
    return premium[own:most] if own < most else premium[own:]


def _of_tier(need: Need, tier: catalog.DiskTier, sku: str, count: int) -> Iterator[Stripe]:
    premium, large = tier.family == "Premium", tier.up_to_gib > 512
    for played in _raised(tier):
        for bursting in (False, True) if premium and large else (False,):
            for plus in (False, True) if large else (False,):
                iops, mb_s = played.iops, played.mb_s
                if plus and tier.performance_plus_iops and tier.performance_plus_mb_s:
                    iops, mb_s = max(iops, tier.performance_plus_iops), max(mb_s, tier.performance_plus_mb_s)
                top_iops, top_mb_s = iops, mb_s
                if tier.burst_kind == "credit" and not plus and played is tier:
                    top_iops, top_mb_s = tier.burst_iops or 0, tier.burst_mb_s or 0
                if bursting:
                    iops, mb_s = top_iops, top_mb_s = tier.burst_iops or 0, tier.burst_mb_s or 0
                limits = (count * iops, count * top_iops), (count * mb_s, count * top_mb_s)
                for cached in (False, True):
                    if cached and (tier.family == "Standard" or tier.up_to_gib > 4095):
                        continue
                    parts = _billed(need, tier, played.tier, sku, count, bursting, cached)
                    yield Stripe(sku, cached, count, limits, parts)


def _billed(
    need: Need, tier: catalog.DiskTier, played: str, sku: str, count: int, bursting: bool, cached: bool
) -> tuple[tuple[str, str, float], ...]:
    redundancy = sku[-3:]
    disk = ("disk", f"{played} {redundancy}", 1.0)
    if tier.family == "Premium" and not bursting:
        return (disk,)
    pieces = math.ceil(need.block_bytes / (16_384 if tier.family == "Standard" else 262_144))
    share = _share(need, cached) * (min(16, pieces) if played in ("S70", "S80") else pieces) / count
    use = _above(need, share, tier.iops if bursting else 0) * MONTH_H * 3600 / 1e4
    per_hour = {"S4": 450_000, "S6": 858_000, "S70": 93_000_000, "S80": 110_000_000}.get(tier.tier, math.inf)
    use = min(use, MONTH_H * per_hour / 1e4)
    if bursting:
        return disk, ("burst-enablement", redundancy, 1.0), ("burst-transactions", redundancy, use)
    return disk, ("operations", f"{tier.tier} LRS", use)


@lru_cache(maxsize=4096)
def _above(need: Need, share: float, base: float) -> float:
    """Mean rate beyond a base."""
    parts = zip(need.iops.tolist(), need.seconds.tolist(), strict=True)
    above: float = sum(max(0.0, share * rate - base) * seconds for rate, seconds in parts)
    return above / float(sum(need.seconds))


def _bought(need: Need, flexible: catalog.FlexibleSku, steps: Sequence[float]) -> Iterator[Stripe]:
    kind, free_mb_s = ("ultra", 0) if flexible.sku == "UltraSSD_LRS" else ("v2", 125)
    free_iops = 0 if kind == "ultra" else 3000
    for count in range(1, 65):
        for times in steps:
            iops = max(flexible.min_iops, math.ceil(times * float(max(need.iops)) / count))
            mb_s = max(flexible.min_mb_s, math.ceil(times * float(max(need.mb_s)) / count))
            size = max(flexible.min_size_gib, math.ceil(need.size_gib / count))
            iops = max(iops, iops if mb_s <= flexible.min_mb_s else math.ceil(mb_s / flexible.mb_s_per_iops))
            if iops > max(flexible.free_iops, flexible.iops_per_gib * size):
                size = math.ceil(iops / flexible.iops_per_gib)
            if iops > flexible.max_iops or mb_s > flexible.max_mb_s or size > flexible.max_size_gib:
                continue
            bought = {"capacity": size, "iops": max(0, iops - free_iops), "mb-s": max(0, mb_s - free_mb_s)}
            parts = tuple((f"{kind}-{part}", flexible.sku, float(number)) for part, number in bought.items())
            limits = (count * iops, count * iops), (count * mb_s, count * mb_s)
            yield Stripe(flexible.sku, False, count, limits, parts)


def _usd(prices: PriceList, kind: str, name: str) -> float | None:
    price = prices.of(kind, name)
    if price is None:
        return None
    hourly = UNITS[kind].endswith("Hour")
    return price.usd * (MONTH_H if hourly else 1)


def random_need(random: Random) -> Need:
    """Draw a need; one in ten or so cannot be met."""
    intervals = random.choice([1, 1, 8])
    rate, block = 10 ** random.uniform(1.5, 5.8), random.choice([4096, 8192, 65536, 262144, 1048576])
    shape = np.array([random.uniform(0.05, 1.0) for _ in range(intervals)])
    reads = random.choice([0.0, 0.5, 1.0])
    return Need(
        rate * shape, rate * shape * block / 1e6, np.array([random.choice([60.0, 600.0])] * intervals),
        int(10 ** random.uniform(0.5, 4.6)), reads, random.choice(["none", "machine", "zone"]),
        random.choice(["westeurope", "norwayeast", "westus", "eastus"]), random.choice(["linux", "windows"]),
        "", random.choice([*catalog.sku_names() * 2, ""]), random.choice([1, 4, 16]),
        0.0, random.choice([0.0, 0.5]) if reads else 0.0,
    )  # fmt: skip


def random_prices(
    random: Random, region: str, sizes: Sequence[catalog.VmSize], known: dict[Meter, Price]
) -> PriceList:
    """Prices of the table, with a drawn one for a quarter of the sizes."""
    drawn = [size for size in sizes if random.random() < 1 / 4]
    made = {
        Meter(kind, size.name): Price(Meter(kind, size.name), random.uniform(0.02, 5), "inferred", None)
        for size in drawn
        for kind in ("vm-linux", "vm-windows")
    }
    return PriceList(region, "drawn", {**known, **made})


def disagreements(seed: int) -> list[str]:
    """Compare `diskbook.choose` with the loop for a drawn need over 40 drawn sizes; say where they differ."""
    random = Random(seed)
    need, sizes = random_need(random), random.sample(list(catalog.vm_sizes().values()), 40)
    known = random_prices(random, need.region, sizes, price_table.table().get(need.region, {}))
    today = date(2026, 11, 27)
    slow, choice = answer(need, sizes, known, today), search.find(need, known, today, sizes)
    wrong = []
    fast = {row.candidate.size.name: row.usd for row in choice.cheapest}
    if fast.keys() != slow.cheapest.keys() or any(
        abs(fast[name] - slow.cheapest[name]) > 1e-3 for name in fast
    ):
        wrong.append(f"cheapest: {fast} not {slow.cheapest}")
    if fast.keys() | set(choice.unpriced) != slow.fitting:
        wrong.append(f"fitting: {sorted(slow.fitting ^ (fast.keys() | set(choice.unpriced)))}")
    front = [(row.usd, row.lasting_iops, row.candidate.disks.survives) for row in choice.front]
    same = len(front) == len(slow.front) and all(
        math.isclose(a, b, rel_tol=1e-6)
        for own, other in zip(front, slow.front, strict=True)
        for a, b in zip(own, other, strict=True)
    )
    return wrong if same else [*wrong, f"front: {front} not {slow.front}"]
