"""Whether loads that ask for a state of the disk or of its host cache can have it."""

from __future__ import annotations

from diskbook.design.model import IMPORTED, Arm, Scenario, Workload
from diskbook.facts.catalog import OWN_DISK


def check(scenario: Scenario) -> None:
    """Hold region, data and cache state of every load against what its arms measure.

    Not of imported results, which are as they are.

    Raises
    ------
    ValueError
        With one sentence on the first that cannot be had.
    """
    if scenario.scenario.article == IMPORTED:
        return
    for load in scenario.workload:
        _check_load(load)
    for arm, load in scenario.cells:
        _check_cell(scenario, arm, load)


def _check_load(load: Workload) -> None:
    where = f"[[workload]] {load.name}"
    if load.data == "compressible" and not load.write_pct:
        raise ValueError(
            f'{where}: data = "compressible", but it writes nothing; leave data out, or set write_pct'
        )
    if load.data == "compressible" and (load.verbatim is not None or load.is_fleet):
        raise ValueError(f"{where}: its line of DiskSpd says what is written (-Z); leave data out")
    if load.region == "unwritten" and load.verbatim is not None:
        raise ValueError(f"{where}: its line of DiskSpd says where it begins (-B); leave region out")
    if load.region == "unwritten" and load.cache_state != "any":
        raise ValueError(f"{where}: no cache holds what nobody wrote; leave cache_state or region out")


def _check_cell(scenario: Scenario, arm: Arm, load: Workload) -> None:
    """A place or a cache of one's own takes a disk that is attached by itself."""
    where = f"[[workload]] {load.name} on {arm.name}"
    asked = [
        f'{key} = "{value}"'
        for key, value, default in (
            ("region", load.region, "filled"),
            ("cache_state", load.cache_state, "any"),
        )
        if value != default
    ]
    if not asked:
        return
    disk = None if arm.volume else scenario.disk_named(arm.disk)
    if disk is None or disk.ephemeral or disk.sku == OWN_DISK:
        raise ValueError(
            f"{where}: {asked[0]} is for managed disks that arms measure by themselves; leave it out, or set "
            "arms to such"
        )
    if load.cache_state == "warm" and scenario.machine_named(arm.machine).os != "linux":
        raise ValueError(
            f'{where}: cache_state = "warm" is for Linux machines, where fio reads the working set'
        )
