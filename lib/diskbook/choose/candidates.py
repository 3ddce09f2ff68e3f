"""A machine with its disks as a candidate: its name, its limits, and what a need makes of them."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from diskbook.choose.need import SURVIVES, Need
from diskbook.design.azure_rules import IMAGE_GIB, SYSTEM_GIB
from diskbook.facts import catalog, disk_options, limits as vm_limits, rules
from diskbook.facts.catalog import EPHEMERAL, VmSize
from diskbook.facts.errors import UsageError, unknown
from diskbook.facts.limits import CACHED, FLEXIBLE, PREMIUM
from diskbook.facts.rules import DiskAsk
from diskbook.facts.units import MB
from diskbook.stats.credit import Bucket, most_drawn
from diskbook.stats.limits import BY_COLUMN, Limit

_SHORT = {"PremiumV2_LRS": "v2", "UltraSSD_LRS": "ultra", EPHEMERAL: "ephemeral"}
_INSTEAD = " (Premium SSD's, since that of such disks is unknown)"
_FORMS = (
    "Write for example E4bds_v5+2xP30, D4s_v5+P30-ZRS:burst:plus:cache, D4s_v5+P20:tier=P40 or "
    "E4bds_v5/NVMe+v2:1024GiB:8000IOPS:300MBps"
)


@dataclass(frozen=True)
class Disks:
    """Disks of one kind, striped where there are several; `cache` is "None" or "ReadOnly"."""

    disk: DiskAsk
    count: int = 1
    cache: str = "None"

    @property
    def survives(self) -> int:
        """Position in `need.SURVIVES` of what the data survive."""
        return 0 if self.disk.sku == EPHEMERAL else 2 if self.disk.sku in rules.ZRS_SKUS else 1

    @property
    def label(self) -> str:
        """Name as `parsed` reads it."""
        disk, many = self.disk, f"{self.count}x" if self.count > 1 else ""
        if disk.sku == EPHEMERAL:
            return f"ephemeral:{disk.size_gib}GiB"
        if disk.sku in _SHORT:
            bought = f":{disk.iops}IOPS:{disk.mb_s}MBps" if disk.iops else ""
            return f"{many}{_SHORT[disk.sku]}:{disk.size_gib}GiB{bought}"
        options = [
            f"tier={disk.tier}" if disk.tier else "",
            "burst" * disk.bursting,
            "plus" * disk.performance_plus,
        ]
        options.append("cache" if self.cache != "None" else "")
        tier = catalog.disk_tier(disk.sku, disk.size_gib).tier + ("-ZRS" if disk.sku.endswith("ZRS") else "")
        return many + ":".join([tier, *filter(None, options)])


@dataclass(frozen=True)
class Held:
    """A limit of a candidate under a need, for all disks together; `burst` is `base` where there is none.

    `shown` is the base in words, `lasting_iops` the base in IOPS of the need's blocks, `headroom` the base
    over the highest rate minus 1, `drawn_share` the most of its credit that the need draws.
    """

    limit: Limit
    base: float
    burst: float
    shown: str
    lasting_iops: float
    headroom: float
    drawn_share: float
    carries: bool

    def burst_s(self, rate: float) -> float:
        """Seconds from full credit at this rate, in the limit's unit; infinite where the base carries it."""
        if rate <= self.base:
            return math.inf
        return Bucket(self.base, self.burst).capacity / (rate - self.base) if rate <= self.burst else 0.0


