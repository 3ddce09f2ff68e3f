"""What a subscription may use in a region: sizes, quotas, limits and images.

What Azure says of a VM size is compared with our table: traits, retirement and limits. The limits in force of
machines come from resource SKUs and a dated burst table, those of disks from reading the disk back.

A run takes one version of each image, so that all its machines are alike: "latest" may change between the
first and the last. Azure lists the versions by region (Virtual Machine Images - List). The run takes the
newest once and records it in the manifest; resumed runs use the same version.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from azure.core.rest import HttpRequest

from diskbook.cloud.azure import requests
from diskbook.cloud.azure.clients import Clients
from diskbook.design import azure_rules
from diskbook.design.azure_rules import NOTHING_KNOWN, Traits
from diskbook.design.model import Disk, Scenario
from diskbook.facts import arm, catalog, disk_options
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import MB
from diskbook.results.run import Run

SKUS_API = "2021-07-01"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Offer:
    """A size or a disk SKU as the region offers it to this subscription.

    `tier` is that of a disk, e.g. P30. `zones` are without restricted ones; `everywhere` is False in a closed
    region.
    """

    name: str
    tier: str
    family: str
    zones: frozenset[str]
    everywhere: bool
    capabilities: Mapping[str, str]
    ultra_zones: frozenset[str] = frozenset()

    def number(self, capability: str) -> float:
        """Value of a capability; 0 where it is not listed."""
        return float(self.capabilities.get(capability, 0))

    def has(self, capability: str) -> bool:
        """Whether a capability is listed as True."""
        return self.capabilities.get(capability) == "True"

    def offered(self, zone: str | None) -> bool:
        """Whether it may be had in a zone, or in the region where `zone` is None."""
        return self.everywhere and (zone is None or zone in self.zones)

    def takes_ultra(self, zone: str | None) -> bool:
        """Whether machines of this size take Ultra disks in a zone; in the region where `zone` is None."""
        return self.has("UltraSSDAvailable") if zone is None else zone in self.ultra_zones


@dataclass(frozen=True)
class Quota:
    """A limit of the subscription in a region, and how much of it is in use."""

    name: str
    limit: int
    used: int

    @property
    def free(self) -> int:
        """What may still be taken."""
        return max(0, self.limit - self.used)


@dataclass(frozen=True)
class Region:
    """What one region offers. Sizes by name in lower case, disks by SKU and tier (flexible ones: "")."""

    name: str
    sizes: Mapping[str, Offer] = field(default_factory=dict)
    disks: Mapping[tuple[str, str], Offer] = field(default_factory=dict)
    quotas: Mapping[str, Quota] = field(default_factory=dict)

    def disk(self, sku: str, tier: str | None) -> Offer | None:
        """The offer of a disk; Premium SSD v2 and Ultra have no tiers."""
        return self.disks.get((sku, tier or ""))


def ask(clients: Clients, region: str, quotas: bool = True) -> Region:
    """Ask the subscription what it may have in a region, and how much of its quotas is in use."""
    rows = _listed(clients, region)
    disks = [offer_of(row) for row in rows if row["resourceType"] == "disks"]
    listed = [*clients.compute.usage.list(region), *clients.network.usages.list(region)] if quotas else []
    return Region(
        region,
        _sizes(rows),
        {(offer.name, _tier(offer)): offer for offer in disks},
        {row.name.value: Quota(row.name.value, int(row.limit), int(row.current_value)) for row in listed},
    )


def sizes(clients: Clients, region: str) -> dict[str, Offer]:
    """Ask the subscription what VM sizes it may have in a region, by name in lower case."""
    return _sizes(_listed(clients, region))


def _listed(clients: Clients, region: str) -> list[Row]:
    """Rows of a region as Azure sends them: of the thousand that there are, models take over a second."""
    query = {"api-version": SKUS_API, "$filter": f"location eq '{region}'"}
    url = f"/subscriptions/{clients.cloud.subscription}/providers/Microsoft.Compute/skus"
    request = HttpRequest("GET", url, params=query)
    rows: list[Row] = []
    while True:
        answer = clients.compute.send_request(request)
        answer.raise_for_status()
        page = answer.json()
        rows += page.get("value") or []
        if not page.get("nextLink"):
            return rows
        request = HttpRequest("GET", page["nextLink"])


def _sizes(rows: Iterable[Row]) -> dict[str, Offer]:
    machines = (offer_of(row) for row in rows if row["resourceType"] == "virtualMachines")
    return {offer.name.lower(): offer for offer in machines}


def _tier(offer: Offer) -> str:
    return "" if offer.name in ("PremiumV2_LRS", "UltraSSD_LRS") else offer.tier


def offer_of(row: Row) -> Offer:
    """Read a row of the list of resource SKUs; what is not there, or null, is empty."""
    place = (row.get("locationInfo") or [{}])[0]
    closed, everywhere = _closed(row.get("restrictions") or [])
    ultra = {
        zone
        for detail in place.get("zoneDetails") or []
        if _values(detail.get("capabilities")).get("UltraSSDAvailable") == "True"
        for zone in detail.get("name") or detail.get("Name") or []
    }
    return Offer(
        row["name"], row.get("size") or "", row.get("family") or "",
        frozenset(place.get("zones") or []) - closed, everywhere,
        _values(row.get("capabilities")), frozenset(ultra),
    )  # fmt: skip


def _closed(restrictions: Iterable[Row]) -> tuple[frozenset[str], bool]:
    """Zones that are closed, and whether the region as a whole is open."""
    zones: set[str] = set()
    everywhere = True
    for restriction in restrictions:
        if restriction.get("type") == "Location":
            everywhere = False
        else:
            zones |= set((restriction.get("restrictionInfo") or {}).get("zones") or [])
    return frozenset(zones), everywhere


def _values(rows: Iterable[Row] | None) -> dict[str, str]:
    return {row["name"]: row["value"] for row in rows or []}


DATE_FORMS = ("%m/%d/%Y", "%Y-%m-%d")
"""How Azure writes a day: RetirementDateUtc of resource SKUs is 09/03/2024, month first; others are ISO's."""
MATERIAL = 0.01
"""Relative difference between Azure's figure and the table's from which on it is named."""
_COMPARED = (
    ("MaxDataDiskCount", "max_data_disks", 1.0, "data disks"),
    ("UncachedDiskIOPS", "uncached_iops", 1.0, "uncached IOPS"),
    ("UncachedDiskBytesPerSecond", "uncached_mb_s", MB, "uncached MB/s"),
    ("CombinedTempDiskAndCachedIOPS", "cached_iops", 1.0, "cached IOPS"),
    ("CombinedTempDiskAndCachedReadBytesPerSecond", "cached_mb_s", MB, "cached MB/s"),
)


