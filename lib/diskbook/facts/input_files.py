"""Readers of TOML that users write, and of tables of `data/reference`: each cell by the type of its field."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from diskbook.facts import files
from diskbook.facts.errors import DiskbookError, UsageError, one_line
from diskbook.facts.units import MIB

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
        return tomllib.loads(files.read_packed(path, most=MOST_TOML_BYTES, packed=False).decode())
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(missing) from None
    except files.BrokenError as error:
        raise UsageError(f"{path}: this cannot be read: {error.why}") from None
    except OSError as error:
        raise UsageError(f"{path}: this cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise UsageError(f"{path.name}: this is not valid TOML: its tables or lists are too deep") from None
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise UsageError(one_line(f"{path.name}: this is not valid TOML: {error}")) from None
