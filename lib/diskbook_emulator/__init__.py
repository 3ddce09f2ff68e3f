"""The server side: a miniature Azure on loopback, with machines and disks."""

from pathlib import Path

FOLDER_VARIABLE = "DISKBOOK_MACHINE_FOLDER"
"""Names the machine's folder in the environment of all that runs on an emulated machine."""


def template(name: str) -> str:
    """Text of a script or settings file, most of them with places for `str.format`."""
    return (Path(__file__).parent / "templates" / name).read_text("utf-8")
