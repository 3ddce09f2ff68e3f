"""Temporary folders that Jupyter writes in, and those that killed processes have left."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from diskbook.facts.errors import DiskbookError

PREFIX = "diskbook-scratch-"
"""Begins the name of a temporary folder; the number of the process that writes there follows."""
SOCKET = "s"
"""Begins the names of a kernel's sockets; each has a hyphen and a digit besides."""
LONGEST = 103
"""Bytes of a socket's path: 107 on Linux (unix(7)), 103 on macOS."""
_RANDOM = 8  # characters that `tempfile` adds


@contextmanager
def sockets() -> Iterator[Path]:
    """Make a folder that only this user can enter, for the sockets of a kernel; it is removed at the end.

    Raises DiskbookError when the names of all temporary folders are too long for a socket.
    """
    below = len(f"//{SOCKET}-9") + _RANDOM
    room = {place: LONGEST - below - len(os.fsencode(place)) for place in places()}
    place = next((place for place in room if len(_begin(place)) <= room[place]), None)
    if place is None:
        raise DiskbookError("the names of all temporary folders are too long for a socket; shorten TMPDIR")
    with tempfile.TemporaryDirectory(prefix=_begin(place), dir=place) as name:  # of mode 0700
        yield Path(name)


def _begin(place: Path) -> str:
    """Begin of a folder's name: short where the parent process removes it, else one that is swept."""
    return "k-" if os.environ.get("JUPYTER_RUNTIME_DIR") == str(place) else f"{PREFIX}{os.getpid()}-"


def places() -> list[Path]:
    """Folders for temporary files, the preferred one first."""
    named = [tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp"]
    folders = [Path(name) for name in dict.fromkeys(named) if name]
    return [place for place in folders if place.is_dir() and os.access(place, os.W_OK | os.X_OK)]


def left() -> Iterator[Path]:
    """Find folders of this user's processes that are gone."""
    for path in sorted(path for place in places() for path in place.glob(f"{PREFIX}*-*")):
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
