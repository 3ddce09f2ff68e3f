"""Reading a table of `data/reference` into records; each cell is checked by the type of its field."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from diskbook.facts.errors import DiskbookError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


def read(record: type[Record], path: Path) -> Iterator[tuple[int, Record]]:
    """Read a CSV file whose columns are the fields of a dataclass.

    An empty cell is None where the field may be None, and nothing where it is a tuple; the entries of a tuple
    are separated by "|". Flags are "yes" and "no".

    Parameters
    ----------
    record
        The dataclass; its annotations are text (``from __future__ import annotations``).
    path
        The file.

    Yields
    ------
    tuple
        Line and record.

    Raises
    ------
    DiskbookError
        Where a row is not what it must be; a wrong number is worse than none.
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
