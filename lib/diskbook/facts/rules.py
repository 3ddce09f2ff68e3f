"""Azure's rules for disks and machines, checked before anything is created.

The functions are pure and know the documented tables of `catalog` only. A scenario is compared with them
before a run (`scenario.azure_rules`); the emulated control plane holds every request against the same ones,
so the two cannot disagree.
"""

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from diskbook.facts import catalog

ZRS_SKUS = ("Premium_ZRS", "StandardSSD_ZRS")
ULTRA = "UltraSSD_LRS"
FLEXIBLE_SKUS = ("PremiumV2_LRS", ULTRA)
PREMIUM_SKUS = ("Premium_LRS", "Premium_ZRS")
CACHED_SKUS = (*PREMIUM_SKUS, "StandardSSD_LRS", "StandardSSD_ZRS")
# Azure lists UltraSSDAvailable by size, region and zone (resource SKUs). That these families have it nowhere
# is inferred: lists of series that take Ultra disks do not name them.
NO_ULTRA_FAMILIES = ("standardDSv2Family", "standardLSFamily", "standardBSFamily")
UNKNOWN_SIZE = "vm-size"
"""Rule of sizes that no table has: Azure itself may know them."""


@dataclass(frozen=True)
class Violation:
    """A broken rule: its name, the offending field and one sentence with the way out."""

    rule: str
    field: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.field}: {self.sentence}"


@dataclass(frozen=True)
class DiskAsk:
    """A disk as asked for. `zone` None means regional (or ZRS); `tier` a performance tier of Premium SSD.

    The other fields are the options of `reference.disk_options`.
    """

    sku: str
    size_gib: int
    zone: str | None = None
    tier: str | None = None
    max_shares: int = 1
    bursting: bool = False
    performance_plus: bool = False
    accelerated_network: bool = False
    frequent_attach: bool = False
    iops: int | None = None
    mb_s: int | None = None


@dataclass(frozen=True)
class VmAsk:
    """A machine as asked for."""

    size: str
    zone: str | None = None


def disk_violations(disk: DiskAsk, region: catalog.Region) -> list[Violation]:
    """Rules a disk by itself breaks in a region, the most basic first."""
    if disk.sku not in catalog.sku_names():
        known = ", ".join(catalog.sku_names())
        return [Violation("sku", "sku", f"there is no disk SKU '{disk.sku}'; take one of {known}")]
    return [violation for rule in _DISK_RULES for violation in rule(disk, region)]


def machine_violations(vm: VmAsk, region: catalog.Region, today: date) -> list[Violation]:
    """Rules a machine by itself breaks in a region on a day (sizes retire)."""
    size = catalog.find_vm_size(vm.size)
    if size is None:
        return [_size_unknown(vm.size), *_zone_exists(vm.zone, region)]
    violations = list(_zone_exists(vm.zone, region))
    if size.retired(today):
        violations.append(
            Violation(
                "vm-size-retired",
                "size",
                f"{size.name} was retired on {size.retires_on}; take {_substitute(size)}",
            )
        )
    return violations


def takes_ultra(size: catalog.VmSize) -> bool:
    """Whether Ultra disks attach to machines of a size, as far as is documented."""
    return size.premium_io and size.family not in NO_ULTRA_FAMILIES


def ultra_violations(vm: VmAsk, region: catalog.Region) -> Iterator[Violation]:
    """Rules that a machine breaks which is to take Ultra disks (`additionalCapabilities.ultraSSDEnabled`)."""
    size = catalog.find_vm_size(vm.size)
    if not region.ultra:
        yield Violation("ultra-region", "size", f"{region.name} has no Ultra disks; take another region")
    elif vm.zone is None and region.zones:
        yield Violation(
            "ultra-zone",
            "zone",
            f"in {region.name} only a machine in a zone takes Ultra disks; set zone to one of "
            f"{', '.join(region.zones)}",
        )
    if size is not None and not takes_ultra(size):
        yield Violation("ultra-size", "size", f"{size.name} takes no Ultra disks; take a size that does")


def _size_unknown(name: str) -> Violation:
    """A size without a row: it may be a slip of the pen, or one that only Azure knows."""
    known = [item.name for item in catalog.vm_sizes().values()]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    sentence = (
        f"there is no VM size '{name}' in the table; {hint}where Azure offers it, sign in and use "
        "--cloud azure, which takes its limits from Azure"
    )
    return Violation(UNKNOWN_SIZE, "size", sentence)