def traits(name: str, offer: Offer | None) -> azure_rules.Traits:
    """Processor, generations and disk controllers of a size, as Azure says them, else as the table has them.

    Azure lists no controllers of sizes that have SCSI alone (Azure/SAP-on-Azure-Scripts-and-Utilities, pull
    request 131: inferred there), so what neither lists is SCSI.
    """
    size = catalog.find_vm_size(name)
    known = azure_rules.documented(size) if size else azure_rules.NOTHING_KNOWN
    if offer is None:
        return known
    controllers = _list(offer, "DiskControllerTypes") or known.controllers
    return azure_rules.Traits(
        offer.capabilities.get("CpuArchitectureType") or known.architecture,
        _list(offer, "HyperVGenerations") or known.generations,
        controllers or (() if size else (catalog.SCSI,)),
    )


def _list(offer: Offer, capability: str) -> tuple[str, ...]:
    words = (word.strip() for word in offer.capabilities.get(capability, "").split(","))
    return tuple(word for word in words if word)


def retired_on(name: str, offer: Offer | None) -> date | None:
    """The day Azure stops, or stopped, a size: as Azure says, else as the table does."""
    listed = offer.capabilities.get("RetirementDateUtc", "") if offer else ""
    size = catalog.find_vm_size(name)
    return day_of(listed) or day_of(size.retires_on if size else "")


def day_of(text: str) -> date | None:
    """Read a day in any of `DATE_FORMS`, whatever time follows it; None where it cannot be read."""
    for form in DATE_FORMS:
        try:
            return datetime.strptime(text.strip().replace("T", " ").partition(" ")[0], form).date()
        except ValueError:
            continue
    return None


def limits(offer: Offer) -> dict[str, float | None]:
    """Limits of a size: base ones as Azure says them, None where it does not; burst ones from the table."""
    size = catalog.find_vm_size(offer.name)
    return {
        "iops": _number(offer, "UncachedDiskIOPS", 1.0),
        "mb_s": _number(offer, "UncachedDiskBytesPerSecond", MB),
        "burst_iops": size.uncached_burst_iops if size else None,
        "burst_mb_s": size.uncached_burst_mb_s if size else None,
        "cached_iops": _number(offer, "CombinedTempDiskAndCachedIOPS", 1.0),
        "cached_mb_s": _number(offer, "CombinedTempDiskAndCachedReadBytesPerSecond", MB),
    }


def _number(offer: Offer, capability: str, unit: float) -> float | None:
    """Value of a capability in a unit; None where it is not listed or is not a number."""
    try:
        return float(offer.capabilities[capability]) / unit
    except (KeyError, ValueError):
        return None


def differences(offer: Offer) -> str:
    """Name in one line where Azure and the table disagree on a size, or that the table lacks it; else ""."""
    size = catalog.find_vm_size(offer.name)
    if size is None:
        return f"{offer.name} is in no table: {_figures(offer)}; what it bursts to is not known"
    apart = "; ".join(_apart(offer, size))
    return f"{offer.name}: {apart}; Azure's figures are used" if apart else ""


def of_scenario(scenario: Scenario, here: Region) -> list[str]:
    """Name where Azure and the table disagree on the sizes of a scenario, a line a size."""
    names = dict.fromkeys(machine.size.lower() for machine in scenario.machine)
    return [text for name in names if name in here.sizes and (text := differences(here.sizes[name]))]


