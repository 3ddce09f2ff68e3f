"""Azure's documented limits of disks, VM sizes and regions, read from `data/reference`.

Each row there names its source and the date it was read, and its note says what is inferred. The emulator
builds its resource SKUs from these tables; the analysis takes limits from the resource SKUs of a run and the
burst limits of VMs, which resource SKUs do not carry, from here.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache

from diskbook.facts import files
from diskbook.facts.errors import unknown
from diskbook.facts.paths import REFERENCE

ON_DEMAND_BURST_ABOVE_GIB = 512
PERFORMANCE_PLUS_FROM_GIB = 513
HOST_CACHE_UP_TO_GIB = 4095
# What scenarios call an ephemeral OS disk; it is not a SKU of managed disks.
EPHEMERAL = "EphemeralOS"
# What stands for a size and a SKU where machine and disk are the user's own: neither has a documented limit.
OWN_HOST, OWN_DISK = "own-host", "own-disk"
# A kind of source: what somebody else took down of Azure's API.
COPY = "third party's copy"
# Disk controllers: how managed disks are presented to a machine, in Azure's words.
SCSI, NVME = "SCSI", "NVMe"


@dataclass(frozen=True)
class DiskTier:
    """A size class of Premium SSD, Standard SSD or Standard HDD: disks of `above_gib` < size <= `up_to_gib`.

    IOPS and MB/s are Azure's nominal figures, None where there is none. `burst_kind` is "credit",
    "on-demand" or "".
    """

    family: str
    tier: str
    skus: tuple[str, ...]
    above_gib: int
    up_to_gib: int
    iops: int
    mb_s: int
    burst_kind: str
    burst_iops: int | None
    burst_mb_s: int | None
    burst_minutes: int | None
    performance_plus_iops: int | None
    performance_plus_mb_s: int | None
    max_shares: int
    source: str
    read_on: str
    note: str

    @property
    def credit_ios(self) -> int:
        """I/Os a full credit bucket holds above the base: (burst - base) x burst time.

        For P1 to P3 this gives the 6,084,000 I/Os of the resource SKUs; for other tiers it is inferred.
        """
        return self._credit(self.burst_iops, self.iops)

    @property
    def credit_mb(self) -> int:
        """MB a full credit bucket holds above the base; P1 to P3: 261,000, listed as 255 GiB."""
        return self._credit(self.burst_mb_s, self.mb_s)

    def _credit(self, burst: int | None, base: int) -> int:
        if self.burst_kind != "credit" or burst is None or self.burst_minutes is None:
            return 0
        return (burst - base) * self.burst_minutes * 60


@dataclass(frozen=True)
class FlexibleSku:
    """Premium SSD v2 or Ultra: IOPS and MB/s are the user's choice within these ranges."""

    sku: str
    min_size_gib: int
    max_size_gib: int
    default_iops: int | None
    default_mb_s: int | None
    min_iops: int
    max_iops: int
    free_iops: int
    iops_per_gib: int
    min_mb_s: int
    max_mb_s: int
    mb_s_per_iops: float
    logical_sector_bytes: int
    max_shares: int
    source: str
    read_on: str
    note: str

    def iops_range(self, size_gib: int) -> tuple[int, int]:
        """Smallest and largest IOPS that a disk of this size may be given."""
        return self.min_iops, min(self.max_iops, max(self.free_iops, self.iops_per_gib * size_gib))

    def mb_s_range(self, iops: int) -> tuple[int, int]:
        """Smallest and largest MB/s that a disk with these IOPS may be given."""
        return self.min_mb_s, int(min(self.max_mb_s, max(self.min_mb_s, self.mb_s_per_iops * iops)))

    def least(self, size_gib: int, iops: float, mb_s: float) -> tuple[int, int, int] | None:
        """Smallest size, IOPS and MB/s that may be asked for and hold these; None where no disk does."""
        chosen_mb_s = max(self.min_mb_s, math.ceil(mb_s))
        chosen = max(self.min_iops, math.ceil(iops))
        if chosen_mb_s > self.mb_s_range(chosen)[1]:
            chosen = max(chosen, math.ceil(chosen_mb_s / self.mb_s_per_iops))
        size = max(self.min_size_gib, size_gib)
        if chosen > self.iops_range(size)[1]:
            size = math.ceil(chosen / self.iops_per_gib)
        fits = chosen <= self.iops_range(size)[1] and chosen_mb_s <= self.mb_s_range(chosen)[1]
        return (size, chosen, chosen_mb_s) if fits and size <= self.max_size_gib else None