def _substitute(size: catalog.VmSize) -> str:
    return f"its substitute {size.substitute}" if size.substitute else "a newer size"


def attach_violations(disk: DiskAsk, vm: VmAsk, cache: str = "None") -> list[Violation]:
    """Rules that attaching this disk to this machine would break. `cache`: None | ReadOnly | ReadWrite."""
    return [*attach_zone_violations(disk, vm), *_attach_size(disk, vm), *_attach_cache(disk, vm, cache)]


def _zone_exists(zone: str | None, region: catalog.Region) -> Iterator[Violation]:
    if zone is not None and zone not in region.zones:
        zones = ", ".join(region.zones) or "none"
        yield Violation(
            "zone",
            "zone",
            f"{region.name} has no zone '{zone}' (it has {zones}); take another zone or region",
        )


def _disk_region(disk: DiskAsk, region: catalog.Region) -> Iterator[Violation]:
    if not catalog.sku_offered(disk.sku, region):
        yield Violation(
            "sku-region",
            "sku",
            f"{disk.sku} is not offered in {region.name}; take another region or another SKU",
        )


def _disk_zone(disk: DiskAsk, region: catalog.Region) -> Iterator[Violation]:
    if disk.sku in ZRS_SKUS and disk.zone is not None:
        yield Violation(
            "zrs-zone",
            "zone",
            f"a {disk.sku} disk spans the zones and is created without one; leave zone out",
        )
        return
    yield from _zone_exists(disk.zone, region)
    if disk.sku in FLEXIBLE_SKUS and disk.zone is None and region.zones:
        yield Violation(
            "zone-required", "zone", f"a {disk.sku} disk needs a zone; set zone to one of 1, 2, 3"
        )


def _disk_size(disk: DiskAsk, region: catalog.Region) -> Iterator[Violation]:
    flexible = catalog.flexible_skus().get(disk.sku)
    smallest = flexible.min_size_gib if flexible else 1
    largest = flexible.max_size_gib if flexible else catalog.tiers_of(disk.sku)[-1].up_to_gib
    if not smallest <= disk.size_gib <= largest:
        yield Violation(
            "size", "size_gib", f"a {disk.sku} disk has {smallest} to {largest} GiB, not {disk.size_gib}"
        )


def _disk_shares(disk: DiskAsk, region: catalog.Region) -> Iterator[Violation]:
    flexible = catalog.flexible_skus().get(disk.sku)
    most = flexible.max_shares if flexible else _tier(disk).max_shares
    if not 1 <= disk.max_shares <= most:
        yield Violation(
            "max-shares",
            "max_shares",
            f"a {disk.sku} disk of {disk.size_gib} GiB may be shared by 1 to {most} machines, "
            f"not {disk.max_shares}; lower max_shares or take a larger disk",
        )


def _disk_bursting(disk: DiskAsk, region: catalog.Region) -> Iterator[Violation]:
    if not disk.bursting:
        return
    if disk.sku not in PREMIUM_SKUS or disk.size_gib <= catalog.ON_DEMAND_BURST_ABOVE_GIB:
        yield Violation(
            "bursting",
            "bursting",
            f"on-demand bursting is for Premium SSD above {catalog.ON_DEMAND_BURST_ABOVE_GIB} GiB, not for "
            f"{disk.sku} of {disk.size_gib} GiB; switch it off or take a larger Premium SSD",
        )
    elif disk.max_shares > 1:
        yield Violation(
            "shared-bursting",
            "bursting",
            "a shared Premium SSD does not burst; switch bursting off or set max_shares to 1",
        )


def _disk_performance_plus(disk: DiskAsk, region: catalog.Region) -> Iterator[Violation]:
    if disk.performance_plus and (
        disk.sku in FLEXIBLE_SKUS or disk.size_gib < catalog.PERFORMANCE_PLUS_FROM_GIB
    ):
        yield Violation(
            "performance-plus",
            "performance_plus",
            "performance plus is for Premium SSD, Standard SSD and Standard HDD of "
            f"{catalog.PERFORMANCE_PLUS_FROM_GIB} GiB or more, not for {disk.sku} of {disk.size_gib} GiB; "
            "switch it off or take a larger disk",
        )


