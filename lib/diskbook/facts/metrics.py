"""Azure Monitor's metrics that say which limit a disk or a machine is on.

Names in the REST API, and what they mean, are from Microsoft's "Supported metrics for
Microsoft.Compute/virtualMachines" (2026-07-31) and "Disk performance metrics". Where the portal shows "VM
Uncached Used Burst ..." and "VM Cached Used Burst ..." the API says Remote and Local. Consumed percentages
are of the provisioned limit, so a burst reads above 100; they come every minute, used credit every five.
"""

from dataclasses import dataclass
from datetime import timedelta

import isodate

NAMESPACE = "Microsoft.Compute/virtualMachines"
LUN = "LUN"
"""Dimension of the metrics of data disks; the machine's own have none."""
GRAINS_S = (60, 300, 900, 1800, 3600, 21600, 43200, 86400)
"""Grains that Azure serves, as it lists them where it refuses another (Azure/azure-libraries-for-net#495)."""
RESOURCES_A_CALL = 50
NAMES_A_CALL = 20


@dataclass(frozen=True)
class Metric:
    """One metric.

    - `name`: in the REST API.
    - `path`: what it is about: "disk" (one data disk, by LUN), "uncached" or "cached" (all disks of a
      machine).
    - `counts`: "iops" or "mb_s".
    - `credit`: whether it is the share of burst credit used so far, else the share of the limit consumed.
    - `limit`: column of the limit in `trials`.
    """

    name: str
    path: str
    counts: str
    credit: bool
    limit: str


def _metrics() -> tuple[Metric, ...]:
    rows = []
    for path, consumed, credit, cap in (
        ("disk", "Data Disk", "Data Disk", "cap_disk"),
        ("uncached", "VM Uncached", "VM Remote", "cap_vm"),
        ("cached", "VM Cached", "VM Local", "cap_vm_cached"),
    ):
        for counts, words, short in (("iops", "IOPS", "IO"), ("mb_s", "Bandwidth", "BPS")):
            limit = f"{cap}_{counts}"
            rows.append(Metric(f"{consumed} {words} Consumed Percentage", path, counts, False, limit))
            rows.append(Metric(f"{credit} Used Burst {short} Credits Percentage", path, counts, True, limit))
    return tuple(rows)


METRICS = _metrics()
DISK_METRICS = tuple(metric for metric in METRICS if metric.path == "disk")
MACHINE_METRICS = tuple(metric for metric in METRICS if metric.path != "disk")
BY_NAME = {metric.name.lower(): metric for metric in METRICS}


def grain_s(interval: str) -> int:
    """Read the interval of a series in seconds: 60 of "PT1M".

    Raises ValueError when it is not an ISO 8601 duration of whole seconds, at least one.
    """
    try:
        duration = isodate.parse_duration(interval)
    except (isodate.ISO8601Error, OverflowError):
        duration = None
    # Months and years, which have no fixed length, are not timedelta.
    if not isinstance(duration, timedelta) or duration < timedelta(seconds=1) or duration.microseconds:
        raise ValueError(f"'{interval}' is not a grain")
    return round(duration.total_seconds())


def interval(grain_s: int) -> str:
    """Write seconds as the interval of a series: "PT1M" of 60."""
    return str(isodate.duration_isoformat(timedelta(seconds=grain_s)))
