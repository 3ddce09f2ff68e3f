"""What a subscription may have in a region: resource SKUs and quotas, as small records. No I/O but `ask`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from azure.core.rest import HttpRequest

from diskbook.cloud.azure.clients import Clients

SKUS_API = "2021-07-01"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Offer:
    """A size or a disk SKU as the region offers it to this subscription.

    `tier` is the size class of a disk, e.g. P30. `zones` are those in which it may be had, with restrictions
    taken off; `everywhere` is False where the whole region is closed to the subscription.
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