def _disk_tier(disk: DiskAsk, region: catalog.Region) -> Iterator[Violation]:
    if disk.tier is None:
        return
    names = [tier.tier for tier in catalog.tiers_of("Premium_LRS")]
    if disk.sku not in PREMIUM_SKUS or disk.tier not in names:
        yield Violation(
            "tier", "tier", f"'{disk.tier}' is not a performance tier of a {disk.sku} disk; leave it out"
        )
        return
    lowest = names.index(_tier(disk).tier)
    # Tiers up to P50 may be raised to P50, P60 and up only among themselves.
    highest = names.index("P50" if lowest <= names.index("P50") else "P80")
    if not lowest <= names.index(disk.tier) <= highest:
        yield Violation(
            "tier",
            "tier",
            f"a disk of {disk.size_gib} GiB may have the tiers {names[lowest]} to {names[highest]}, "
            f"not {disk.tier}; choose one of these",
        )


def _disk_performance(disk: DiskAsk, region: catalog.Region) -> Iterator[Violation]:
    flexible = catalog.flexible_skus().get(disk.sku)
    if flexible is None:
        for field in ("iops", "mb_s"):
            if getattr(disk, field) is not None:
                yield Violation(
                    "performance-fixed",
                    field,
                    f"{field} of a {disk.sku} disk follows from its size; leave it out or take PremiumV2_LRS",
                )
        return
    low, high = flexible.iops_range(disk.size_gib)
    if disk.iops is not None and not low <= disk.iops <= high:
        yield Violation(
            "iops-range",
            "iops",
            f"a {disk.sku} disk of {disk.size_gib} GiB takes {low} to {high} IOPS, not {disk.iops}",
        )
    low, high = flexible.mb_s_range(disk.iops or flexible.default_iops or high)
    if disk.mb_s is not None and not low <= disk.mb_s <= high:
        yield Violation(
            "mb-s-range",
            "mb_s",
            f"a {disk.sku} disk with these IOPS takes {low} to {high} MB/s, not {disk.mb_s}; "
            "more IOPS allow more MB/s",
        )


def _tier(disk: DiskAsk) -> catalog.DiskTier:
    tiers = catalog.tiers_of(disk.sku)
    return next((tier for tier in tiers if disk.size_gib <= tier.up_to_gib), tiers[-1])


def attach_zone_violations(disk: DiskAsk, vm: VmAsk) -> Iterator[Violation]:
    if disk.sku in ZRS_SKUS:
        return
    if disk.zone is not None and disk.zone != vm.zone:
        yield Violation(
            "attach-zone",
            "machine",
            f"a zonal {disk.sku} disk in zone {disk.zone} attaches only to a machine in that zone, not in "
            f"{vm.zone or 'none'}; use a machine in zone {disk.zone} or a ZRS disk",
        )
    elif disk.zone is None and vm.zone is not None:
        yield Violation(
            "attach-zone",
            "disk",
            f"a {disk.sku} disk without zone does not attach to a machine in zone {vm.zone}; "
            f"set the disk's zone to {vm.zone} or take a ZRS disk",
        )


def _attach_size(disk: DiskAsk, vm: VmAsk) -> Iterator[Violation]:
    size = catalog.find_vm_size(vm.size)
    if size and not size.premium_io and disk.sku.startswith(("Premium", "Ultra")):
        yield Violation("premium-io", "machine", f"{size.name} takes no premium disks; take a size that does")


def _attach_cache(disk: DiskAsk, vm: VmAsk, cache: str) -> Iterator[Violation]:
    if cache == "None":
        return
    size = catalog.find_vm_size(vm.size)
    if disk.max_shares > 1:
        yield Violation("cache-shared", "cache", "a shared disk has no host cache; set cache to None")
    elif disk.sku not in CACHED_SKUS:
        yield Violation("cache-sku", "cache", f"a {disk.sku} disk has no host cache; set cache to None")
    elif disk.size_gib > catalog.HOST_CACHE_UP_TO_GIB:
        yield Violation(
            "cache-size",
            "cache",
            f"host caching is for disks up to {catalog.HOST_CACHE_UP_TO_GIB} GiB, not {disk.size_gib}; "
            "set cache to None or take a smaller disk",
        )
    elif size and not size.host_cache:
        yield Violation(
            "cache-vm", "cache", f"{size.name} has no host cache; set cache to None or take another size"
        )


_DISK_RULES: tuple[Callable[[DiskAsk, catalog.Region], Iterator[Violation]], ...] = (
    _disk_region,
    _disk_zone,
    _disk_size,
    _disk_shares,
    _disk_bursting,
    _disk_performance_plus,
    _disk_tier,
    _disk_performance,
)
