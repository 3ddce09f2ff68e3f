"""`diskbook choose`: from a workload to the machine and disks that carry it, and what they cost."""
