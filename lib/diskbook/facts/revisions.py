"""Number the manifests that this client signs for a run folder, so that an older one is noticed if put back.

The newest number of each folder lies next to the secret of this client (`client.home`). Who can only write to
run folders does not reach it. A note outlives its folder: an older manifest may be put back there later.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from diskbook.facts import client, files
from diskbook.facts.errors import DiskbookError

_PATIENCE_S = 10.0


def newest(folder: Path) -> int:
    """Newest number that was noted for a run folder; 0 where there is none."""
    with contextlib.suppress(OSError, ValueError):
        return int(_note_of(folder).read_text("ascii"))
    return 0


def note(folder: Path, number: int) -> None:
    """Take a number for the newest of a run folder, also where it is lower than the one before."""
    with _opened(folder) as file:
        _write(file, number)


@contextlib.contextmanager
def following(folder: Path, number: int) -> Iterator[int]:
    """Yield the next number for a run folder; when the with block has written the manifest, it is noted.

    Parameters
    ----------
    folder
        Locked meanwhile: of several writers the last one has the highest number.
    number
        The one that its manifest has now.

    Raises
    ------
    DiskbookError
        When another process writes this manifest for long.
    """
    with _opened(folder) as file:
        following = max(newest(folder), number) + 1
        yield following
        _write(file, following)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[IO[bytes] | None]:
    """Lock the note of a run folder; None where it cannot be written, which must keep no run from its end."""
    path, file = _note_of(folder), None
    busy = DiskbookError(f"the manifest of {folder} is being written by another process for long; try again")
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            client.home().mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            file = stack.enter_context(files.locked(path, busy, _PATIENCE_S))
        yield file


def _write(file: IO[bytes] | None, number: int) -> None:
    if file is not None:
        with contextlib.suppress(OSError):
            file.truncate(0)
            file.write(str(number).encode())
            file.flush()


def _note_of(folder: Path) -> Path:
    name = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return client.home() / "revisions" / name
