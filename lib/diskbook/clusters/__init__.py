"""Machines that share disks: failover tests, and clusters of Windows nodes, volumes and their analyses."""
