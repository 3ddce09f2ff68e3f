"""Azure's errors for disks that break a rule, and for changes that a disk does not take."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from diskbook.facts import catalog, disk_options
from diskbook.facts.disk_options import OPTIONS
from diskbook.facts.rules import PREMIUM_SKUS, ULTRA, ZRS_SKUS, DiskAsk, Violation, disk_violations
from diskbook.facts.units import GIB
from diskbook_emulator.arm.errors import ArmError, bad_request, invalid, not_allowed
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.model import SITE_TAG
from diskbook_emulator.types import DiskSpec, Json

BURSTING_LOCK = timedelta(hours=12)
_NAME = re.compile(r"^[^_\W][\w.-]{0,79}(?<![-.])$")
# scenario field: parameter as Azure names it
PARAMETERS = {
    "sku": "disk.sku.name",
    "size_gib": "disk.diskSizeGB",
    "zone": "disk.zones",
    "tier": "disk.tier",
    **{option.name: option.parameter for option in OPTIONS},
}
SECTOR_BYTES = (512, 4096)
NEVER_CHANGED = tuple(option.name for option in OPTIONS if option.change == "never")
CHANGED_DETACHED = ("sku", *(option.name for option in OPTIONS if option.change == "detached"))


def check_new(ask: DiskAsk, region: catalog.Region, name: str = "") -> None:
    """Raise Azure's error for the first rule that a disk breaks."""
    broken = disk_violations(ask, region)
    if broken:
        raise _error(broken[0], ask, region, name)


def check_body(name: str, body: Json, present: Json | None = None) -> None:
    """Raise Azure's error for what the body of a disk says that no `DiskAsk` can.

    `present` are the properties of a disk that is there; what they say already is no wish.
    """
    if not _NAME.match(name):
        # wording from our knowledge, not read
        raise invalid(
            "disk.name",
            f"The entity name 'disk.name' is invalid according to its validation rule: {_NAME.pattern}.",
        )
    wished, flexible = body.get("properties") or {}, _sku(body) in catalog.flexible_skus()
    for option in OPTIONS:
        value = option.get(wished)
        if option.flexible and not flexible and value not in (None, option.get(present or {})):
            raise bad_request(
                f"The value {value} of parameter {option.parameter} is not valid. It cannot be set for a "
                f"{_sku(body)} disk."
            )  # wording from our knowledge, not read
    sector = (wished.get("creationData") or {}).get("logicalSectorSize")
    if sector is not None and not (flexible and sector in SECTOR_BYTES):
        # "Supported values are 512 ad 4096" (REST specification), of Ultra and Premium SSD v2;
        # wording from our knowledge, not read
        raise invalid(
            "disk.creationData.logicalSectorSize",
            f"The value {sector} of parameter disk.creationData.logicalSectorSize is not valid for a "
            f"{_sku(body)} disk.",
        )


def _sku(body: Json) -> str:
    return str((body.get("sku") or {}).get("name") or "Standard_LRS")


def _error(broken: Violation, ask: DiskAsk, region: catalog.Region, name: str) -> ArmError:
    """Azure's words for a broken rule, if they are known (docs/reference/azure-rules.md has the sources)."""
    if broken.rule in _QUOTED:
        return _QUOTED[broken.rule](ask, name)
    if broken.rule == "zone" and not region.zones:
        # wording from our knowledge, not read
        return bad_request(
            f"The provided location '{region.name}' does not support availability zones for disks.",
            "LocationNotSupportAvailabilityZones",
        )
    parameter = PARAMETERS.get(broken.field, broken.field)
    # wording from our knowledge, not read
    return invalid(parameter, f"The value of parameter '{parameter}' is invalid: {broken.sentence}.")


def _out_of_range(parameter: str, value: int | None, ask: DiskAsk, limits: tuple[int, int]) -> ArmError:
    return bad_request(
        f"The value {value} of parameter {parameter} is not valid. The supported range for a {ask.sku} disk "
        f"of size {ask.size_gib} GB is between {limits[0]} and {limits[1]}."
    )


def _iops_range(ask: DiskAsk, name: str) -> ArmError:
    limits = catalog.flexible_skus()[ask.sku].iops_range(ask.size_gib)
    return _out_of_range(PARAMETERS["iops"], ask.iops, ask, limits)


def _mb_s_range(ask: DiskAsk, name: str) -> ArmError:
    flexible = catalog.flexible_skus()[ask.sku]
    iops = ask.iops or flexible.default_iops or flexible.iops_range(ask.size_gib)[1]
    return _out_of_range(PARAMETERS["mb_s"], ask.mb_s, ask, flexible.mb_s_range(iops))


