"""Files on an emulated volume: where each lies there, kept beside the volume so that it outlives a restart.

There is no file system: a file is a name and an extent of the volume. Windows' names differ in no capitals.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import locked, write_atomic
from diskbook_emulator.volumes import REGION_BYTES

_INDEX, _LOCK = "extents.json", "lock"
_BUSY = DiskbookError("the files of an emulated volume are being made by somebody else")

Extents = dict[str, "Extent"]


class NoRoomError(DiskbookError):
    """A volume has no stretch left that is long enough for a file."""


@dataclass(frozen=True)
class Extent:
    """Where a file lies on its volume, in bytes."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.offset + self.size


def read(folder: Path) -> Extents:
    """Read all files of a volume, by name in small letters."""
    index = folder / _INDEX
    rows = json.loads(index.read_text("utf-8")) if index.exists() else {}
    return {name: Extent(**row) for name, row in rows.items()}


def make(folder: Path, sizes: Mapping[str, int], room: int) -> Extents:
    """Make files of these sizes, as a tool that creates them; one that is there already stays where it is.

    - `folder`: where the volume's files are recorded.
    - `sizes`: bytes of each file by name.
    - `room`: size of the volume.

    Returns the extents of these files.

    Raises NoRoomError: the volume is too full, and all is as before.
    """
    with locked(folder / _LOCK, _BUSY, math.inf):
        extents = read(folder)
        for name, size in ((name.lower(), size) for name, size in sizes.items()):
            others = [extent for other, extent in extents.items() if other != name]
            extents[name] = _placed(extents.get(name), size, others, room)
        write_atomic(folder / _INDEX, json.dumps({name: asdict(extent) for name, extent in extents.items()}))
    return {name: extents[name.lower()] for name in sizes}


def _placed(before: Extent | None, size: int, others: list[Extent], room: int) -> Extent:
    """Keep the place of a file if it fits there, else take the first gap."""
    starts = [] if before is None else [before.offset]
    for start in (*starts, *_gaps(others)):
        wished = Extent(start, size)
        free = all(wished.end <= other.offset or other.end <= start for other in others)
        if free and wished.end <= room:
            return wished
    raise NoRoomError(f"{size} bytes fit into no gap of an emulated volume of {room} bytes")


def _gaps(others: list[Extent]) -> Iterator[int]:
    """Where a gap may begin; no two files share a region."""
    yield 0
    for other in sorted(others, key=lambda extent: extent.offset):
        yield math.ceil(other.end / REGION_BYTES) * REGION_BYTES