@dataclass(frozen=True)
class Candidate:
    """A machine with its disks. `attachment` is SCSI or NVMe, or "" where no page says it."""

    size: VmSize
    attachment: str
    disks: Disks

    @property
    def label(self) -> str:
        """Name as `parsed` reads it, for `--why` and `--current`."""
        both = f"/{self.attachment}" if len(self.size.disk_controllers) > 1 else ""
        return f"{self.size.name.removeprefix('Standard_')}{both}+{self.disks.label}"

    def held(self, need: Need) -> list[Held]:
        """All limits that its I/O meets, the tightest first."""
        rows = [self._held(need, *row) for row in self._rows(need)]
        return sorted(rows, key=lambda row: row.lasting_iops)

    def carries(self, need: Need) -> bool:
        """Whether every limit lets the need through."""
        return all(row.carries for row in self.held(need))

    def lasting_iops(self, need: Need) -> float:
        """Rate that needs no credit, in IOPS of the need's block size."""
        return min(row.lasting_iops for row in self.held(need))

    def _rows(self, need: Need) -> Iterator[tuple[str, float, float | None, float, str]]:
        """Column, base and burst of all disks, share of the I/Os that meet it, and parts of the base."""
        cached = self.disks.cache != "None"
        share = need.beyond_cache if cached else 1.0
        number, disk = self.disks.count, self.disks.disk
        if disk.sku != EPHEMERAL:
            own = disk_options.limits(disk)
            for unit, base, burst in zip(
                ("iops", "mb_s"), own.lasting, (own.burst_iops, own.burst_mb_s), strict=True
            ):
                made = f" ({number} x {base:,})" if number > 1 else ""
                yield f"cap_disk_{unit}", number * base, burst and number * burst, share, made
            flexible = disk.sku in rules.FLEXIBLE_SKUS
            vm = vm_limits.by_kind(self.size.name, self.attachment)[FLEXIBLE if flexible else PREMIUM]
            made = _INSTEAD if flexible and vm.disk_kind == PREMIUM else ""
            yield "cap_vm_iops", vm.iops or 0, vm.burst_iops, share, made
            yield "cap_vm_mb_s", vm.mb_s or 0, vm.burst_mb_s, share, made
        if cached or disk.sku == EPHEMERAL:
            vm = vm_limits.by_kind(self.size.name, self.attachment)[CACHED]
            yield "cap_vm_cached_iops", vm.iops or 0, vm.burst_iops, 1.0, ""
            yield "cap_vm_cached_mb_s", vm.mb_s or 0, vm.burst_mb_s, 1.0, ""

    def _held(
        self, need: Need, column: str, base: float, burst: float | None, share: float, made: str
    ) -> Held:
        limit = BY_COLUMN[column]
        demand = share * (need.iops if limit.counts == "iops" else need.mb_s)
        top, peak = max(base, burst or base), float(demand.max())
        drawn = 0.0
        if peak > base:
            full = (top - base) and Bucket(base, top).capacity
            lacks = most_drawn(demand, need.seconds, base)
            drawn = lacks / full if full else math.inf
        each = 1.0 if limit.counts == "iops" else MB / need.peak_block_bytes
        lasting, free = (base * each / share, base / peak - 1) if peak else (math.inf, math.inf)
        carries = peak <= top and drawn <= 1
        return Held(
            limit, base / share if share else math.inf, top / share if share else math.inf,
            f"{limit.words(base)}{made}", lasting, free, drawn, carries,
        )  # fmt: skip


def unmet(candidate: Candidate, need: Need) -> Iterator[str]:
    """Why a candidate does not hold the data, or loses what must survive, a sentence each."""
    disks = candidate.disks
    needed = os_disk_gib(need.size_gib) if disks.disk.sku == EPHEMERAL else need.size_gib
    if disks.count * disks.disk.size_gib < needed:
        system = " with the system" * (disks.disk.sku == EPHEMERAL)
        yield f"it has {disks.count * disks.disk.size_gib:,} GiB, and the data need {needed:,} GiB{system}"
    if disks.survives < SURVIVES.index(need.survive):
        yield f"its data survive: {SURVIVES[disks.survives]}, not {need.survive}"


def os_disk_gib(data_gib: int) -> int:
    """Size of an OS disk that holds the system and data."""
    return max(IMAGE_GIB, data_gib + SYSTEM_GIB)


def in_zone(disk: DiskAsk, region: catalog.Region) -> DiskAsk:
    """The disk in its machine's zone, where it does not span the zones."""
    return replace(disk, zone=None if disk.sku in rules.ZRS_SKUS else region.first_zone)


