"""What of a run's folder belongs into a store: all but hidden files (locks) and its private key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from diskbook.base.errors import DiskbookError
from diskbook.remote.record import LEDGER, Entry, is_inside

RAW = "raw/"


def ledger_of(folder: Path) -> bytes:
    """Whole lines of a folder's ledger; a line that is being written is left for the next time."""
    try:
        content = (folder / LEDGER).read_bytes()
    except FileNotFoundError:
        return b""
    return content[: content.rfind(b"\n") + 1]


class Folder:
    """Reads the files of a run's folder again and again, hashing only those that have changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, tuple[tuple[int, int, int], Entry]] = {}

    def entries(self) -> dict[str, Entry]:
        """All files but the ledger.

        Raises
        ------
        DiskbookError
            When one is a link, or has a name that a store cannot have.
        """
        return dict(self._entries())

    def read(self, name: str) -> bytes:
        """Content of a file."""
        return (self.path / name).read_bytes()

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
            yield name, self._entry(name)

    def _entry(self, name: str) -> Entry:
        info = (self.path / name).stat()
        stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
        if self._known.get(name, (None,))[0] != stamp:
            self._known[name] = (stamp, Entry.of(self.read(name)))
        return self._known[name][1]
