"""Where a notebook's kernel and the process that executes the notebook meet: in a folder of this user alone.

By default they would talk by TCP ports of this machine, to which every user of it can connect.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diskbook.facts.errors import DiskbookError

SCRATCH = "diskbook-scratch-"
"""Begins the name of a temporary folder; the number of the process that writes there follows."""
_LONGEST = 103  # bytes of a socket's path: 107 on Linux (unix(7)), 103 on macOS
_RANDOM = 8  # characters that `tempfile` adds
_SOCKET = "s"  # each has a hyphen and a digit besides


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder that only this user can enter, with a name short enough; it is removed at the end.

    Raises
    ------
    DiskbookError
        When the names of all temporary folders are too long.
    """
    below = len(f"//{_SOCKET}-9") + _RANDOM
    room = {place: _LONGEST - below - len(os.fsencode(place)) for place in places()}
    place = next((place for place in room if len(_begin(place)) <= room[place]), None)
    if place is None:
        raise DiskbookError("the names of all temporary folders are too long for a socket; shorten TMPDIR")
    with tempfile.TemporaryDirectory(prefix=_begin(place), dir=place) as name:  # of mode 0700
        yield Path(name)


def _begin(place: Path) -> str:
    """Begin of a folder's name: short where the parent process removes it, else one that is swept."""
    return "k-" if os.environ.get("JUPYTER_RUNTIME_DIR") == str(place) else f"{SCRATCH}{os.getpid()}-"


def places() -> list[Path]:
    """Folders for temporary files, the preferred one first."""
    named = [tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp"]
    folders = [Path(name) for name in dict.fromkeys(named) if name]
    return [place for place in folders if place.is_dir() and os.access(place, os.W_OK | os.X_OK)]


def settings(folder: Path) -> dict[str, str]:
    """Return the settings of a kernel manager whose sockets lie in a folder."""
    return {
        "transport": "ipc",
        "ip": str(folder / _SOCKET),
        "connection_file": str(folder / "kernel.json"),
    }
