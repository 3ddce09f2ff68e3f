"""How a machine lists its disks: by LUN or NVMe namespace, and its OS disk by a word."""

OS_DISK = "os"
"""What a machine's ephemeral OS disk is called, beside LUNs."""

NVME_MODEL = "MSFT NVMe Accelerator v1.0"
"""Azure's NVMe controller of managed disks; local disks have controllers of their own, of another model."""
FIRST_DATA_NAMESPACE = 2
"""Namespace of the disk at LUN 0; 1 is the OS disk (Azure/azure-vm-utils, doc/disk-identification.md)."""
