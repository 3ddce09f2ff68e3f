"""How an emulated machine lists its disks: by LUN, and its OS disk by a word."""

OS_DISK = "os"
"""What a machine's ephemeral OS disk is called, beside LUNs."""
