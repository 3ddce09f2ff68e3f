"""Limits in force: of machines from resource SKUs and a dated burst table, of disks from their read-back."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from diskbook.cloud.azure import offers, sizes as azure_sizes
from diskbook.cloud.azure.clients import Clients
from diskbook.design.model import Disk
from diskbook.design.size_rules import NOTHING_KNOWN, Traits
from diskbook.facts import disk_options
from diskbook.facts.errors import DiskbookError


@dataclass(frozen=True)
class Size:
    """What a VM size can do: its limits (as `sizes` says), and whether it takes accelerated networking.

    `differs` says in one line where Azure and the table disagree on it, "" where they do not.
    """

    limits: dict[str, float | None]
    accelerated_networking: bool
    traits: Traits = NOTHING_KNOWN
    differs: str = ""


def sizes(clients: Clients, region: str, names: Set[str]) -> dict[str, Size]:
    """Limits of VM sizes: uncached, and cached ones for disks with a host cache.

    Base limits come from the API. Burst limits are not in resource SKUs: they come from the dated table
    data/reference/vm-sizes.csv. Where the two disagree, it is said in one line a size.

    Returns
    -------
    dict
        By size. Limits are `iops`, `mb_s`, `burst_iops`, `burst_mb_s`, `cached_iops`, `cached_mb_s` (None
        where there is none, or none is known; MB are 10^6 bytes).

    Raises
    ------
    DiskbookError
        When the region does not offer a size.
    """
    offered = offers.sizes(clients, region)
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


def _of_size(offer: offers.Offer) -> Size:
    return Size(
        azure_sizes.limits(offer),
        offer.has("AcceleratedNetworkingEnabled"),
        azure_sizes.traits(offer.name, offer),
        azure_sizes.differences(offer),
    )
