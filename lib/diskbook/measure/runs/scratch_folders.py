"""Temporary folders that Jupyter writes in, and those that killed processes have left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from diskbook.measure.runs import kernel_sockets

PREFIX = kernel_sockets.SCRATCH


def left() -> Iterator[Path]:
    """Find folders of this user's processes that are gone."""
    for path in sorted(path for place in kernel_sockets.places() for path in place.glob(f"{PREFIX}*-*")):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        try:
            ours = path.lstat().st_uid == os.getuid()
        except OSError:  # somebody removed it meanwhile
            continue
        if pid.isdigit() and not psutil.pid_exists(int(pid)) and ours:
            yield path


def clear() -> None:
    """Remove what killed processes have left."""
    for path in left():
        shutil.rmtree(path, ignore_errors=True)
