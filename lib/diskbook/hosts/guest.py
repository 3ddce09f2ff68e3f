"""What a machine says of itself and of the block device below a target, and how busy its cores were.

A Linux machine is asked by one shell script that reads /sys and /proc, a Windows machine by the script
`guest` of `powershell`. What it cannot tell is left out: a disk that a tool reaches without a block device,
as fio does NBD exports, has no queue. An emulated machine has kernel and processor of the computer that
emulates it, and shares them with all others.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from diskbook.facts import linux
from diskbook.facts.errors import visible
from diskbook.hosts import shell_script
from diskbook.hosts.device import Device
from diskbook.hosts.jobs import CPU_AFTER, CPU_BEFORE
from diskbook.hosts.ssh import Connection
from diskbook.hosts.ssh_windows import WindowsConnection

WORDS = ("kernel", "cpu_model", "driver", "scheduler", "write_cache", "power_plan")
NUMBERS = (
    "fua",
    "rotational",
    "nr_requests",
    "hardware_queues",
    "wbt_lat_usec",
    "logical_block_size_bytes",
)
"""Facts that are text, and those that are numbers, by their columns in the table `guest`."""
NBD = "nbd (fio's own engine)"
LONGEST = 200  # characters of a fact; nothing that a machine says fills a ledger
_WITHOUT_QUEUE = "#"  # stands for no target: drives and exports are not paths

# One line a fact, its name first. Drivers on the way from the device up to its bus: "nvme", "sd, hv_storvsc";
# what has no device below, as loop and dm, is named as /proc/devices names its major number. Queues as the
# kernel documents them (Documentation/ABI/stable/sysfs-block); of a partition they are the whole disk's, of a
# file those of what its file system lies on.
_ASK = shell_script("guest")
_DRIVERS = 2  # the disk's own and its controller's; what lies above is the bus
_RENAMED = {"logical_block_size": "logical_block_size_bytes"}


def facts(connection: Connection, device: Device) -> dict[str, Any]:
    """Facts (`WORDS`, `NUMBERS`) a machine tells of itself and a device; DiskbookError if it is silent."""
    if isinstance(connection, WindowsConnection):
        drive = device.target.removeprefix("#").partition(":")[0]
        return of_windows(connection.guest(int(drive) if drive.isdigit() else None))
    target = _WITHOUT_QUEUE if device.engine == "nbd" else device.target
    known = parse(connection.check(_ASK.format(target=shlex.quote(target))).decode(errors="replace"))
    return {**known, "driver": NBD} if device.engine == "nbd" else known


def parse(text: str) -> dict[str, Any]:
    """Read what a Linux machine said, one line a fact; lines that are none are passed over."""
    known: dict[str, Any] = {}
    drivers: list[str] = []
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        name, value = _RENAMED.get(name, name), visible(value.strip())[:LONGEST]
        if name == "driver":
            drivers.append(value)
        elif name == "scheduler":  # "[none] mq-deadline": the one in brackets is in force
            known[name] = value.partition("[")[2].partition("]")[0] or value
        elif name in NUMBERS:
            known |= {name: int(value)} if value.isdecimal() else {}
        elif name in WORDS and value:
            known[name] = value
    if drivers:
        known["driver"] = ", ".join(dict.fromkeys(drivers[:_DRIVERS]))
    return known


# BusType of MSFT_PhysicalDisk, those that disks of Azure and of hosts have.
_BUSES = {3: "ATA", 7: "Fibre Channel", 8: "RAID", 9: "iSCSI", 10: "SAS", 11: "SATA", 16: "Storage Spaces"}
_BUSES |= {1: "SCSI", 14: "virtual", 15: "file-backed virtual", 17: "NVMe"}


def of_windows(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Read what the script `guest` of a Windows machine answered."""
    known: dict[str, Any] = {name: visible(str(answer[name]))[:LONGEST] for name in WORDS if answer.get(name)}
    if answer.get("bus_type") is not None:
        known["driver"] = _BUSES.get(int(answer["bus_type"]), f"bus type {answer['bus_type']}")
    if answer.get("write_cache_enabled") is not None:
        known["write_cache"] = "on" if answer["write_cache_enabled"] else "off"
    if answer.get("logical_sector_size"):
        known["logical_block_size_bytes"] = int(answer["logical_sector_size"])
    return known


def usage(files: Mapping[str, bytes]) -> dict[str, Any] | None:
    """Shares of a machine's time over a job, from the files that the job left; None where it left none.

    Of the first eight columns of /proc/stat (proc_stat(5): user, nice, system, idle, iowait, irq, softirq,
    steal) a core is busy in all but idle, iowait and steal; its guests' time is in user already.

    Returns `steal_pct` of all cores together, and `cores_busy_pct`, core by core.
    """
    before, after = (linux.cpu_ticks(files.get(name, b"")) for name in (CPU_BEFORE, CPU_AFTER))
    spent = {
        name: [max(0, end - start) for start, end in zip(before[name], after[name], strict=True)]
        for name in after
        if name in before
    }
    if not any(spent.get("cpu", ())):
        return None
    cores = [ticks for name, ticks in spent.items() if name != "cpu" and any(ticks)]
    return {
        "steal_pct": _share(spent["cpu"], spent["cpu"][_STEAL]),
        "cores_busy_pct": [_share(core, _busy(core)) for core in cores],
    }


_IDLE, _IOWAIT, _STEAL = 3, 4, 7


def _busy(core: list[int]) -> int:
    return sum(core) - core[_IDLE] - core[_IOWAIT] - core[_STEAL]


def _share(ticks: list[int], part: int) -> float:
    return round(100 * part / sum(ticks), 2)
