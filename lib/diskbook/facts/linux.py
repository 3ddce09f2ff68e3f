"""How a Linux machine names its disks, and how busy its cores were.

Disks are named by LUN or NVMe namespace. Core times are those of /proc/stat (proc_stat(5)).
"""

OS_DISK = "os"
"""What a machine's ephemeral OS disk is called, beside LUNs."""

NVME_MODEL = "MSFT NVMe Accelerator v1.0"
"""Azure's NVMe controller of managed disks; local disks have controllers of their own, of another model."""
FIRST_DATA_NAMESPACE = 2
"""Namespace of the disk at LUN 0; 1 is the OS disk (Azure/azure-vm-utils, doc/disk-identification.md)."""


_COLUMNS = 8


def cpu_ticks(content: bytes) -> dict[str, list[int]]:
    """First columns of the lines "cpu", "cpu0" and so on of /proc/stat."""
    rows = [line.split() for line in content.decode(errors="replace").splitlines()]
    return {
        row[0]: [int(word) for word in row[1 : _COLUMNS + 1]]
        for row in rows
        if len(row) > _COLUMNS and row[0].startswith("cpu") and all(word.isdecimal() for word in row[1:])
    }
