"""The catalogue of a folder of runs, rebuilt from the runs, in few large files."""

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from diskbook.batch.catalogue import entry as entries, layout, parts, schema, stored
from diskbook.batch.stores import address
from diskbook.facts import files, paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.results import run as runs


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuild made: where the catalogue is, rows of each table, and runs that are not in it."""

    folder: Path | str
    rows: dict[str, int]
    left_out: tuple[str, ...]

    @property
    def words(self) -> str:
        listed = ", ".join(f"{self.rows[table]:,} {table}" for table in ("comparisons", "trials", "bins"))
        number = self.rows["runs"]
        return "\n".join(
            [
                *(f"left out: {line}" for line in self.left_out),
                f"catalogue of {number:,} run{'s' * (number != 1)} ({listed}): {self.folder}",
            ]
        )


def of(name: str | None = None) -> Rebuilt:
    """Make the catalogue of a folder of runs, by default this user's, or of a store again; as `rebuild`."""
    if name is not None and paths.is_address(name):
        store = address.parse(name)
        rows, left_out = stored.rebuild(store)
        return Rebuilt(str(store / layout.NAME), rows, tuple(left_out))
    return rebuild(Path(name) if name is not None else runs.runs_root())


def rebuild(folder: Path) -> Rebuilt:
    """Rebuild the catalogue of a folder of runs, from the runs, in few large files.

    Runs may join and readers read meanwhile.

    Raises UsageError when there is no such folder. Raises DiskbookError when another process does it already,
    or the catalogue cannot be written.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name one that holds runs, or a store")
    made = layout.folder_of(folder)
    with parts.writing(made):
        made.mkdir(exist_ok=True)
        busy = DiskbookError(f"another process makes the catalogue {made} again; wait for it")
        with files.locked(made / layout.LOCK, busy):
            earlier = dict(_stamped(made))
            rebuilt = _written(made, folder)
            _remove(made, earlier)
    return rebuilt


def _written(made: Path, folder: Path) -> Rebuilt:
    rows, left_out = dict.fromkeys(schema.TABLES, 0), []
    with parts.Many(made, secrets.token_hex(6)) as many:
        for manifest in sorted(folder.glob("*/manifest.json")):
            try:
                entry = entries.read(runs.Run(manifest.parent))
            except DiskbookError as error:
                left_out.append(f"{manifest.parent.name}: {error}")
                continue
            many.add(entry.scenario, entry.tables)
            for table, own in entry.tables.items():
                rows[table] += len(own)
    return Rebuilt(made, rows, tuple(left_out))


def _stamped(made: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Files of the catalogue, each with what changes when it is replaced."""
    for path in made.glob("*/*/*"):
        with contextlib.suppress(FileNotFoundError):
            info = path.lstat()
            yield path, (info.st_ino, info.st_mtime_ns)


def _remove(made: Path, earlier: Mapping[Path, tuple[int, int]]) -> None:
    """Remove files that were there before, but those of runs that have joined since."""
    for path, stamp in _stamped(made):
        if earlier.get(path) == stamp:
            path.unlink(missing_ok=True)
