"""Resource SKUs, quota and the list of operations, from the reference tables."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import date
from functools import cache

from diskbook.facts import catalog
from diskbook.facts.rules import takes_ultra
from diskbook.facts.units import GIB, MB
from diskbook_emulator.arm import access, company
from diskbook_emulator.arm.errors import bad_request
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.arm.settings import Restriction
from diskbook_emulator.arm.vm_body import IMAGE_VERSIONS
from diskbook_emulator.arm.vm_rules import cores_used
from diskbook_emulator.types import Json

_IMAGE = (
    "/providers/Microsoft.Compute/locations/{location}/publishers/{publisher}/artifacttypes/vmimage"
    "/offers/{offer}/skus/{sku}"
)
_LOCATION = re.compile(r"location\s+eq\s+'([^']*)'", re.IGNORECASE)
# The service lists zones in no order.
_ZONE_ORDER = {"1": 2, "2": 0, "3": 1}


def listing(plane: ControlPlane, call: Call) -> Reply:
    location = _LOCATION.search(call.query.get("$filter", ""))
    regions = [plane.region(location[1])] if location else list(catalog.regions().values())
    rows = [row for region in regions for row in _rows(region.name)]
    closed = {restriction.sku for restriction in plane.settings.restrictions}
    value = [
        {**row, "restrictions": list(_restrictions(plane, row))} if row["name"] in closed else row
        for row in rows
    ]
    return Reply(200, {"value": value})


@cache
def _rows(region: str) -> tuple[Json, ...]:
    """All rows of a region, made once: nobody changes one."""
    place = catalog.region(region)
    rows = [_vm_row(size, place) for size in catalog.vm_sizes().values()]
    for tier in catalog.disk_tiers():
        rows += [_tier_row(tier, sku, place) for sku in tier.skus if catalog.sku_offered(sku, place)]
    for flexible in catalog.flexible_skus().values():
        if catalog.sku_offered(flexible.sku, place):
            rows.append(_flexible_row(flexible, place))
    return tuple(rows)


def _restrictions(plane: ControlPlane, row: Json) -> Iterator[Json]:
    for restriction in plane.settings.restrictions:
        if restriction.sku == row["name"] and restriction.location in row["locations"]:
            yield {
                "type": "Zone" if restriction.zones else "Location",
                "values": [restriction.location],
                "restrictionInfo": {"locations": [restriction.location], "zones": list(restriction.zones)},
                "reasonCode": "NotAvailableForSubscription",
            }


def _capabilities(values: Iterable[tuple[str, object]]) -> list[Json]:
    """Name-value rows; all values are strings, what is None is left out."""
    return [{"name": name, "value": str(value)} for name, value in values if value is not None]


def _row(region: catalog.Region, kind: str, zones: Iterable[str], **fields: object) -> Json:
    details: Json = {
        "location": region.name,
        "zones": sorted(zones, key=_ZONE_ORDER.__getitem__),
        "zoneDetails": [],
    }
    return {
        "resourceType": kind,
        "locations": [region.name],
        "locationInfo": [details],
        "restrictions": [],
        **fields,
    }


def _day(retires_on: str) -> str | None:
    """A day as the service writes it: month first."""
    return f"{date.fromisoformat(retires_on):%m/%d/%Y}" if retires_on else None


def _bytes(mb: float | None) -> int | None:
    return None if mb is None else round(mb * MB)


def _vm_row(size: catalog.VmSize, region: catalog.Region) -> Json:
    # Long: Azure's row, capability by capability.
    ultra = region.ultra and takes_ultra(size)
    values = _capabilities(
        [
            ("vCPUs", size.vcpus),
            ("vCPUsAvailable", size.vcpus),
            ("MemoryGB", f"{size.memory_gib:g}"),
            ("MaxDataDiskCount", size.max_data_disks),
            ("CpuArchitectureType", size.architecture),
            ("HyperVGenerations", ",".join(size.hyperv_generations)),
            ("DiskControllerTypes", ", ".join(size.disk_controllers) or None),
            ("PremiumIO", size.premium_io),
            ("CombinedTempDiskAndCachedIOPS", size.cached_iops),
            ("CombinedTempDiskAndCachedReadBytesPerSecond", _bytes(size.cached_mb_s)),
            ("CombinedTempDiskAndCachedWriteBytesPerSecond", _bytes(size.cached_mb_s)),
            ("CachedDiskBytes", size.cache_gib * GIB if size.cache_gib else None),
            ("UncachedDiskIOPS", size.uncached_iops),
            ("UncachedDiskBytesPerSecond", _bytes(size.uncached_mb_s)),
            ("EphemeralOSDiskSupported", size.ephemeral_os),
            ("AcceleratedNetworkingEnabled", size.accelerated_networking),
            ("MaxNetworkInterfaces", size.max_nics),
            ("RetirementDateUtc", _day(size.retires_on)),
            ("UltraSSDAvailable", (ultra and not region.zones) or None),
        ]
    )
    short = size.name.removeprefix("Standard_")
    row = _row(
        region,
        "virtualMachines",
        region.zones,
        name=size.name,
        tier="Standard",
        size=short,
        family=size.family,
        capabilities=values,
    )
    if region.zones and ultra:
        capability = [{"name": "UltraSSDAvailable", "value": "True"}]
        row["locationInfo"][0]["zoneDetails"] = [{"Name": list(region.zones), "capabilities": capability}]
    return row


def _tier_row(tier: catalog.DiskTier, sku: str, region: catalog.Region) -> Json:
    # Long: Azure's row, capability by capability.
    values: list[tuple[str, object]] = [
        ("MaxSizeGiB", tier.up_to_gib),
        ("MinSizeGiB", tier.above_gib),
        ("MaxIOps", tier.iops),
        ("MinIOps", tier.iops),
        ("MaxBandwidthMBps", tier.mb_s),
        ("MinBandwidthMBps", tier.mb_s),
        ("MaxValueOfMaxShares", tier.max_shares),
    ]
    if tier.burst_kind == "credit":
        values += [
            ("MaxBurstIops", tier.burst_iops),
            ("MaxBurstBandwidthMBps", tier.burst_mb_s),
            ("MaxBurstDurationInMin", tier.burst_minutes),
            ("BurstCreditBucketSizeInIO", tier.credit_ios),
            ("BurstCreditBucketSizeInGiB", round(tier.credit_mb / 1024)),
        ]
    values += [
        ("MaxIOpsPerformancePlus", tier.performance_plus_iops),
        ("MaxBandwidthMBpsPerformancePlus", tier.performance_plus_mb_s),
    ]
    zones = () if sku.endswith("_ZRS") else region.zones
    return _row(
        region,
        "disks",
        zones,
        name=sku,
        tier=sku.partition("_")[0].removesuffix("SSD"),
        size=tier.tier,
        capabilities=_capabilities(values),
    )


def _flexible_row(sku: catalog.FlexibleSku, region: catalog.Region) -> Json:
    values = [
        ("MaxSizeGiB", sku.max_size_gib),
        ("MinSizeGiB", sku.min_size_gib),
        ("MaxIOpsReadWrite", sku.max_iops),
        ("MinIOpsReadWrite", sku.min_iops),
        ("MaxBandwidthMBpsReadWrite", sku.max_mb_s),
        ("MinBandwidthMBpsReadWrite", sku.min_mb_s),
        ("MaxIopsPerGiBReadWrite", sku.iops_per_gib),
        ("MinIOSizeKiBps", 4),
        ("MaxIOSizeKiBps", 256),
        ("MaxValueOfMaxShares", sku.max_shares),
    ]
    tier = "Ultra" if sku.sku.startswith("Ultra") else "Premium"
    return _row(
        region,
        "disks",
        region.zones,
        name=sku.sku,
        tier=tier,
        size=tier[0],
        capabilities=_capabilities(values),
    )


def usages(plane: ControlPlane, call: Call) -> Reply:
    region = plane.region(call.params["location"]).name
    families = sorted({size.family for size in catalog.vm_sizes().values() if size.family})
    names = {"cores": "Total Regional vCPUs"} | {family: f"{family} vCPUs" for family in families}
    rows = [
        {
            "unit": "Count",
            "currentValue": cores_used(plane, region, name),
            "limit": plane.settings.quota(name),
            "name": {"value": name, "localizedValue": text},
        }
        for name, text in names.items()
    ]
    return Reply(200, {"value": rows})


def image_versions(plane: ControlPlane, call: Call) -> Reply:
    """List the versions of an image, oldest first, as the service does: an array without an envelope.

    The versions are made up; nothing of an image runs here.
    """
    region, names = plane.region(call.params["location"]).name, call.params
    path = f"/subscriptions/{plane.settings.subscription_id}{_IMAGE.format(**{**names, 'location': region})}"
    versions = [
        {"location": region, "name": version, "id": f"{path}/versions/{version}"}
        for version in IMAGE_VERSIONS
    ]
    return Reply(200, versions)


def network_usages(plane: ControlPlane, call: Call) -> Reply:
    """List the quota of public addresses; the name is from general knowledge, not seen on the wire."""
    region = plane.region(call.params["location"]).name
    used = [
        address
        for address in plane.store.of_type("Microsoft.Network/publicIPAddresses")
        if address.body["location"] == region
    ]
    row = {
        "unit": "Count",
        "currentValue": len(used),
        "limit": plane.settings.quota("PublicIPAddresses"),
        "name": {"value": "PublicIPAddresses", "localizedValue": "Public IP Addresses"},
    }
    return Reply(200, {"value": [row]})


def offer(plane: ControlPlane, call: Call) -> Reply:
    """Show or set the subscription: quotas, SKUs that it may not have, the account's role, its providers."""
    if call.method == "PUT":
        try:
            quotas = {str(name): int(limit) for name, limit in call.body.get("quotas", {}).items()}
            rows = call.body.get("restrictions", [])
            restrictions = tuple(
                Restriction(row["sku"], row["location"], tuple(row.get("zones", ()))) for row in rows
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise bad_request(f"an offer is quotas and restrictions: {error!r}", "InvalidOffer") from None
        policies = company.policies(call.body)
        role, unregistered = call.body.get("role", "Contributor"), tuple(call.body.get("unregistered", ()))
        if role not in access.ROLES:
            raise bad_request(f"a role is one of {', '.join(access.ROLES)}", "InvalidOffer")
        plane.settings = replace(
            plane.settings,
            quotas=quotas,
            restrictions=restrictions,
            role=role,
            unregistered=unregistered,
            policies=policies,
        )
    settings = plane.settings
    body = {
        "quotas": dict(settings.quotas),
        "restrictions": [asdict(restriction) for restriction in settings.restrictions],
        "role": settings.role,
        "unregistered": list(settings.unregistered),
        "policies": {name: list(values) for name, values in settings.policies.items()},
    }
    return Reply(200, body)


def operations(plane: ControlPlane, call: Call) -> Reply:
    """List the REST operations of a provider that are emulated."""
    kinds = {
        "Microsoft.Compute": ("disks", "virtualMachines", "skus"),
        "Microsoft.Network": (
            "virtualNetworks",
            "publicIPAddresses",
            "networkSecurityGroups",
            "networkInterfaces",
        ),
        "Microsoft.Storage": ("storageAccounts",),
    }
    provider = call.params["provider"]
    rows = [
        {
            "name": f"{provider}/{kind}/{verb}",
            "display": {"provider": provider, "resource": kind, "operation": verb},
        }
        for kind in kinds.get(provider, ())
        for verb in ("read", "write", "delete")
    ]
    return Reply(200, {"value": rows})