@dataclass(frozen=True)
class VmSize:
    """A VM size and its disk limits; MB are 10^6 bytes, None where no limit is known.

    `disk_controllers` and `hyperv_generations` are empty where no page says them, `family` is where no row of
    Azure's own was seen. `source` are keys of `size_sources`, which say what columns are known only from a
    third party's copy of Azure's rows.
    """

    name: str
    family: str
    vcpus: int
    memory_gib: float
    max_data_disks: int
    uncached_iops: int
    uncached_mb_s: float
    uncached_burst_iops: int | None
    uncached_burst_mb_s: float | None
    cached_iops: int | None
    cached_mb_s: float | None
    cache_gib: int | None
    local_gib: int
    max_nics: int
    premium_io: bool
    host_cache: bool
    accelerated_networking: bool
    ephemeral_os: bool
    architecture: str
    disk_controllers: tuple[str, ...]
    hyperv_generations: tuple[str, ...]
    nvme_local: str
    retires_on: str
    substitute: str
    source: tuple[str, ...]
    read_on: str
    note: str

    @property
    def nvme_only(self) -> bool:
        """Whether its managed disks are NVMe namespaces, and nothing else."""
        return self.disk_controllers == (NVME,)

    @property
    def attachments(self) -> tuple[str, ...]:
        """Ways to attach disks; one without a name where no page says it."""
        return self.disk_controllers or ("",)

    @property
    def os_disk_room_gib(self) -> dict[str, int]:
        """Room for an ephemeral OS disk by its placement, the local disks first; empty where there is none.

        Local disks that are NVMe are a placement of their own, and an OS disk may take several of them
        (MicrosoftDocs/azure-compute-docs, articles/virtual-machines/ephemeral-os-disks.md of 2026-09-08).
        """
        if not self.ephemeral_os:
            return {}
        local = "NvmeDisk" if self.nvme_local and SCSI not in self.disk_controllers else "ResourceDisk"
        return {local: self.local_gib, "CacheDisk": self.cache_gib or 0}

    def placement(self, size_gib: int) -> str | None:
        """Where an ephemeral OS disk of a size can lie: on local disks, in the host cache, or nowhere."""
        return next((place for place, room in self.os_disk_room_gib.items() if size_gib <= room), None)

    def retired(self, today: date) -> bool:
        """Whether Azure has stopped the size by that day."""
        return bool(self.retires_on) and date.fromisoformat(self.retires_on) <= today


@dataclass(frozen=True)
class SizeSource:
    """Where columns of the table of sizes were read; a page of a series, without columns, has all the others.

    `kind` is "documentation", or "third party's copy" of what Azure's API says; `licence` is "none" where the
    source states none.
    """

    key: str
    kind: str
    columns: tuple[str, ...]
    source: str
    licence: str


@dataclass(frozen=True)
class Region:
    """A region: its logical zones and the disk SKUs that are not offered everywhere."""

    name: str
    display_name: str
    zones: tuple[str, ...]
    zrs_skus: tuple[str, ...]
    premium_v2: bool
    ultra: bool
    source: str
    read_on: str
    note: str

    @property
    def first_zone(self) -> str | None:
        """First zone; None in a region without zones."""
        return self.zones[0] if self.zones else None


@dataclass(frozen=True)
class DiskLimits:
    """Limits of one disk. Bursting is None where the disk has none; `credit_*` 0 for on-demand bursting."""

    tier: str | None
    iops: int
    mb_s: int
    burst_iops: int | None = None
    burst_mb_s: int | None = None
    credit_ios: int = 0
    credit_mb: int = 0

    @property
    def lasting(self) -> tuple[int, int]:
        """IOPS and MB/s that need no credit: what bursts on demand lasts as long as it is paid for."""
        if self.burst_iops and self.burst_mb_s and not self.credit_ios:
            return self.burst_iops, self.burst_mb_s
        return self.iops, self.mb_s


def _read(record: type[files.Record], name: str) -> Iterator[files.Record]:
    return (row for _, row in files.read_table(record, REFERENCE / name))


@cache
def disk_tiers() -> tuple[DiskTier, ...]:
    """Read all sized tiers: P1 to P80, E1 to E80, S4 to S80."""
    return tuple(_read(DiskTier, "disk-skus.csv"))


@cache
def flexible_skus() -> dict[str, FlexibleSku]:
    """Read Premium SSD v2 and Ultra, by SKU name."""
    return {sku.sku: sku for sku in _read(FlexibleSku, "disk-flexible.csv")}


@cache
def vm_sizes() -> dict[str, VmSize]:
    """Read the VM sizes, by name in lower case."""
    return {size.name.lower(): size for size in _read(VmSize, "vm-sizes.csv")}


