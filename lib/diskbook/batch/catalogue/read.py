"""Reading the catalogue: pandas frames of all runs of a folder, each row as the run's folder has it now.

Of a run whose folder has changed since it joined, or that never did, the folder itself is read; one that is
gone is left out. So a frame is the same whether the catalogue is current, old, damaged or not there at all,
and only slower.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from diskbook.batch.catalogue import entry as entries, layout, schema, stored
from diskbook.batch.catalogue.entry import Entry
from diskbook.batch.stores import address, fetch
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.results import run as store_runs
from diskbook.results.run import Run, check_fetched

_PARTITIONS = ds.partitioning(pa.schema([pa.field("scenario", pa.string())]), flavor="hive")
_FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
REMEDY = "'diskbook catalog' rebuilds it"


@dataclass(frozen=True)
class View:
    """All runs of a folder: those that the catalogue has as they are now, and those whose folders are read.

    - `runs`: the folder of runs; of a store that of the copy of its catalogue.
    - `entries`: of each run that the catalogue has as it is now, the name of its entry.
    - `others`: runs that it has not, or only as they were.
    - `sources`: the same entries by what wrote them (`layout.source_of`): a run that joined again has one of
      each.
    - `note`: why the catalogue could not be read, with the remedy; empty where it could, and where there is
      none.
    - `names`: names of the runs that were asked for; None for all.
    - `store`: address of the store that the runs are in; None where they are in the folder.
    - `left_out`: runs whose folders cannot be read, and why; known once a frame was asked for.
    """

    runs: Path
    entries: Mapping[str, str]
    others: Sequence[str]
    sources: Mapping[str, Sequence[str]]
    note: str = ""
    names: Collection[str] | None = None
    store: address.Address | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    _read: dict[str, list[Entry]] = field(default_factory=dict)

    def frame(
        self, table: str, scenario: str | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Rows of a table, of one scenario or all, by run; `scenario` is the last column.

        - `table`: "runs", "comparisons", "trials" or "bins" (`schema`); bins of many runs do not fit memory:
          take `batches`.
        """
        names = [*(columns or schema.TABLES[table].names), "scenario"]
        fresh = [
            item.tables[table].append_column("scenario", pa.repeat(item.scenario, len(item.tables[table])))
            for item in self._fresh(table)
            if scenario in (None, item.scenario)
        ]
        whole = pa.concat_tables(
            [part.select(names) for part in (self.joined(table, scenario, names), *fresh)]
        )
        return whole.sort_by("run").to_pandas() if "run" in names else whole.to_pandas()

    def joined(self, table: str, scenario: str | None, columns: Sequence[str]) -> pa.Table:
        """Rows of the runs that the catalogue has as they are now, as `frame`; no run's folder is read.

        Raises DiskbookError when a file is damaged, or the catalogue was rebuilt since the view.
        """
        if self.store and table not in stored.MIRRORED:
            raise UsageError(f"{table} of a store are read from the runs: 'diskbook fetch' brings them here")
        with_entry = list(dict.fromkeys(["entry", *columns]))
        parts = [schema.TABLES[table].empty_table().append_column("scenario", pa.array([], pa.string()))]
        for source, held in self.sources.items():
            files = layout.files(layout.folder_of(self.runs), table, scenario, self.names)
            files = [path for path in files if layout.source_of(str(path)) == source]
            read = _table(self.runs, table, files, with_entry)
            parts.append(read.filter(pc.is_in(read["entry"], pa.array(held, pa.string()))))
        self._check_same()
        return pa.concat_tables([part.select(columns) for part in parts])

    def tell(self) -> "View":
        """Say on standard error why the catalogue could not be read, if so; return this view."""
        if self.note:
            print(f"diskbook: {self.note}", file=sys.stderr)
        return self

    def _check_same(self) -> None:
        """Make sure that what was read is what was looked for: a rebuild removes what it has put together."""
        files = layout.files(layout.folder_of(self.runs), "runs", None, self.names)
        if not self.sources.keys() <= {layout.source_of(str(path)) for path in files}:
            raise DiskbookError(f"the catalogue of {self.runs} was rebuilt meanwhile; try again")

    def _fresh(self, table: str) -> list[Entry]:
        """Runs that the catalogue has not as they are now, from their folders."""
        if table not in self._read:
            self._read[table] = []
            for name in self.others:
                try:
                    folder = (
                        fetch.cached(self.store / name, check_fetched) if self.store else self.runs / name
                    )
                    self._read[table].append(entries.read(Run(folder), [table]))
                except DiskbookError as error:
                    self.left_out[name] = str(error)
        return self._read[table]


