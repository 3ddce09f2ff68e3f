"""Regions with this subscription's zone mapping, and the subscription itself."""

import random

from diskbook.facts import catalog
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.types import Json


def physical_zones(seed: int, region: catalog.Region) -> dict[str, str]:
    """Map logical to physical zones, e.g. "1" to "westeurope-az3"; fixed for a seed as for a subscription."""
    order = list(region.zones)
    random.Random(f"{seed}:{region.name}").shuffle(order)
    return {logical: f"{region.name}-az{place}" for logical, place in zip(region.zones, order, strict=True)}


def subscription(plane: ControlPlane, call: Call) -> Reply:
    return Reply(
        200,
        {
            "id": plane.root,
            "subscriptionId": plane.settings.subscription_id,
            "tenantId": plane.settings.tenant_id,
            "displayName": "diskbook emulator (emulated, not Azure)",
            "state": "Enabled",
        },
    )


def listing(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, {"value": [_location(plane, region) for region in catalog.regions().values()]})


def _location(plane: ControlPlane, region: catalog.Region) -> Json:
    body: Json = {
        "id": f"{plane.root}/locations/{region.name}",
        "name": region.name,
        "type": "Region",
        "displayName": region.display_name,
        "regionalDisplayName": region.display_name,
        "metadata": {"regionType": "Physical", "regionCategory": "Recommended"},
    }
    if region.zones:
        zones = physical_zones(plane.settings.seed, region)
        body["availabilityZoneMappings"] = [
            {"logicalZone": logical, "physicalZone": physical} for logical, physical in zones.items()
        ]
    return body
