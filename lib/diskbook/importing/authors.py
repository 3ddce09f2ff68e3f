"""`diskbook import --dataset NAME --from FOLDER`: a public table, computed again from its authors' files.

`table` selects rows of what was published. Its figures are read again from the raw file that each row names,
by the readers of an import, and written in the form of the table, digit for digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.facts import files
from diskbook.facts.errors import DiskbookError, UsageError, unknown, visible
from diskbook.facts.quantities import many
from diskbook.facts.table_writers import csv_text
from diskbook.facts.units import GIB, MIB, MS_PER_S
from diskbook.importing import formats, public, table
from diskbook.importing.files import Source
from diskbook.importing.noise import dataset as noise
from diskbook.importing.public import Dataset
from diskbook.results import run as runs
from diskbook.tools.record import Measurement

TABLE = "table.csv"
_MOST_LINES = 12
_LAST_DIGITS = 1.01
"""Units of the last digit by which a figure may differ: authors and readers round different numbers."""


def run(dataset: str, folder: str, name: str | None) -> str:
    """Recompute the tables of a data set from its authors' files, write them, and say what came of it.

    Raises UsageError for an unknown data set, one without readable files, or a name that is taken. Raises
    DiskbookError for files that cannot be used.
    """
    if dataset == noise.NAME:
        return noise.run(folder, name)
    if dataset not in public.names():
        raise unknown("data set", dataset, [*public.names(), noise.NAME])
    known = public.load(dataset)
    if "unread" in known.source:
        raise UsageError(f"the table of {dataset} cannot be computed again: {known.source['unread']}")
    target = runs.folder_of(name or runs.new_name(dataset))
    if target.exists():
        raise UsageError(f"{visible(str(target))} exists already; choose another --name")
    made = recompute(known, Path(folder))
    try:
        target.mkdir(parents=True)
        files.write_atomic(target / TABLE, csv_text(made.table))
    except OSError as error:
        why = error.strerror or str(error)
        raise DiskbookError(f"cannot write to {visible(str(target))}: {why}; choose another --name") from None
    return f"{made.words}\nwritten: {visible(str(target / TABLE))}"


@dataclass(frozen=True)
class Recomputed:
    """A table that was computed again: how many of its rows have a file here, and which figures differ."""

    dataset: Dataset
    table: pd.DataFrame
    n_rows: int
    missing: tuple[str, ...]
    differences: tuple[str, ...]

    @property
    def words(self) -> str:
        """How much was computed again, and where the table differs."""
        computed, source = len(self.table), self.dataset.source
        more = len(self.differences) - _MOST_LINES
        lines = [
            f"{self.dataset.name}: {computed:,} of {many(self.n_rows, 'row')} computed again from files of "
            f"{source['authors']} (the table was made at commit {source['commit'][:12]})",
            *([f"not here: {self.missing[0]} and {len(self.missing) - 1} more"] if self.missing else []),
            f"{many(len(self.differences), 'figure')} of the table that comes with diskbook differ"
            f"{':' if self.differences else ' by more than the last digit'}",
            *(f"  {difference}" for difference in self.differences[:_MOST_LINES]),
            *([f"  and {more} more"] if more > 0 else []),
        ]
        return "\n".join(map(visible, lines))


def recompute(dataset: Dataset, folder: Path) -> Recomputed:
    """Compute the figures of a data set's table again from its authors' files below a folder.

    Raises UsageError when none of the files is there. Raises DiskbookError when one cannot be read, or lacks
    a row of the table.
    """
    asked, text = dataset.source["raw"], public.table_of(dataset.name, dtype=str)
    rows: list[dict[str, str]] = []
    missing: dict[str, None] = {}
    differences: list[str] = []
    read = cache(lambda name: _by_key(_published(dataset, Source(folder / name, folder)), asked["keys"]))
    for number, row in enumerate(text.to_dict("records"), 1):
        name = asked.get("file") or row[asked["file_column"]]
        if not (folder / name).is_file():
            missing[name] = None
            continue
        results = read(name).get(_key(row, asked["keys"]), [])
        if len(results) != 1:
            raise DiskbookError(
                f"{visible(str(folder / name))}: {many(len(results), 'result')} in it would be row {number} "
                f"of the table; check out commit {dataset.source['commit'][:12]}"
            )
        (made,) = results
        changed = {
            column: _as_printed(made[column], row[column], f"{name}, row {number}, {column}")
            for column in made.keys() - asked["keys"]
        }
        differences += _differing(number, changed, row)
        rows.append(row | changed)
    if not rows:
        raise UsageError(
            f"{visible(str(folder))} holds no {next(iter(missing))}: check out "
            f"{dataset.source['repository']} at {dataset.source['commit'][:12]}, and name its folder"
        )
    return Recomputed(dataset, pd.DataFrame(rows), len(text), tuple(missing), tuple(differences))


def _differing(number: int, changed: dict[str, str], row: Mapping[Any, Any]) -> list[str]:
    """Name the figures of a row that differ from those of the table."""
    return [
        f"row {number}, {column}: {value} here, {row[column]} in the table"
        for column, value in sorted(changed.items())
        if _differs(value, row[column])
    ]


def _published(dataset: Dataset, source: Source) -> Iterator[dict[str, Any]]:
    """Yield the results of one file by the columns of the data set's table."""
    columns = dataset.source["raw"].get("columns")
    if columns:
        yield from table.texts(source.read(), source.shown, tuple(columns.items()))
        return
    for measurement in formats.parse(source.read(), source.shown).measurements:
        for facts in _facts(measurement):
            yield {
                column: facts[field] * float(factor or 1) if factor else facts[field]
                for field, mapped in dataset.source["run"]["columns"].items()
                for column, _, factor in [mapped.partition("/")]
                if field in facts
            }


def _facts(measurement: Measurement) -> Iterator[dict[str, Any]]:
    """Yield what a measurement says of each direction, by the fields of `table`."""
    load, begun = measurement.load, measurement.started_utc
    for name, part in measurement.directions.items():
        yield {
            **({"started": begun.replace("000+00:00", "Z")} if begun else {}),
            "operation": name,
            "threads": load.threads,
            "block_size": load.block_size_bytes,
            "size_gib": (load.size_bytes or 0) / GIB,
            "iops": part.iops,
            "mib_s": part.bw_bytes / MIB,
            "ios": part.ios,
            "runtime_s": part.runtime_ms / MS_PER_S,
            "lat_mean_ms": part.lat_mean_ms,
            "lat_min_ms": part.lat_min_ms,
            "lat_max_ms": part.lat_max_ms,
            "lat_p95_ms": part.percentiles_ms.get(95.0, math.nan),
        }


def _by_key(
    published: Iterator[dict[str, Any]], keys: Sequence[str]
) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    by_key: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for made in published:
        by_key.setdefault(_key(made, keys), []).append(made)
    return by_key


def _key(row: Mapping[Any, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in keys)


def _as_printed(value: Any, printed: str, place: str) -> str:
    """Write a figure with as many decimals as the table has."""
    try:
        return f"{float(value):.{len(printed.partition('.')[2])}f}"
    except ValueError:
        raise DiskbookError(f"{place} is not a number: {visible(str(value))[:40]!r}") from None


def _differs(value: str, printed: str) -> bool:
    digit = 10.0 ** -len(printed.partition(".")[2])
    return not abs(float(value) - float(printed)) <= _LAST_DIGITS * digit
