"""Whether the emulator plays a scenario's fleets undistorted: checked before anything is made. Pure.

Two cores play 12,000 IOPS in all so that machines of a fleet get alike (a coefficient of variation of 3 %);
at 35,000 it is 35 % (measured), and what is seen is the emulator.
"""

from diskbook.design.model import Arm, Scenario, Workload
from diskbook.facts import catalog, disk_options
from diskbook.facts.errors import UsageError
from diskbook.facts.units import MB, MS_PER_S
from diskbook_emulator.profile import DEFAULT, Profile

MOST_IOPS = 12_000


def check(profile: Profile, scenario: Scenario) -> None:
    """Refuse fleets that would do more than the emulator plays undistorted.

    Raises UsageError, naming the load, what it could do, and what to change.
    """
    for arm, load in scenario.cells:
        if load.instances == 1 or not arm.volume:
            continue
        most = most_iops(profile, scenario, arm, load)
        if most > MOST_IOPS:
            raise UsageError(
                f"workload {load.name}: {load.instances} machines on {arm.name} would do up to {most:,.0f} "
                f"IOPS under the emulator's profile '{profile.name}', of which at most {MOST_IOPS:,} are "
                f"played undistorted; plant slower drives ([drives.{scenario.site}] in a profile), or give "
                "it a rate"
            )


def most_iops(profile: Profile, scenario: Scenario, arm: Arm, load: Workload) -> float:
    """Most IOPS that a fleet can do: by its rate, its queue, the drives and the nodes; reads of one copy."""
    volume = scenario.volume_named(arm.volume)
    nodes, disk = scenario.nodes_of(volume), scenario.disk_named(volume.disk)
    planted = profile.drives.get(scenario.site)
    drive = planted or disk_options.limits(disk)
    drives = len(nodes) * disk.count
    sizes = [catalog.vm_size(scenario.machine_named(node).size) for node in nodes]
    caps = profile.caps
    bounds = [
        drives * drive.iops * caps.iops_factor,
        drives * drive.mb_s * caps.mb_s_factor * MB / load.block_size_bytes,
        sum(size.uncached_burst_iops or size.uncached_iops or 0 for size in sizes) * caps.iops_factor,
        load.outstanding * MS_PER_S / _latency_ms(profile, scenario.site, disk.sku),
    ]
    return min(bound for bound in (load.rate, *bounds) if bound)


def _latency_ms(profile: Profile, site: str, sku: str) -> float:
    """Return the shorter of the latencies of reads and writes."""
    return min(profile.latency(site or DEFAULT, sku, "none", "home", op).mean_ms for op in ("read", "write"))
