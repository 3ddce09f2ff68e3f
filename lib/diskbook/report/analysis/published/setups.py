"""Limits in force of a published set-up: what its disk and its machine were allowed, from `data/reference`.

A published figure names its disk as text ("P30", "4 x P30", "1 TiB Premium SSD", options). The limits are
those that `diskbook.facts.catalog` gives a disk or machine of a run with the same settings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from diskbook.facts import catalog

CACHED = "read/write cache"


def caps(row: Mapping[Any, Any]) -> dict[str, float]:
    """Limits of a published row under the column names of `trials`; NaN where none is known.

    Reads of a disk with host cache may be answered by the machine: neither the disk's limits nor the uncached
    ones hold for them, but the machine's cached ones. MB/s are 10^6 bytes a second.
    """
    disk, machine = disk_limits(row["disk"], row["redundancy"], row["options"]), _machine(row["vm_size"])
    own = {} if disk is None else vars(disk)
    vm = {} if machine is None else vars(machine)
    cached = {f"cap_vm_cached_{unit}": vm.get(f"cached_{unit}") for unit in ("iops", "mb_s")}
    uncached = {f"cap_disk_{name}": own.get(name) for name in ("iops", "mb_s", "burst_iops", "burst_mb_s")}
    uncached |= {
        f"cap_vm_{name}": vm.get(f"uncached_{name}") for name in ("iops", "mb_s", "burst_iops", "burst_mb_s")
    }
    in_force = {
        **(dict.fromkeys(uncached) if cached_read(row) else uncached),
        **(cached if CACHED in row["options"] else dict.fromkeys(cached)),
    }
    return {name: math.nan if value is None else float(value) for name, value in in_force.items()}


def cached_read(row: Mapping[Any, Any]) -> bool:
    """Whether the host cache may have answered: a read of a disk that has one."""
    return CACHED in row["options"] and row["write_pct"] == "0"


def disk_limits(disk: str, redundancy: str, options: str) -> catalog.DiskLimits | None:
    """Limits of a disk named in words, several of a kind added; None for a disk that is not known.

    Examples: "P30", "4 x P30 (Storage Spaces ...)", "1 TiB Premium SSD" with "bursting + performance plus",
    "1 TiB Premium SSD v2" with "8000 IOPS + 300 MB/s".
    """
    tiers = {tier.tier: tier for tier in catalog.disk_tiers()}
    named = re.match(r"(?:(\d+) x )?(P\d+)\b", disk)
    if named and named[2] in tiers:
        number, tier = int(named[1] or 1), tiers[named[2]]
        return catalog.DiskLimits(tier.tier, number * tier.iops, number * tier.mb_s)
    sized = re.match(r"(\d+) TiB Premium SSD( v2)?$", disk)
    if not sized:
        return None
    asked = re.search(r"(\d+) IOPS \+ (\d+) MB/s", options)
    return catalog.disk_limits(
        "PremiumV2_LRS" if sized[2] else f"Premium_{redundancy}",
        1024 * int(sized[1]),
        bursting="bursting" in options,
        performance_plus="performance plus" in options,
        iops=int(asked[1]) if asked else None,
        mb_s=int(asked[2]) if asked else None,
        max_shares=2 if "shared" in options else 1,
    )


def _machine(name: str) -> catalog.VmSize | None:
    return catalog.find_vm_size(name)