@cache
def size_sources() -> dict[str, SizeSource]:
    """Read where the VM sizes were read, by the keys that their rows name."""
    return {row.key: row for row in _read(SizeSource, "vm-size-sources.csv")}


@cache
def regions() -> dict[str, Region]:
    """Read the regions, by name."""
    return {region.name: region for region in _read(Region, "regions.csv")}


@cache
def sku_names() -> tuple[str, ...]:
    """All disk SKUs, e.g. Premium_ZRS."""
    sized = {sku for tier in disk_tiers() for sku in tier.skus}
    return tuple(sorted(sized | set(flexible_skus())))


def sku_offered(sku: str, region: Region) -> bool:
    """Whether disks of this SKU can be made in the region."""
    if sku.endswith("_ZRS"):
        return sku in region.zrs_skus
    if sku == "PremiumV2_LRS":
        return region.premium_v2
    return region.ultra if sku == "UltraSSD_LRS" else True


@cache
def tiers_of(sku: str) -> tuple[DiskTier, ...]:
    """Return the tiers of a sized SKU, smallest first; empty for Premium SSD v2 and Ultra."""
    return tuple(tier for tier in disk_tiers() if sku in tier.skus)


def disk_tier(sku: str, size_gib: int) -> DiskTier:
    """Find the tier of a disk: the smallest that holds its size.

    Raises UsageError if the SKU has no tiers or none is large enough.
    """
    for tier in tiers_of(sku):
        if size_gib <= tier.up_to_gib:
            return tier
    raise unknown(
        f"tier of {size_gib} GiB for disk SKU", sku, {name for t in disk_tiers() for name in t.skus}
    )


def tier_named(name: str) -> DiskTier:
    """Find a tier by name, e.g. P40."""
    for tier in disk_tiers():
        if tier.tier == name:
            return tier
    raise unknown("disk tier", name, (tier.tier for tier in disk_tiers()))


def find_vm_size(name: str) -> VmSize | None:
    """Find a VM size by name, upper or lower case; None for one that the table lacks."""
    return vm_sizes().get(name.lower())


def vm_size(name: str) -> VmSize:
    """Return the VM size of a name; raise UsageError with the nearest for one that the table lacks."""
    if size := find_vm_size(name):
        return size
    raise unknown("VM size", name, (size.name for size in vm_sizes().values()))


def region(name: str) -> Region:
    """Find a region by name, e.g. westeurope."""
    try:
        return regions()[name]
    except KeyError:
        raise unknown("region", name, regions()) from None


def disk_limits(
    sku: str,
    size_gib: int,
    bursting: bool = False,
    performance_plus: bool = False,
    tier: str | None = None,
    iops: int | None = None,
    mb_s: int | None = None,
    max_shares: int = 1,
) -> DiskLimits:
    """Limits of a disk with these settings.

    - `bursting`: on-demand bursting (Premium SSD above 512 GiB).
    - `performance_plus`: the option of that name (513 GiB or more).
    - `tier`: performance tier chosen above the one of its size, e.g. P50; Premium SSD only.
    - `iops`, `mb_s`: what the user set; Premium SSD v2 and Ultra only.
    - `max_shares`: a shared disk does not burst.
    """
    if sku in flexible_skus():
        return _flexible_limits(flexible_skus()[sku], size_gib, iops, mb_s)
    sized = disk_tier(sku, size_gib)
    played = tier_named(tier) if tier else sized
    base = (played.iops, played.mb_s)
    if performance_plus and sized.performance_plus_iops and sized.performance_plus_mb_s:
        base = (max(base[0], sized.performance_plus_iops), max(base[1], sized.performance_plus_mb_s))
    credit = sized.burst_kind == "credit" and not performance_plus and played is sized
    if max_shares > 1 or not (credit or (bursting and sized.burst_kind == "on-demand")):
        return DiskLimits(played.tier, *base)
    return DiskLimits(
        played.tier, *base, sized.burst_iops, sized.burst_mb_s, sized.credit_ios, sized.credit_mb
    )


def _flexible_limits(sku: FlexibleSku, size_gib: int, iops: int | None, mb_s: int | None) -> DiskLimits:
    smallest, largest = sku.iops_range(size_gib)
    # Ultra has no documented default: the emulator takes the smallest allowed.
    chosen = iops or sku.default_iops or min(max(smallest, size_gib), largest)
    least, most = sku.mb_s_range(chosen)
    return DiskLimits(None, chosen, mb_s or sku.default_mb_s or min(max(least, 25), most))
