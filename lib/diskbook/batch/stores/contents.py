"""What of a run's folder belongs into a store: all but hidden files (locks) and its private key."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from diskbook.batch.stores.record import LEDGER, Entry
from diskbook.facts.archives import is_inside
from diskbook.facts.errors import DiskbookError

RAW, MANIFEST = "raw/", "manifest.json"


def ledger_of(folder: Path) -> bytes:
    """Whole lines of a folder's ledger; a line that is being written is left for the next time."""
    try:
        content = (folder / LEDGER).read_bytes()
    except FileNotFoundError:
        return b""
    return content[: content.rfind(b"\n") + 1]


class Folder:
    """Reads the files of a run's folder again and again, hashing only those that have changed.

    Others may write to the folder meanwhile: a file is read whole, and one that has gone is left out.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, tuple[tuple[int, int, int], Entry]] = {}

    def entries(self) -> dict[str, Entry]:
        """All files but the ledger.

        Raises DiskbookError when one is a link, or has a name that a store cannot have.
        """
        return dict(self._entries())

    def moment(self) -> tuple[bytes, bytes]:
        """Return the manifest and the complete ledger lines of one moment, from which a run can resume."""
        while True:
            manifest, ledger = self.read(MANIFEST)[1], ledger_of(self.path)
            if self.read(MANIFEST)[1] == manifest:
                return manifest, ledger

    def read(self, name: str) -> tuple[Entry, bytes]:
        """Entry and content of a file as it is now; FileNotFoundError where it has gone."""
        with (self.path / name).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # what only grows is written under a lock
            stamp, content = _stamp(os.fstat(file.fileno())), file.read()
        self._known[name] = (stamp, Entry.of(content))
        return self._known[name][1], content

    def _entries(self) -> Iterator[tuple[str, Entry]]:
        for path in sorted(self.path.rglob("*")):
            name = path.relative_to(self.path).as_posix()
            if path.is_symlink():
                raise DiskbookError(f"{path} is a link, so the run is not stored; put the file in its place")
            hidden = any(part.startswith(".") for part in name.split("/")) or name.split("/")[0] == "keys"
            if hidden or name == LEDGER or not path.is_file():
                continue
            if not is_inside(name):
                raise DiskbookError(f"{str(path)!r} cannot be stored under that name; rename it")
            try:
                entry = self._entry(name)
            except FileNotFoundError:
                continue
            yield name, entry

    def _entry(self, name: str) -> Entry:
        stamp, known = self._known.get(name, (None, None))
        if known is not None and stamp == _stamp((self.path / name).stat()):
            return known
        return self.read(name)[0]


def _stamp(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_mtime_ns, info.st_size, info.st_ino
