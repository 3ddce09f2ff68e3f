"""diskbook: measure Azure disks honestly."""

__version__ = "0.1.0"
