"""Write files whole or not at all, lock them between processes, and read gzip within limits.

A few kilobytes of gzip can unpack to terabytes, so nothing here is unpacked without a limit.

It also reads TOML that users write, and tables of `data/reference`, each cell by the type of its field.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import errno
import fcntl
import gzip
import io
import math
import os
import tempfile
import time
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TypeVar

from diskbook.facts.errors import DiskbookError, UsageError, one_line
from diskbook.facts.units import GIB, MIB

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_POLL_S = 0.02


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o644) -> Iterator[Path]:
    """Write a file under another name; it takes its place when the with block ends without an error.

    - `path`: the file, new or to be replaced. Until then readers see the old one.
    - `mode`: its permissions; before that only this user can read it.

    Yields where to write, in the same folder. After an error it is removed.
    """
    with named(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        part = Path(name)
        try:
            yield part
            part.chmod(mode)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Have errors of temporary files beside a path, `.NAME` and more, name that path."""
    try:
        yield
    except OSError as error:
        if str(error.filename).startswith(str(path.with_name(f".{path.name}").absolute())):
            error.filename, error.filename2 = str(path), None
        raise


def write_atomic(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file so that it is either whole or not there, also on a full disk."""
    with replacing(path, mode) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def write_once(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file that does not exist yet, by default for this user alone.

    Raises FileExistsError when it exists; it is left as it is.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)


def appending(path: Path) -> IO[bytes]:
    """Open a file of ours to read and to append to, made when missing, but never by a link to another's.

    Raises DiskbookError when it is a link, or has a second name elsewhere (a hard link).
    """
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise DiskbookError(f"{path} is a link, so it was not written; remove it") from None
    file = os.fdopen(number, "a+b")
    if os.fstat(number).st_nlink > 1:
        file.close()
        raise DiskbookError(f"{path} is also a file elsewhere (a hard link), so it was not written; copy it")
    return file


@contextlib.contextmanager
def locked(path: Path, busy: Exception, patience_s: float = 0.0) -> Iterator[IO[bytes]]:
    """Hold the lock of a file, made when missing, against other processes.

    - `path`: the file; its content does not matter.
    - `busy`: raised when another process holds it still.
    - `patience_s`: how long to wait for that process; infinity: as long as it takes.

    Yields the open file, at its end.
    """
    with appending(path) as file:
        if not acquire(file, patience_s):
            raise busy
        yield file


def acquire(file: IO[Any] | int, patience_s: float = math.inf) -> bool:
    """Lock an open file or folder until it is closed; False when another process holds it all the time."""
    if math.isinf(patience_s):
        fcntl.flock(file, fcntl.LOCK_EX)
        return True
    deadline = time.monotonic() + patience_s
    while not _flock(file, fcntl.LOCK_EX):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file; a missing file is not locked."""
    try:
        with path.open("rb") as file:
            return not _flock(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _flock(file: IO[Any] | int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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


def open_packed(path: Path, name: str = "", most: int | None = None, *, packed: bool = True) -> BinaryIO:
    """Open a file for reading, which raises `TooLargeError` past a limit, and `BrokenError` where it must.

    - `name`: how messages name it; by default by its path.
    - `most`: bytes, unpacked; by default `STREAMED`.
    - `packed`: whether it is packed with gzip.
    """
    most = STREAMED if most is None else most
    if not path.is_file() and path.exists():  # a pipe would wait for ever, a device never end
        raise BrokenError(name or str(path), "it is not a plain file")
    stream = gzip.GzipFile(path) if packed else path.open("rb")
    size = f"{most / GIB:g} GiB" if most >= GIB else f"{most / MIB:g} MiB"
    name = name or str(path)
    why = f"{name}: more than {size}{' unpacked' * packed}, which is too large to be a result"
    return io.BufferedReader(_Limited(stream, name, most, TooLargeError(why)), _PIECE)


def read_packed(path: Path, name: str = "", most: int | None = None, *, packed: bool = True) -> bytes:
    """Return the content of a file of at most so many bytes, by default `WHOLE`; see `opened`."""
    with open_packed(path, name, WHOLE if most is None else most, packed=packed) as stream:
        return stream.read()


_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def text_of(content: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode a tool's output, with lines that end as everywhere.

    Numbers and keywords of all tools are ASCII, so only file names can suffer from a wrong guess.

    Returns the text, and flags that say what had to be assumed.
    """
    text, flags = _text_of(content)
    return text.replace("\r\n", "\n"), flags


def plain_text(files: Mapping[str, bytes], kind: str) -> str:
    """Decode what a tool wrote into a file of its trial, in UTF-8; empty where it left none."""
    return files.get(kind, b"").decode("utf-8", "replace")


def _text_of(content: bytes) -> tuple[str, tuple[str, ...]]:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decoded(content, encoding)
    if _is_wide(content):
        return _decoded(content, "utf-16-le")
    try:
        return content.decode("utf-8"), ()
    except UnicodeDecodeError:
        # Any byte is a character in this one; Cyrillic is the code page that was met with.
        return content.decode("cp1251", "replace"), (
            "not UTF-8, read as Windows-1251: file names may be wrong",
        )


def _decoded(content: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    try:
        return content.decode(encoding), ()
    except UnicodeDecodeError:
        return content.decode(encoding, "replace"), (f"damaged {encoding.upper()}: characters are missing",)


def _is_wide(content: bytes) -> bool:
    """Whether this is ASCII as UTF-16 without a mark: every second byte of the beginning is zero."""
    head = content[:64]
    return len(head) >= 8 and head[1::2].count(0) > 0.9 * len(head[1::2]) and 0 not in head[::2]


Record = TypeVar("Record", bound="DataclassInstance")


def read_table(record: type[Record], path: Path) -> Iterator[tuple[int, Record]]:
    """Read a CSV file whose columns are the fields of a dataclass.

    An empty cell is None where the field may be None, and nothing where it is a tuple; the entries of a tuple
    are separated by "|". Flags are "yes" and "no".

    Yields line and record.

    Raises DiskbookError where a row is not what it must be; a wrong number is worse than none.
    """
    from pydantic import TypeAdapter, ValidationError  # a tenth of a second, and many only import the names

    types = {field.name: str(field.type) for field in fields(record)}
    adapter = TypeAdapter(record)
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), 2):
            if row.keys() != types.keys():
                names = ", ".join(sorted(str(name) for name in row.keys() ^ types.keys()))
                raise DiskbookError(f"{path.name}, line {line}: columns missing or too many: {names}")
            try:
                yield line, adapter.validate_python({key: _cell(row[key], types[key]) for key in types})
            except ValidationError as error:
                first = error.errors()[0]
                what = f"{first['loc'][0]}: {first['msg'][0].lower()}{first['msg'][1:]}"
                raise DiskbookError(f"{path.name}, line {line}: {what}; mend the row") from None


def _cell(text: str | None, kind: str) -> Any:
    if kind.startswith("tuple"):
        return text.split("|") if text else ()
    return None if not text and kind.endswith("None") else text


MOST_TOML_BYTES = MIB
"""Bytes of such a file; the largest that come with the workbook have 20 kB."""


def read_toml(path: Path, missing: str) -> dict[str, Any]:
    """Read a TOML file.

    - `missing`: what to say where there is none.

    Raises UsageError when there is none, or it cannot be read, is too large, or is not TOML.
    """
    try:
        if path.stat().st_size > MOST_TOML_BYTES:
            raise UsageError(f"{path.name}: more than {MOST_TOML_BYTES // MIB} MiB is too large to be meant")
        return tomllib.loads(read_packed(path, most=MOST_TOML_BYTES, packed=False).decode())
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(missing) from None
    except BrokenError as error:
        raise UsageError(f"{path}: this cannot be read: {error.why}") from None
    except OSError as error:
        raise UsageError(f"{path}: this cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise UsageError(f"{path.name}: this is not valid TOML: its tables or lists are too deep") from None
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise UsageError(one_line(f"{path.name}: this is not valid TOML: {error}")) from None
