"""What programs on an emulated machine find in their environment."""

FOLDER_VARIABLE = "DISKBOOK_MACHINE_FOLDER"
"""Names the machine's folder, for all that runs on it."""
