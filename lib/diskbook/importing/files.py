"""The files below some paths, and what each of them is: a result, a log, or nothing that can be used."""

import contextlib
import hashlib
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from diskbook.facts import files
from diskbook.facts.errors import DiskbookError, UsageError, visible
from diskbook.importing import formats
from diskbook.importing.fio import log_histogram, logs_of_a_job as job_logs
from diskbook.importing.fio.logs_of_a_job import LogFile
from diskbook.importing.layout import middles, natural
from diskbook.tools.record import Parsed, UnusableError

_HEAD_BYTES = 100_000


@dataclass(frozen=True)
class Source:
    """A file, and the path named by the user that it was found by."""

    path: Path
    root: Path
    label: str = ""
    changed_ns: int = field(default=0, compare=False)
    """When it was last written to, as it was found; 0 where nobody looked."""

    def was_changed(self) -> bool:
        """Whether it was written to since it was found."""
        return bool(self.changed_ns) and self.path.stat().st_mtime_ns != self.changed_ns

    @cached_property
    def named(self) -> bool:
        """Whether the user named this very file."""
        return self.path == self.root

    @cached_property
    def place(self) -> tuple[str, ...]:
        """What tells the user's paths apart, where they named several, and the folders below the path."""
        below = () if self.named else self.path.relative_to(self.root).parts[:-1]
        return (self.label, *below) if self.label else below

    @property
    def stem(self) -> str:
        """Name of the file without its endings."""
        return self.name.rsplit(".", 1)[0]

    @cached_property
    def shown(self) -> str:
        """Name in messages: below the path that the user named, or as named."""
        return visible(str(self.path.relative_to(self.root)) if not self.named else self.path.name)

    @property
    def name(self) -> str:
        """Name of the file, without .gz."""
        return self.path.name.removesuffix(".gz")

    def open(self, most: int | None = None) -> BinaryIO:
        """Open it for reading, unpacked where it is packed with gzip, and up to so many bytes.

        Raises UnusableError when it cannot be opened; reading raises the errors of `files.open_packed`.
        """
        with _readable(self):
            return files.open_packed(self.path, self.shown, most, packed=self.path.suffix == ".gz")

    def read(self) -> bytes:
        """Return its content.

        Raises DiskbookError when it cannot be read, or is too large to be a result.
        """
        with self.open(files.WHOLE) as stream:
            return stream.read()


@contextlib.contextmanager
def _readable(source: Source) -> Iterator[None]:
    """Raise UnusableError with one sentence when a file cannot be read."""
    try:
        yield
    except OSError as error:
        raise UnusableError(source.shown, f"it cannot be read ({error.strerror or error})") from None


