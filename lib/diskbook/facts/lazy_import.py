"""Objects that tables name by text, and that are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from diskbook.facts.errors import UsageError

EXTRA = ("adlfs", "dask", "distributed", "fsspec")
"""Packages of the extra `cluster` (pyproject.toml)."""


def imported(where: str, what: str) -> Any:
    """Import the object that a line of a table names, such as `diskbook.cli.run:run`, or a module.

    Each kind has one such table: commands, clouds, tools, analyses of scenarios, checks of scenarios.

    Parameters
    ----------
    where
        Module and object, with a colon between them.
    what
        What needs it, for the message: "the command batch".

    Raises
    ------
    UsageError
        If a package is missing.
    """
    module, _, name = where.partition(":")
    try:
        loaded = import_module(module)
    except ModuleNotFoundError as error:
        raise lacking(error, what) from error
    return getattr(loaded, name) if name else loaded


class LazyTable(Mapping[str, Any]):
    """A table of objects, each imported when it is first asked for.

    Parameters
    ----------
    rows
        Where each object is, by name, as for `imported`.
    kind
        What the objects are, for messages: "tool".
    """

    def __init__(self, rows: Mapping[str, str], kind: str) -> None:
        self._rows, self._kind = rows, kind

    def __getitem__(self, name: str) -> Any:
        return imported(self._rows[name], f"the {self._kind} {name}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def lacking(error: ModuleNotFoundError, what: str) -> UsageError:
    """Say which package is missing, and how to install it."""
    package = (error.name or "a package").partition(".")[0]
    how = "pip install -e '.[cluster]'" if package in EXTRA else "run 'make setup'"
    return UsageError(f"{what} needs {package}, which is not installed: {how}")
