"""Whether runs can be written on this computer, with room for their results."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from diskbook.facts.errors import DiskbookError
from diskbook.results import run as runs

SPARE_BYTES = 10**9
"""Raw results, tables and figures of a run, and what grows beside it."""


def runs_folder() -> str:
    """Make sure that runs can be written, with some room."""
    folder = existing(runs.runs_root())
    if not os.access(folder, os.W_OK):
        raise DiskbookError(f"{folder} cannot be written: make it yours, or name another with DISKBOOK_RUNS")
    return room(folder, SPARE_BYTES, "name another folder of runs with DISKBOOK_RUNS")


def existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def room(folder: Path, needed: int, remedy: str) -> str:
    """Say how much is free in a folder; raise DiskbookError with the remedy if that is less than needed."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DiskbookError(
            f"{folder} has {free / 1e9:.1f} GB free and a run needs about {needed / 1e9:.1f}: make room, or "
            f"{remedy}"
        )
    return f"{folder}: {free / 1e9:.1f} GB free, about {needed / 1e9:.1f} needed"
