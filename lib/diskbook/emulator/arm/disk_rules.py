"""Azure's errors for disks that break a rule, and for changes that a disk does not take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from diskbook.emulator.arm.errors import ArmError, bad_request, not_allowed
from diskbook.emulator.arm.state import Resource
from diskbook.reference import catalog
from diskbook.reference.disk_options import OPTIONS
from diskbook.reference.rules import PREMIUM_SKUS, ZRS_SKUS, DiskAsk, Violation, disk_violations

BURSTING_LOCK = timedelta(hours=12)
# scenario field: parameter as Azure names it
PARAMETERS = {
    "sku": "disk.sku.name",
    "size_gib": "disk.diskSizeGB",
    "zone": "disk.zones",
    "tier": "disk.tier",
    **{option.name: option.parameter for option in OPTIONS},
}
NEVER_CHANGED = ("zone", *(option.name for option in OPTIONS if option.change == "never"))
CHANGED_DETACHED = ("sku", *(option.name for option in OPTIONS if option.change == "detached"))


def check_new(ask: DiskAsk, region: catalog.Region) -> None:
    """Raise Azure's error for the first rule that a disk breaks."""
    broken = disk_violations(ask, region)
    if broken:
        raise _error(broken[0], ask, region)


def _error(broken: Violation, ask: DiskAsk, region: catalog.Region) -> ArmError:
    if broken.rule == "sku-region":
        return bad_request(f"Disks with sku '{ask.sku}' are not available in this region.")
    if broken.rule == "zone" and not region.zones:
        # wording from our knowledge, not read
        return bad_request(
            f"The provided location '{region.name}' does not support availability zones for disks.",
            "LocationNotSupportAvailabilityZones",
        )
    parameter = PARAMETERS.get(broken.field, broken.field)
    # wording from our knowledge, not read
    return bad_request(
        f"The value of parameter '{parameter}' is invalid: {broken.sentence}.", "InvalidParameter", parameter
    )


def check_change(
    old: Resource, before: DiskAsk, after: DiskAsk, region: catalog.Region, in_use: bool
) -> None:
    """Raise Azure's error when an existing disk does not take a change.

    Parameters
    ----------
    old
        The disk as it is.
    before, after
        What it is, and what is asked for.
    region
        Where it is.
    in_use
        Whether it is attached to a machine that is not deallocated.
    """
    # wordings in this function are from our knowledge, not read
    for field in NEVER_CHANGED:
        if getattr(before, field) != getattr(after, field):
            message = (
                f"Changing property '{PARAMETERS[field]}' is not allowed for existing disk '{old.name}'."
            )
            raise ArmError(409, "PropertyChangeNotAllowed", message, target=PARAMETERS[field])
    if before.sku != after.sku and (before.sku in ZRS_SKUS) != (after.sku in ZRS_SKUS):
        message = f"Changing property 'disk.sku' from '{before.sku}' to '{after.sku}' is not allowed."
        raise ArmError(409, "PropertyChangeNotAllowed", message, target="disk.sku")
    if after.size_gib < before.size_gib:
        raise not_allowed(f"Disk size reduction is not supported. Current size is {before.size_gib} GB.")
    check_new(after, region)
    if in_use:
        _check_in_use(old, before, after)
    if before.bursting and not after.bursting:
        _check_bursting_lock(old)


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
