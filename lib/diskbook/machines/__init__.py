"""A machine over SSH, its disks, and what is sent there to run."""
