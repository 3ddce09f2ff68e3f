"""Writing files of the catalogue: one run's own, or many runs' together; each is whole or not there."""

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from diskbook.batch.catalogue import layout, schema
from diskbook.batch.catalogue.entry import Entry
from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import replacing

_ROWS_OF_GROUP = 250_000
_ROWS_OF_FILE = 10_000_000
"""Rows of a file of many runs: each is a partition for Dask, so that it must fit a worker."""


def write_own(folder: Path, entry: Entry) -> None:
    """Write a run's own files, in place of those that it had; its row of `runs` last.

    Raises DiskbookError when a link is in the way, by which others' files would be written. Raises OSError
    when there is no room, or the folder cannot be written.
    """
    _check_no_link(folder)
    for table in schema.TABLES:
        own = folder / layout.partition(table, entry.scenario) / layout.name_of(entry.run)
        if len(entry.tables[table]):
            _check_no_link(own.parent.parent, own.parent)
            own.parent.mkdir(parents=True, exist_ok=True)
            with replacing(own) as part, _writer(part, table) as writer:
                writer.write_table(entry.tables[table])
        for earlier in (folder / table).glob(f"scenario=*/{own.name}"):
            if earlier != own or not len(entry.tables[table]):
                earlier.unlink(missing_ok=True)


def content(table: str, rows: pa.Table) -> bytes:
    """A run's file as bytes."""
    buffer = pa.BufferOutputStream()
    with _writer(buffer, table) as writer:
        writer.write_table(rows)
    return bytes(buffer.getvalue())


class Many:
    """Files of many runs, written as their entries come; they are there when the with block ends."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._open: dict[tuple[str, str], _Part] = {}
        self._number = 0
        self._files = ExitStack()

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Put the files in their places, `runs` last; after an error none of those that are open."""
        order = list(schema.TABLES)
        for key in sorted(self._open, key=lambda key: order.index(key[0]), reverse=True):
            self._files.push(self._open[key].__exit__)
        return self._files.__exit__(kind, error, trace)

    def add(self, scenario: str, tables: Mapping[str, pa.Table]) -> None:
        """Add rows of one run or more, all of one scenario."""
        for table, rows in tables.items():
            if not len(rows):
                continue
            part = self._open.get((table, scenario))
            if part is None or (table != "runs" and part.rows >= _ROWS_OF_FILE):
                if part is not None:
                    part.__exit__(None, None, None)
                part = self._open[table, scenario] = self._begin(table, scenario)
            part.add(rows)

    def _begin(self, table: str, scenario: str) -> "_Part":
        self._number += 1
        path = (
            self._folder
            / layout.partition(table, scenario)
            / f"{layout.MANY}{self._name}-{self._number}.parquet"
        )
        _check_no_link(self._folder, path.parent.parent, path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        return _Part(path, table)


class _Part:
    """One file of many runs: rows are gathered until they make a row group."""

    def __init__(self, path: Path, table: str) -> None:
        self.rows = 0
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._files = ExitStack()
        part = self._files.enter_context(replacing(path))
        self._writer = self._files.enter_context(_writer(part, table))

    def add(self, rows: pa.Table) -> None:
        self._waiting.append(rows)
        self._n_waiting += len(rows)
        self.rows += len(rows)
        if self._n_waiting >= _ROWS_OF_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=_ROWS_OF_GROUP)
            self._waiting, self._n_waiting = [], 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if error is None:
            self._flush()
        return self._files.__exit__(kind, error, trace)


def _writer(path: Path | pa.BufferOutputStream, table: str) -> pq.ParquetWriter:
    """Writer of a file; pages have checksums, since a damaged number would be read as another."""
    return pq.ParquetWriter(path, schema.TABLES[table], compression="zstd", write_page_checksum=True)


def _check_no_link(*folders: Path) -> None:
    for folder in folders:
        if folder.is_symlink():
            raise DiskbookError(f"{folder} is a link, so the catalogue is not written; remove it")


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Put it into one sentence when the catalogue cannot be written."""
    try:
        yield
    except OSError as error:
        raise DiskbookError(
            f"the catalogue {folder} cannot be written ({error.strerror}); mend that, then 'diskbook catalog'"
        ) from error
