"""Machines over SSH: Azure's, emulated ones and hosts of your own."""

from pathlib import Path


def shell_script(name: str) -> str:
    """Return the shell script of that name for Linux machines, with places for `str.format`."""
    return (Path(__file__).parent / "linux_scripts" / f"{name}.sh").read_text("utf-8")
