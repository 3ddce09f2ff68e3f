"""What GET says of a resource, held against what was asked for. A mismatch stops the run."""

from __future__ import annotations

from typing import Any

from diskbook import scenario
from diskbook.errors import DiskbookError


def disk(resource: Any) -> dict[str, Any]:
    """Settings of a managed disk as Azure reports them, by the scenario's names."""
    creation = resource.creation_data
    return {
        "sku": _plain(resource.sku.name),
        "size_gib": resource.disk_size_gb,
        "zone": (resource.zones or [None])[0],
        "max_shares": resource.max_shares or 1,
        "bursting": bool(resource.bursting_enabled),
        "performance_plus": bool(creation and creation.performance_plus),
        "iops": resource.disk_iops_read_write,
        "mb_s": resource.disk_m_bps_read_write,
        "tier": resource.tier,
    }


def machine(resource: Any) -> dict[str, Any]:
    """Settings of a machine as Azure reports them, by the scenario's names."""
    return {"size": _plain(resource.hardware_profile.vm_size), "zone": (resource.zones or [None])[0]}


def check_disk(asked: scenario.Disk, resource: Any) -> None:
    """Compare a disk with what was asked for.

    Raises
    ------
    DiskbookError
        Naming disk, setting and both values.
    """
    wanted = {
        "sku": asked.sku,
        "size_gib": asked.size_gib,
        "zone": asked.zone,
        "max_shares": asked.max_shares,
        "bursting": asked.bursting,
        "performance_plus": asked.performance_plus,
    }
    wanted |= {name: value for name in ("iops", "mb_s") if (value := getattr(asked, name)) is not None}
    _compare(f"disk {asked.name}", wanted, disk(resource))


def check_machine(asked: scenario.Machine, resource: Any) -> None:
    """Compare a machine with what was asked for; raises as `check_disk` does."""
    _compare(f"machine {asked.name}", {"size": asked.size, "zone": asked.zone}, machine(resource))


def check_attachment(name: str, resource: Any, disk_id: str, lun: int, cache: str) -> None:
    """Make sure that a machine has the disk at that LUN with that cache; raises as `check_disk` does."""
    found = [
        {"lun": row.lun, "cache": _plain(row.caching) or "None"}
        for row in resource.storage_profile.data_disks or []
        if row.managed_disk and row.managed_disk.id.lower() == disk_id.lower()
    ]
    if not found:
        raise DiskbookError(f"disk {name} was attached, but the machine does not list it; the run stops")
    _compare(f"attached disk {name}", {"lun": lun, "cache": cache}, found[0])


def _plain(value: Any) -> Any:
    """Text of the SDK's enumerations, whose own str() is the name of the member."""
    return getattr(value, "value", value)


def _compare(what: str, wanted: dict[str, Any], found: dict[str, Any]) -> None:
    for setting, value in wanted.items():
        got = found[setting]
        if str(got).lower() != str(value).lower():
            raise DiskbookError(f"{what}: {setting} was to be {value}, but Azure says {got}; the run stops")