def view(where: Path | str | None = None, names: Collection[str] | None = None) -> View:
    """Look which runs of a folder or store the catalogue has as they are now.

    - `where`: folder of runs, or address of a store; by default this user's folder.
    - `names`: only these runs; by default all.

    Raises UsageError when there is no such folder. Raises DiskbookError when a store cannot be read.
    """
    if paths.is_address(where):
        store = address.parse(str(where))
        folder, stored_runs, now = stored.mirrored(store)
        return _view(folder, stored_runs, now.get, None, store)
    folder = Path(where) if where is not None else store_runs.runs_root()
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name one that holds runs")
    there = names if names is not None else (path.parent.name for path in folder.glob("*/manifest.json"))
    return _view(folder, sorted(there), lambda name: entries.name_of(folder / name), names, None)


def _view(
    folder: Path,
    there: Sequence[str],
    state_of: Callable[[str], str | None],
    names: Collection[str] | None,
    store: address.Address | None,
) -> View:
    try:
        files = layout.files(layout.folder_of(folder), "runs", None, names)
        known = _table(folder, "runs", files, ["run", "entry", "__filename"])
    except DiskbookError as error:
        return View(folder, {}, there, {}, str(error), names, store)
    named = set(known["run"].to_pylist())
    now = {name: state_of(name) for name in there if name in named}
    sources: dict[str, str] = {}
    for run, entry, path in zip(*(known[name].to_pylist() for name in known.column_names), strict=True):
        if now.get(run) == entry and sources.get(run) != layout.OWN:
            sources[run] = layout.source_of(path)
    by_source: dict[str, list[str]] = {}
    for run, source in sources.items():
        by_source.setdefault(source, []).append(str(now[run]))
    current = {name: str(now[name]) for name in there if name in sources}
    others = [name for name in there if name not in current]
    return View(folder, current, others, by_source, "", names, store)


def runs(where: Path | str | None = None, scenario: str | None = None) -> pd.DataFrame:
    """All runs of a folder, a row each (`schema.RUNS` and `scenario`), oldest first.

    - `where`: folder of runs, or address of a store; by default this user's folder.
    - `scenario`: only runs of this one.
    """
    frame = view(where).frame("runs", scenario)
    return frame.sort_values(["created_utc", "run"], kind="stable", ignore_index=True)


def comparisons(where: Path | str | None = None, scenario: str | None = None) -> pd.DataFrame:
    """All comparisons of all runs of a folder, a row each and scope (`schema.COMPARISONS` and `scenario`)."""
    return view(where).frame("comparisons", scenario)


def batches(
    seen: View, table: str, scenario: str | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows of a table one batch after another, for what does not fit memory; runs that are joined alone.

    - `seen`, `table`, `scenario`, `columns`: as for `View.frame`; runs that the catalogue has not as they are
      (`View.others`) are not in it.

    Raises DiskbookError when a file is damaged or of another version of the workbook.
    """
    names = [*(columns or schema.TABLES[table].names), "scenario"]
    files = layout.files(layout.folder_of(seen.runs), table, scenario)
    for source, held in seen.sources.items():
        own = _dataset(seen.runs, table, [path for path in files if layout.source_of(str(path)) == source])
        is_current = pc.field("entry").isin(pa.array(held, pa.string()))
        try:
            yield from own.to_batches(columns=names, filter=is_current)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(seen.runs, error) from None


def _table(folder: Path, table: str, files: Sequence[Path], columns: Sequence[str]) -> pa.Table:
    """Rows of files, as they have them."""
    try:
        return _dataset(folder, table, files).to_table(columns=list(columns))
    except (pa.ArrowException, OSError) as error:
        raise _damaged(folder, error) from None


def _dataset(folder: Path, table: str, files: Sequence[Path]) -> ds.Dataset:
    base = layout.folder_of(folder) / table
    kind = schema.TABLES[table].append(pa.field("scenario", pa.string()))
    try:
        read = ds.dataset(
            [str(path) for path in files],
            kind,
            _FORMAT,
            partitioning=_PARTITIONS,
            partition_base_dir=str(base),
        )
        for fragment in read.get_fragments():
            number = schema.number_of(fragment.physical_schema)
            if number != schema.SCHEMA:
                raise DiskbookError(
                    f"{fragment.path} has schema {number} of the catalogue, this version reads "
                    f"{schema.SCHEMA}; {REMEDY}"
                )
    except (pa.ArrowException, OSError) as error:
        raise _damaged(folder, error) from None
    return read


def _damaged(folder: Path, error: Exception) -> DiskbookError:
    reason = str(error).splitlines()[0]
    return DiskbookError(f"the catalogue {layout.folder_of(folder)} is damaged ({reason}); {REMEDY}")
