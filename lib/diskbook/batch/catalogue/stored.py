"""The catalogue of a store: files that each run brings with it, and a copy of them on this machine.

`STORE/.catalogue/<table>/scenario=<name>/run-<hash>-<number>.parquet` is of the state that record <number>
of the run's log has whole. Nothing is replaced: a newer state brings its own files. An entry is current
while its record is the last of the log, so readers ask for the next one.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from diskbook import __version__
from diskbook.batch.catalogue import entry as entries, layout, parts, schema
from diskbook.batch.stores import fetch, lease, record as records
from diskbook.batch.stores.address import Address
from diskbook.batch.stores.objects import Objects, open_objects
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import write_atomic
from diskbook.results.run import Run, check_fetched

MIRRORED = ("comparisons", "runs")
"""Tables that are copied; trials and bins of a run are in its folder, which `diskbook fetch` brings."""
_AT_ONCE = 16


def name_of(run: str, number: int) -> str:
    """Name of the entry of a run as a record of its log has it."""
    text = "|".join((str(schema.SCHEMA), __version__, run, str(number)))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def join(store: Address, run: Run) -> str:
    """Write a run's rows beside it in a store; say in a sentence why not, "" where it was done.

    Nothing is written where the store has another state of the run than its folder.
    """
    try:
        complete = lease.read(open_objects(store / run.name)).state.complete
        if complete is not None and _is_same(complete, run.folder):
            _write(run, complete.number, open_objects(store).create)
    except (DiskbookError, OSError) as error:
        return f"{error} (the run itself is stored; 'diskbook catalog {store}' brings it into the catalogue)"
    return ""


def rebuild(store: Address) -> tuple[dict[str, int], list[str]]:
    """Write the rows of all runs of a store that are whole; return numbers of rows, and what is left out."""
    objects, rows, left_out = open_objects(store), dict.fromkeys(schema.TABLES, 0), []
    for name in objects.folders():
        try:
            complete = lease.read(open_objects(store / name)).state.complete
            folder = fetch.cached(store / name, check_fetched)
            if complete is not None:
                for table, own in _write(Run(folder), complete.number, objects.replace).items():
                    rows[table] += own
        except DiskbookError as error:
            left_out.append(f"{name}: {error}")
    shutil.rmtree(_mirror(store), ignore_errors=True)
    return rows, left_out


def mirrored(store: Address) -> tuple[Path, list[str], dict[str, str]]:
    """Copy what is new of a store's catalogue to this machine.

    Returns a folder with the catalogue in it, names of the store's runs, and of those that are in the
    catalogue as they are now the names of their entries.

    Raises DiskbookError when the store cannot be read.
    """
    objects = open_objects(store)
    folder = _mirror(store)
    stored = _newest(objects.names(layout.NAME))
    for path in (folder / layout.NAME).glob("*/*/*.parquet"):
        if path.relative_to(folder).as_posix() not in stored:
            path.unlink(missing_ok=True)

    def copy(name: str) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / name, objects.read(name))

    missing = [name for name in stored if name.split("/")[1] in MIRRORED and not (folder / name).exists()]
    _side_by_side(copy, missing)
    runs = objects.folders()
    numbers = {Path(name).name[:36]: _number(name) for name in stored if name.split("/")[1] == "runs"}
    joined = {run: numbers[own] for run in runs if (own := layout.name_of(run)[:36]) in numbers}
    last = dict(
        zip(joined, _side_by_side(lambda run: _is_last(objects, run, joined[run]), joined), strict=True)
    )
    return folder, runs, {run: name_of(run, joined[run]) for run in joined if last[run]}


def _mirror(store: Address) -> Path:
    return paths.CACHE / "catalogues" / hashlib.sha256(str(store).encode()).hexdigest()[:16]


def _write(run: Run, number: int, put: Callable[[str, bytes], object]) -> Mapping[str, int]:
    """Put the rows of a run into its store, `runs` last; return how many there are."""
    entry = entries.of_folder(run, name_of(run.name, number))
    for table, rows in entry.tables.items():
        if len(rows):
            own = layout.name_of(run.name).removesuffix(".parquet")
            name = f"{layout.NAME}/{layout.partition(table, entry.scenario)}/{own}-{number:08}.parquet"
            put(name, parts.content(table, rows))
    return {table: len(rows) for table, rows in entry.tables.items()}


def _is_same(complete: records.Record, folder: Path) -> bool:
    """Whether a folder has what a record says, as far as the catalogue reads it."""
    return all(
        complete.files.get(name)
        == (records.Entry.of((folder / name).read_bytes()) if (folder / name).exists() else None)
        for name in entries.FILES
    )


def _newest(names: Iterable[str]) -> set[str]:
    """Of each run and table the file of its newest state."""
    newest: dict[tuple[str, str], str] = {}
    for name in sorted(names, key=_number):
        if name.endswith(".parquet") and name.count("/") == 3:
            newest[name.split("/")[1], Path(name).name[:36]] = name
    numbers = {own: _number(name) for (table, own), name in newest.items() if table == "runs"}
    return {name for (_, own), name in newest.items() if numbers.get(own) == _number(name)}


def _number(name: str) -> int:
    digits = Path(name).stem.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def _is_last(objects: Objects, run: str, number: int) -> bool:
    try:
        objects.read(f"{run}/{records.name_of(number + 1)}")
    except FileNotFoundError:
        return True
    return False


def _side_by_side(do: Callable[[str], object], names: Iterable[str]) -> list[object]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(do, names))