def _figures(offer: Offer) -> str:
    of = limits(offer)
    if of["iops"] is None or of["mb_s"] is None:
        return "Azure names no uncached limit, so its cells are labelled 'limit not known'"
    return f"Azure says {of['iops']:,.0f} uncached IOPS and {of['mb_s']:,.0f} MB/s"


def _apart(offer: Offer, size: catalog.VmSize) -> Iterator[str]:
    for capability, column, unit, words in _COMPARED:
        listed, ours = _number(offer, capability, unit), getattr(size, column)
        if listed is not None and ours is not None and abs(listed - ours) > MATERIAL * ours:
            yield f"Azure says {listed:,.6g} {words}, the table {ours:,.6g}"
    here, there = azure_rules.documented(size), traits(offer.name, offer)
    for name, ours_, theirs in (
        ("disk controllers", here.controllers, there.controllers),
        ("generations", here.generations, there.generations),
    ):
        if ours_ and sorted(ours_) != sorted(theirs):
            yield f"Azure says {name} {', '.join(theirs)}, the table {', '.join(ours_)}"
    day, listed_day = day_of(size.retires_on), day_of(offer.capabilities.get("RetirementDateUtc", ""))
    if listed_day is not None and day is not None and day != listed_day:
        yield f"Azure retires it on {listed_day}, the table on {day}"


@dataclass(frozen=True)
class Size:
    """What a VM size can do. `differs` says where Azure and the table disagree, "" where they do not."""

    limits: dict[str, float | None]
    accelerated_networking: bool
    traits: azure_rules.Traits = azure_rules.NOTHING_KNOWN
    differs: str = ""


def measured_sizes(clients: Clients, region: str, names: Set[str]) -> dict[str, Size]:
    """Limits of VM sizes, by size: base ones from the API, burst ones from data/reference/vm-sizes.csv.

    `iops`, `mb_s` (10^6 bytes), `burst_iops`, `burst_mb_s`, `cached_iops`, `cached_mb_s`; None where there is
    none, or none is known. Where API and table disagree, it is said in one line a size. Raises DiskbookError
    when the region does not offer a size.
    """
    offered = sizes(clients, region)
    missing = {name for name in names if name.lower() not in offered}
    if missing:
        raise DiskbookError(
            f"region {region} does not offer {min(missing)}; choose another size or region in the scenario"
        )
    by_size = {name: _of_size(offered[name.lower()]) for name in sorted(names)}
    for size in by_size.values():
        if size.differs:
            clients.tell(size.differs)
    return by_size


def disk_limits(spec: Disk, resource: Any) -> dict[str, float | None]:
    """Limits of a disk: base from what Azure reports, burst from the documented table; same keys as above."""
    documented = disk_options.limits(spec)
    return {
        "iops": resource.disk_iops_read_write,
        "mb_s": resource.disk_m_bps_read_write,
        "burst_iops": documented.burst_iops,
        "burst_mb_s": documented.burst_mb_s,
    }


def _of_size(offer: Offer) -> Size:
    return Size(
        limits(offer),
        offer.has("AcceleratedNetworkingEnabled"),
        traits(offer.name, offer),
        differences(offer),
    )


def image_versions(
    clients: Clients,
    run: Run,
    scenario: Scenario,
    region: str,
    traits: Mapping[str, Traits] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the version of each image that a run needs, by its name in `arm.IMAGES`, as in its manifest.

    Versions that it lacks are asked for and written there. Raises DiskbookError when a region lists none.
    """
    known: dict[str, str] = dict(run.manifest.get("images") or {})
    missing = sorted(images_needed(scenario, traits) - known.keys())
    if missing:
        known |= {name: latest_image(clients, region, name) for name in missing}
        run.update_manifest(images=known)
    return known


def images_needed(scenario: Scenario, traits: Mapping[str, Traits] = MappingProxyType({})) -> set[str]:
    """Names in `arm.IMAGES` of the images that a scenario's machines are made from."""
    return {
        requests.image_of(
            machine, traits.get(machine.size, NOTHING_KNOWN), pooled=scenario.is_pooled(machine.name)
        )
        for machine in scenario.machine
    }


def latest_image(clients: Clients, region: str, name: str) -> str:
    """Ask for the newest version of an image of `arm.IMAGES` in a region; DiskbookError when it has none."""
    image = arm.IMAGES[name]
    listed = clients.compute.virtual_machine_images.list(
        region, image["publisher"], image["offer"], image["sku"]
    )
    version = newest_version(str(item.name) for item in listed)
    if version is None:
        words = ":".join(image.values())
        raise DiskbookError(f"region {region} lists no version of the image {words}; take another region")
    return version


def newest_version(names: Iterable[str]) -> str | None:
    """Newest of image_versions such as "24.04.202511100", number by number; None where there is none."""
    numbered = [
        (tuple(map(int, name.split("."))), name)
        for name in names
        if all(part.isdecimal() for part in name.split("."))
    ]
    return max(numbered)[1] if numbered else None
