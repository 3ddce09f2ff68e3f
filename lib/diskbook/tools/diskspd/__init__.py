"""DiskSpd: the command for a workload, and parsers of its XML and text."""