_QUOTED: dict[str, Callable[[DiskAsk, str], ArmError]] = {
    "sku": lambda ask, name: invalid("sku", f"SKU {ask.sku} is not available."),
    "sku-region": lambda ask, name: bad_request(
        f"Disks with sku '{ask.sku}' are not available in this region."
    ),
    "zrs-zone": lambda ask, name: not_allowed(
        f"A disk with sku '{ask.sku}' cannot be created in an availability zone."
    ),
    "max-shares": lambda ask, name: bad_request(
        f"MaxShares '{ask.max_shares}' for disk '{name}' of size '{ask.size_gib}' GB is invalid. Please "
        "refer to https://docs.microsoft.com/azure/virtual-machines/windows/disks-shared-enable#disk-sizes"
    ),
    # The flag is refused at 512 GB as well, whatever the message says (azuredisk-csi-driver, issue 1949).
    "performance-plus": lambda ask, name: bad_request(
        "The performancePlus flag can only be set on disks at least 512 GB in size."
    ),
    "iops-range": _iops_range,
    "mb-s-range": _mb_s_range,
}


def check_change(
    old: Resource, before: DiskAsk, after: DiskAsk, region: catalog.Region, in_use: bool
) -> None:
    """Raise Azure's error when an existing disk does not take a change.

    - `in_use`: whether it is attached to a machine that is not deallocated.
    """
    if before.zone != after.zone:
        raise bad_request(
            f"Availability zone must not be changed on existing resource '{old.name}'. Existing zone is "
            f"'{before.zone or ''}'."
        )
    for field in NEVER_CHANGED:
        if getattr(before, field) != getattr(after, field):
            raise _unchangeable(old, PARAMETERS[field].removeprefix("disk."))
    kinds = [(sku in ZRS_SKUS, sku == ULTRA) for sku in (before.sku, after.sku)]
    if kinds[0] != kinds[1]:
        raise _unchangeable(old, "sku")
    if after.size_gib < before.size_gib:
        raise not_allowed(
            f"The disk/snapshot resource with id {old.id} cannot be resized down. Reducing disk/snapshot "
            "size is not supported in Azure to prevent data loss. If you do need to reduce the size of the "
            "disk, please create new snapshot/disks with the appropriate size. More information is "
            "available at https://aka.ms/AzureDisksFAQ"
        )
    check_new(after, region, old.name)
    if in_use:
        _check_in_use(old, before, after)
    if before.bursting and not after.bursting:
        _check_bursting_lock(old)


def _unchangeable(old: Resource, prop: str) -> ArmError:
    return bad_request(f"Changing property '{prop}' is not allowed for existing disk '{old.name}'.")


def _check_in_use(old: Resource, before: DiskAsk, after: DiskAsk) -> None:
    # wordings in this function are from our knowledge, not read
    for field in CHANGED_DETACHED:
        if getattr(before, field) != getattr(after, field):
            raise not_allowed(
                f"Cannot change '{PARAMETERS[field]}' of disk {old.name} while it is attached to running VM "
                f"'{old.body.get('managedBy', '')}'. Detach the disk or deallocate the VM first."
            )
    if before.size_gib != after.size_gib and before.max_shares > 1:
        raise not_allowed(f"Shared disk {old.name} cannot be resized while it is attached to a running VM.")
    changed_tier = before.tier != after.tier and after.tier is not None
    if changed_tier and before.sku in PREMIUM_SKUS and before.max_shares > 1:
        raise not_allowed(f"The tier of shared disk {old.name} cannot be changed while it is attached.")


def _check_bursting_lock(old: Resource) -> None:
    since = old.properties.get("burstingEnabledTime")
    if since and datetime.now(UTC) - datetime.fromisoformat(since) < BURSTING_LOCK:
        # wording from our knowledge, not read
        raise not_allowed(
            f"On-demand bursting of disk {old.name} was enabled at {since} "
            "and cannot be disabled within 12 hours."
        )


# ---- disk bodies read as plain records: what was asked for, and what the machines' side is told


def ask_of(body: Json) -> DiskAsk:
    """Read a disk body as the question that the rules judge.

    Raises ArmError if sku or size are missing or of the wrong type.
    """
    properties = body.get("properties") or {}
    sku = (body.get("sku") or {}).get("name") or "Standard_LRS"
    zones = body.get("zones") or []
    size = properties.get("diskSizeGB")
    if not isinstance(size, int):
        # wording from our knowledge, not read
        raise invalid("diskSizeGB", "Required parameter 'disk.diskSizeGB' is missing (null).")
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
