"""Limits in force: of machines from resource SKUs and a dated burst table, of disks from their read-back."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from diskbook.azure.clients import Clients
from diskbook.base.errors import DiskbookError
from diskbook.base.units import MB
from diskbook.reference import catalog, disk_options
from diskbook.scenario.model import Disk


@dataclass(frozen=True)
class Size:
    """What a VM size can do: its limits (as `sizes` says), and whether it takes accelerated networking."""

    limits: dict[str, float | None]
    accelerated_networking: bool


def sizes(clients: Clients, region: str, names: Set[str]) -> dict[str, Size]:
    """Limits of VM sizes: uncached, and cached ones for disks with a host cache.

    Base limits come from the API. Burst limits are not in resource SKUs: they come from the dated table
    data/reference/vm-sizes.csv.

    Returns
    -------
    dict
        By size. Limits are `iops`, `mb_s`, `burst_iops`, `burst_mb_s`, `cached_iops`, `cached_mb_s` (None
        where there is none; MB are 10^6 bytes).

    Raises
    ------
    DiskbookError
        When the region does not offer a size.
    """
    by_size: dict[str, Size] = {}
    for row in clients.compute.resource_skus.list(filter=f"location eq '{region}'"):
        if row.resource_type == "virtualMachines" and row.name in names:
            by_size[row.name] = _of_size(row)
    missing = names - by_size.keys()
    if missing:
        raise DiskbookError(
            f"region {region} does not offer {min(missing)}; choose another size or region in the scenario"
        )
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


def _of_size(row: Any) -> Size:
    capability = {item.name: item.value for item in row.capabilities or []}
    documented = catalog.vm_sizes().get(row.name.lower())
    limits = {
        "iops": float(capability["UncachedDiskIOPS"]),
        "mb_s": float(capability["UncachedDiskBytesPerSecond"]) / MB,
        "burst_iops": documented.uncached_burst_iops if documented else None,
        "burst_mb_s": documented.uncached_burst_mb_s if documented else None,
        "cached_iops": _number(capability, "CombinedTempDiskAndCachedIOPS", 1),
        "cached_mb_s": _number(capability, "CombinedTempDiskAndCachedReadBytesPerSecond", MB),
    }
    return Size(limits, capability.get("AcceleratedNetworkingEnabled") == "True")


def _number(capability: dict[str, str], name: str, unit: float) -> float | None:
    return float(capability[name]) / unit if name in capability else None
