"""Disk bodies read as plain records: what was asked for, what it may do, what the machines' side is told."""

from collections.abc import Mapping
from typing import Any

from diskbook.facts import catalog, disk_options
from diskbook.facts.disk_options import OPTIONS
from diskbook.facts.rules import DiskAsk
from diskbook.facts.units import GIB
from diskbook_emulator.arm.errors import bad_request
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.model import SITE_TAG
from diskbook_emulator.types import DiskSpec, Json


def ask_of(body: Json) -> DiskAsk:
    """Read a disk body as the question that the rules judge.

    Raises
    ------
    ArmError
        If sku or size are missing or of the wrong type.
    """
    properties = body.get("properties") or {}
    sku = (body.get("sku") or {}).get("name") or "Standard_LRS"
    zones = body.get("zones") or []
    size = properties.get("diskSizeGB")
    if not isinstance(size, int):
        # wording from our knowledge, not read
        raise bad_request(
            "Required parameter 'disk.diskSizeGB' is missing (null).", "InvalidParameter", "diskSizeGB"
        )
    flexible = sku in catalog.flexible_skus()
    # A sized disk carries computed figures, which are no wish of the user's.
    options: dict[str, Any] = {
        option.name: option.get(properties) for option in OPTIONS if flexible or not option.flexible
    }
    return DiskAsk(
        sku=sku,
        size_gib=size,
        zone=str(zones[0]) if zones else None,
        **{"tier": properties.get("tier"), **options},
    )


def limits_of(ask: DiskAsk) -> catalog.DiskLimits:
    """Limits of the disk."""
    return disk_options.limits(ask, ask.tier)


def fill(disk: Resource, drives: Mapping[str, tuple[int, int]]) -> None:
    """Write the figures that Azure computes from size, SKU and tier; `drives` are planted ones, by site."""
    ask = ask_of(disk.body)
    limits = limits_of(ask)
    properties = disk.properties
    family = (
        "Ultra" if ask.sku.startswith("Ultra") else "Premium" if ask.sku.startswith("Premium") else "Standard"
    )
    disk.body["sku"] = {"name": ask.sku, "tier": family}
    planted = drives.get((disk.body.get("tags") or {}).get(SITE_TAG, ""))
    figures = planted or (limits.iops, limits.mb_s)
    properties["diskIOPSReadWrite"], properties["diskMBpsReadWrite"] = figures
    properties["diskSizeBytes"] = ask.size_gib * GIB
    flexible = catalog.flexible_skus().get(ask.sku)
    if flexible is None:
        # Recorded for Premium SSD; other sized disks carry no tier property.
        if ask.sku.startswith("Premium"):
            properties["tier"] = limits.tier
        return
    properties.setdefault("creationData", {}).setdefault("logicalSectorSize", flexible.logical_sector_bytes)
    properties.setdefault("maxShares", 1)
    if ask.sku.startswith("Ultra"):
        properties["diskIOPSReadOnly"], properties["diskMBpsReadOnly"] = limits.iops, limits.mb_s


def spec_of(disk: Resource) -> DiskSpec:
    """Describe a disk to the machines' side."""
    ask = ask_of(disk.body)
    properties = disk.properties
    return DiskSpec(
        id=disk.key,
        name=disk.name,
        sku=ask.sku,
        size_gib=ask.size_gib,
        zone=ask.zone,
        max_shares=ask.max_shares,
        iops=int(properties["diskIOPSReadWrite"]),
        mb_s=int(properties["diskMBpsReadWrite"]),
        bursting=ask.bursting,
        performance_plus=ask.performance_plus,
        tier=properties.get("tier"),
        tags=dict(disk.body.get("tags") or {}),
        unique_id=str(properties.get("uniqueId", "")),
    )
