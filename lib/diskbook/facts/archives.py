"""Zip archives and lists of files, which may be of a stranger: harmless names, and how much comes out.

The same files give the same archive: their order is that of their names, and their dates are fixed.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath, PureWindowsPath

from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.units import MIB

MAGIC = b"PK\x03\x04"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENTRY = b"PK\x01\x02"  # each file has one in the archive's list
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError),
    NotImplementedError,
)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
_LONGEST_PATH, _LONGEST_NAME, _DEEPEST = 1024, 200, 16
"""Bytes of a file's path and of each part, and number of parts; the longest name of a file system is 255."""


class ArchiveError(DiskbookError):
    """An archive is damaged, too large, or holds what it must not; `why` says it without its name."""

    def __init__(self, source: str, why: str) -> None:
        super().__init__(f"{source}: {why}")
        self.why = why


def pack(files: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Make an archive of files; the same ones give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, method)
    return stream.getvalue()


def names(content: bytes, most_bytes: int, most_files: int) -> list[str]:
    """List the files of an archive; an archive that is damaged or too large has none."""
    try:
        _check_size(content, "", most_bytes, most_files)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.namelist()
    except (ArchiveError, *_BROKEN):
        return []


def unpack(
    content: bytes,
    source: str,
    *,
    most_bytes: int,
    most_files: int,
    most_of_file: int,
    check_name: Callable[[str], bool],
) -> dict[str, bytes]:
    """Unpack plain files into memory: none twice, and all together no larger than a bound.

    - `source`: its name, for messages.
    - `most_bytes`, `most_files`, `most_of_file`: bytes of the archive, packed and unpacked; files in it;
      bytes of each.
    - `check_name`: whether a file may have such a name.

    Raises ArchiveError when it breaks a bound, is damaged, or holds a link, a path that leads elsewhere or a
    file twice.
    """
    if not content.startswith(MAGIC):
        raise ArchiveError(source, "this is not a zip archive")
    _check_size(content, source, most_bytes, most_files)
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            left = most_bytes
            for entry in archive.infolist():
                _check_entry(entry, files, source, check_name)
                files[entry.filename] = _unpacked(archive, entry, min(left, most_of_file), source)
                left -= len(files[entry.filename])
    except _BROKEN as error:
        raise ArchiveError(source, f"the archive is damaged ({visible(str(error))})") from None
    return files


def is_plain_name(name: str) -> bool:
    """Whether a name has no folder in it."""
    return PurePosixPath(name).name == name and PureWindowsPath(name).name == name and ".." not in name


def is_inside(path: str) -> bool:
    """Whether a path names a file that a run may have: within its folder, not hidden, and no key."""
    if len(path.encode("utf-8", "replace")) > _LONGEST_PATH or path.count("/") >= _DEEPEST:
        return False
    parts = PurePosixPath(path).parts
    if any(len(part.encode("utf-8", "replace")) > _LONGEST_NAME for part in parts):
        return False
    plain = path.isprintable() and "\\" not in path and "//" not in path and str(PurePosixPath(path)) == path
    hidden = any(part[0] == "." for part in parts)
    return bool(parts) and plain and not hidden and parts[0] not in ("/", "keys")


def check_tree(paths: Iterable[str], where: object) -> None:
    """Raise DiskbookError where one path is of a file and of a folder that holds another."""
    listed = set(paths)
    for path in sorted(listed):
        for folder in map(str, PurePosixPath(path).parents):
            if folder in listed:
                raise DiskbookError(f"{where} names {folder!r} as a file and as a folder; restore it")


def _check_size(content: bytes, source: str, most_bytes: int, most_files: int) -> None:
    """Hold an archive against its bounds before its list is read, each entry of which takes memory."""
    if len(content) > most_bytes:
        raise ArchiveError(source, f"more than {most_bytes // MIB} MiB, which is too large to be a result")
    if content.count(_ENTRY) > most_files:
        raise ArchiveError(source, f"there are more than {most_files:,} files in it")


def _check_entry(
    entry: zipfile.ZipInfo, files: Mapping[str, bytes], source: str, check_name: Callable[[str], bool]
) -> None:
    shown = visible(entry.filename)[:100]
    if not check_name(entry.filename):
        raise ArchiveError(source, f"it names a path, {shown}, where none of its files may lie")
    if entry.filename in files:
        raise ArchiveError(source, f"{shown} is in it twice")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise ArchiveError(source, f"{shown} is a link or a folder, and no file")
    if entry.flag_bits & 1:
        raise ArchiveError(source, f"{shown} is encrypted")
    if entry.compress_type not in _METHODS:
        raise ArchiveError(source, f"{shown} is packed in another way than deflate")


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int, source: str) -> bytes:
    """Unpack a file, and no more of it than it may hold, whatever size it claims."""
    with archive.open(entry) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        shown = visible(entry.filename)[:100]
        raise ArchiveError(source, f"{shown} unpacks to more than {most / MIB:.3g} MiB, unlike any result")
    return content
