"""Documented limits of what an arm measures on a disk, and the lowest of them that lasts."""

from __future__ import annotations

from diskbook.design.model import Arm, Scenario, Workload
from diskbook.facts import catalog, disk_options
from diskbook.facts.catalog import OWN_DISK
from diskbook.facts.units import MB


def of_disk(scenario: Scenario, arm: Arm) -> dict[str, float | None]:
    """Base limits of an arm's disk and machine, as columns of trials; a disk of the user's own has none."""
    disk = scenario.disk_named(arm.disk)
    size = catalog.find_vm_size(scenario.machine_named(arm.machine).size)
    if disk.sku == OWN_DISK:
        return {}
    cached = disk.ephemeral or disk.cache != "None"
    values: dict[str, float | None] = {}
    if size is not None and cached:
        values |= {"cap_vm_cached_iops": size.cached_iops, "cap_vm_cached_mb_s": size.cached_mb_s}
    if disk.ephemeral:
        return values
    own = disk_options.limits(disk)
    values |= {"cap_disk_iops": own.iops, "cap_disk_mb_s": own.mb_s}
    if size is not None:
        values |= {"cap_vm_iops": size.uncached_iops, "cap_vm_mb_s": size.uncached_mb_s}
    return values


def lasting_iops(scenario: Scenario, arm: Arm, load: Workload) -> float:
    """Return the lowest documented limit of a cell that needs no credit, in IOPS of its block size.

    What bursts on demand lasts as long as it is paid for, so a disk's limit is then that of the burst.

    Raises
    ------
    ValueError
        With the reason in half a sentence, where no table tells it.
    """
    if arm.volume:
        raise ValueError("measures a volume, whose cap depends on its kind, its nodes and what is read")
    disk, values = scenario.disk_named(arm.disk), of_disk(scenario, arm)
    if disk.cache != "None":
        raise ValueError("has a host cache, so its cap depends on what the cache answers")
    if disk.sku == OWN_DISK:
        raise ValueError("is a disk of your own, which has no documented cap")
    own = None if disk.ephemeral else disk_options.limits(disk)
    if own is not None and disk.bursting and own.burst_iops and not own.credit_ios:
        values |= {"cap_disk_iops": own.burst_iops, "cap_disk_mb_s": own.burst_mb_s}
    size = scenario.machine_named(arm.machine).size
    whose = "cap_vm_cached" if disk.ephemeral else "cap_vm"
    if not values.get(f"{whose}_iops"):
        raise ValueError(f"is on {size}, whose cap is in no table")
    rates = [
        value * (MB / load.block_size_bytes if column.endswith("mb_s") else 1.0)
        for column, value in values.items()
        if value
    ]
    return min(rates)