def attach_sentences(candidate: Candidate, region: catalog.Region) -> list[str]:
    """Why the disks do not go to the machine, a sentence each."""
    disks, size = candidate.disks, candidate.size
    if disks.disk.sku == EPHEMERAL:
        sentence = f"{size.name} has no room for an ephemeral OS disk of {disks.disk.size_gib} GiB"
        return [sentence] if size.placement(disks.disk.size_gib) is None else []
    vm = rules.VmAsk(size.name, region.first_zone)
    broken = rules.attach_violations(in_zone(disks.disk, region), vm, disks.cache)
    broken += rules.ultra_violations(vm, region) if disks.disk.sku == rules.ULTRA else []
    sentences = [violation.sentence for violation in broken]
    if disks.count > size.max_data_disks:
        sentences.append(f"{size.name} takes {size.max_data_disks} data disks, not {disks.count}")
    return sentences


def sentences(candidate: Candidate, region: catalog.Region) -> list[str]:
    """Rules of Azure that a candidate breaks, a sentence each."""
    disk = candidate.disks.disk
    if disk.sku == EPHEMERAL:
        return attach_sentences(candidate, region)
    own = rules.disk_violations(in_zone(disk, region), region)
    return [*(violation.sentence for violation in own), *attach_sentences(candidate, region)]


def parsed(text: str) -> Candidate:
    """Read a candidate such as E4bds_v5+2xP30; the inverse of `Candidate.label`.

    Raises UsageError with the form, or the nearest name.
    """
    machine, plus, disks = text.strip().partition("+")
    name, _, attachment = machine.partition("/")
    if not plus or not disks:
        raise UsageError(f"'{text}' is not a machine with disks. {_FORMS}")
    size = catalog.vm_size(name if name.lower().startswith("standard_") else f"Standard_{name}")
    if attachment and attachment not in size.attachments:
        raise unknown("attachment", attachment, size.attachments, size.name)
    return Candidate(size, attachment or size.attachments[0], _disks(disks))


def _disks(text: str) -> Disks:
    match = re.fullmatch(r"(?:(\d{1,2})\s*x\s*)?([A-Za-z0-9-]+)((?::[A-Za-z0-9=]+)*)", text.strip())
    if not match or match[1] == "0":
        raise UsageError(f"'{text}' is not a disk. {_FORMS}")
    count, kind, options = int(match[1] or 1), match[2], [part for part in match[3].split(":") if part]
    skus = {short: sku for sku, short in _SHORT.items()}
    if kind.lower() in skus:
        return Disks(_flexible(skus[kind.lower()], options, text), count)
    tier = catalog.tier_named(kind.upper().removesuffix("-ZRS"))
    redundancy = "ZRS" if kind.upper().endswith("-ZRS") else "LRS"
    sku = next((sku for sku in tier.skus if sku.endswith(redundancy)), None)
    if sku is None:
        raise UsageError(f"'{text}': {tier.tier} disks are not made as ZRS; leave -ZRS out")
    disk = DiskAsk(sku, tier.up_to_gib)
    for option in options:
        if option == "burst":
            disk = replace(disk, bursting=True)
        elif option == "plus":
            disk = replace(disk, performance_plus=True)
        elif option.startswith("tier="):
            disk = replace(disk, tier=catalog.tier_named(option.removeprefix("tier=").upper()).tier)
        elif option != "cache":
            raise unknown("option", option, ("burst", "plus", "cache", "tier=P40"), text)
    return Disks(disk, count, "ReadOnly" if "cache" in options else "None")


def _flexible(sku: str, options: list[str], text: str) -> DiskAsk:
    figures = [re.fullmatch(r"(\d{1,7})(GiB|IOPS|MBps)?", option, re.IGNORECASE) for option in options]
    values = [int(figure[1]) for figure in figures if figure]
    if len(values) != len(options) or len(values) not in ((1,) if sku == EPHEMERAL else (1, 3)):
        raise UsageError(f"'{text}': give size, IOPS and MB/s. {_FORMS}")
    return DiskAsk(
        sku, values[0], iops=values[1] if values[1:] else None, mb_s=values[2] if values[1:] else None
    )
