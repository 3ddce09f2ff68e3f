"""A DiskSpd command line as a workload: its flags, read and written."""
