"""Reading of files packed with gzip, as a stream that ends when more comes out than a result can hold.

A few kilobytes of gzip can unpack to terabytes, so nothing here is unpacked without a limit.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB, MIB

WHOLE = 256 * MIB
"""Bytes of a file that is held in memory: a result, or a log of averages or histograms."""
STREAMED = 16 * GIB
"""Bytes of a log that is read piece by piece: five hundred million I/Os, an hour at 150,000 a second."""
_PIECE = MIB


class TooLargeError(DiskbookError):
    """More comes out of a file than it may hold."""


class BrokenError(DiskbookError):
    """A file is cut, damaged, or not packed; `why` says it without the file's name."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: it cannot be read ({why})")
        self.why = why


class _Limited(io.RawIOBase):
    """A stream that raises an error after a number of bytes, and one where it is broken."""

    def __init__(self, stream: Any, name: str, most: int, error: Exception) -> None:
        self._stream, self._name, self._left, self._error = stream, name, most, error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        try:
            with memoryview(buffer) as whole, whole[: self._left + 1] as part:
                count: int = self._stream.readinto(part)
        except (OSError, EOFError, zlib.error) as error:
            raise BrokenError(self._name, getattr(error, "strerror", None) or str(error)) from None
        self._left -= count
        if self._left < 0:
            raise self._error
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def opened(path: Path, name: str = "", most: int | None = None, *, packed: bool = True) -> BinaryIO:
    """Open a file for reading, which raises `TooLargeError` past a limit, and `BrokenError` where it must.

    Parameters
    ----------
    path
        The file.
    name
        How messages name it; by default by its path.
    most
        Bytes, unpacked; by default `STREAMED`.
    packed
        Whether it is packed with gzip.
    """
    most = STREAMED if most is None else most
    if not path.is_file() and path.exists():  # a pipe would wait for ever, a device never end
        raise BrokenError(name or str(path), "it is no plain file")
    stream = gzip.GzipFile(path) if packed else path.open("rb")
    size = f"{most / GIB:g} GiB" if most >= GIB else f"{most / MIB:g} MiB"
    name = name or str(path)
    why = f"{name}: more than {size}{' unpacked' * packed}, which is too large to be a result"
    return io.BufferedReader(_Limited(stream, name, most, TooLargeError(why)), _PIECE)


def read(path: Path, name: str = "", most: int | None = None, *, packed: bool = True) -> bytes:
    """Return the content of a file of at most so many bytes, by default `WHOLE`; see `opened`."""
    with opened(path, name, WHOLE if most is None else most, packed=packed) as stream:
        return stream.read()