@dataclass
class Sorted:
    """All files by what they are; `seen` holds what was read already, by its hash.

    `results` with what was read from them, `logs` by (folder, prefix) and kind, `refused` in a sentence each.
    """

    results: list[tuple[Source, Parsed]] = field(default_factory=list)
    logs: dict[tuple[Path, str], dict[str, list[Source]]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    seen: dict[bytes, str] = field(default_factory=dict)


def walk(paths: Iterable[str | Path]) -> tuple[list[Source], list[str]]:
    """All files below the paths, in order of their names, and a sentence for each thing that is left out.

    Raises UsageError when a path does not exist.
    """
    roots = [Path(text) for text in paths]
    labels = _labels(roots)
    refused: list[str] = []
    sources: dict[tuple[int, int], Source] = {}
    for root in dict.fromkeys(roots):
        if not (root.is_dir() or root.is_file()):
            raise UsageError(f"there is no file or folder {root} to import")
        below = _below(root, refused) if root.is_dir() else [root]
        for path in sorted(below, key=lambda path: natural(str(path))):  # "job.2" before "job.10"
            status = path.stat()
            source = Source(path, root, labels[root], status.st_mtime_ns)
            # A path may lie below another one, and a link may lead to a file of the same folder.
            first = sources.setdefault((status.st_dev, status.st_ino), source)
            if first is not source and first.root == root:
                refused.append(f"{source.shown}: the same file as {first.shown}: it counts once")
    return list(sources.values()), refused


def _labels(roots: list[Path]) -> dict[Path, str]:
    """What tells the paths apart: nothing for one, their names, or what differs where names are alike."""
    if len(set(roots)) == 1:
        return {roots[0]: ""}
    names = {root: root.stem if root.is_file() else root.resolve().name for root in roots}
    counts = Counter(names.values())
    differ = middles([str(root) for root, name in names.items() if counts[name] > 1])
    labels = {root: differ.get(str(root), name) for root, name in names.items()}
    counts = Counter(labels.values())
    return {root: label if counts[label] == 1 else str(root) for root, label in labels.items()}


def sort(sources: Iterable[Source], refused: Sequence[str] = ()) -> Sorted:
    """Read every file; nothing is raised for one that cannot be used. `refused` was left out before."""
    files = Sorted()
    for source in sources:
        try:
            _sort_one(source, files)
        except DiskbookError as error:
            files.refused.append(str(error))
    _drop_tables(files)
    files.refused += refused
    return files


def log_file(source: Source) -> LogFile:
    """A source as the reader of logs wants it."""
    return LogFile(source.shown, source.open)


def _sort_one(source: Source, kept: Sorted) -> None:
    named = job_logs.prefix_and_kind(source.name)
    with source.open(files.WHOLE) as stream:
        head = stream.read(_HEAD_BYTES)
        if not head.strip(b"\x00 \t\r\n"):
            raise UnusableError(source.shown, f"the {'log' if named else 'file'} is empty")
        content = b"" if formats.is_log(head) else head + stream.read()
    if content:
        digest = hashlib.sha256(content).digest()
        if digest in kept.seen:
            raise UnusableError(
                source.shown, f"the same, byte by byte, as {kept.seen[digest]}: it counts once"
            )
        kept.seen[digest] = source.shown
        kept.results.append((source, formats.parse(content, source.shown)))
        return
    if named is None:
        named = _guessed(source, head)
    prefix, kind = named
    kept.logs.setdefault((source.path.parent, prefix), {}).setdefault(kind, []).append(source)


def _guessed(source: Source, head: bytes) -> tuple[str, str]:
    """Kind of a log that is not named as fio names them: only histograms can be determined by their lines."""
    if log_histogram.is_histogram(head):
        return source.name, "clat_hist"
    raise UnusableError(
        source.shown, "a log of fio, but of what? Name it as fio does: NAME_lat.1.log, NAME_iops.1.log ..."
    )


def _drop_tables(files: Sorted) -> None:
    """VMFleet's tables are summaries of DiskSpd's XML: where that is there, they would count twice."""
    folders = [source.path.parent for source, parsed in files.results if parsed.format == "DiskSpd XML"]
    kept = []
    for source, parsed in files.results:
        beside = any(folder.is_relative_to(source.path.parent) for folder in folders)
        if parsed.format == "VMFleet table" and beside:
            files.refused.append(
                f"{source.shown}: a table made from XML files that are here too; these are read"
            )
        else:
            kept.append((source, parsed))
    files.results = kept


def _below(root: Path, refused: list[str]) -> Iterator[Path]:
    """Files below a folder; a link to a folder elsewhere is followed once, so that no walk is endless."""
    hidden: list[str] = []
    real_root = os.path.realpath(root)
    seen = {real_root}

    def shown(path: str | Path) -> str:
        return visible(os.path.relpath(path, root))

    def unreadable(error: OSError) -> None:
        refused.append(f"{shown(error.filename)}: the folder cannot be read ({error.strerror})")

    for folder, folders, names in os.walk(root, onerror=unreadable, followlinks=True):
        hidden += [shown(Path(folder) / name) for name in (*folders, *names) if name.startswith(".")]
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in [name for name in folders if (Path(folder) / name).is_symlink()]:
            real = os.path.realpath(Path(folder) / name)
            inside = os.path.commonpath((real, real_root)) in (real, real_root)
            if inside or real in seen:
                refused.append(f"{shown(Path(folder) / name)}: a link to a folder that is read without it")
                folders.remove(name)
            seen.add(real)
        for name in names:
            path = Path(folder) / name
            if path.is_file() and not name.startswith("."):
                yield path
            elif not name.startswith("."):
                kind = "a link to nothing, or to itself" if path.is_symlink() else "a pipe, socket or device"
                refused.append(f"{shown(path)}: {kind}, and no file")
    if hidden:
        more = f" and {len(hidden) - 1} more" if len(hidden) > 1 else ""
        refused.append(f"{hidden[0]}{more}: hidden files and folders are left out")


def bytes_of(stream: BinaryIO) -> Iterator[bytes]:
    """Pieces of a stream."""
    return iter(lambda: stream.read(io.DEFAULT_BUFFER_SIZE * 128), b"")
