"""The server side: a miniature Azure on loopback, with machines and disks."""

FOLDER_VARIABLE = "DISKBOOK_MACHINE_FOLDER"
"""Names the machine's folder in the environment of all that runs on an emulated machine."""
