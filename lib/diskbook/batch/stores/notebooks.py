"""Notebooks in a store: papermill reads and writes them at abfs:// and file:// (entry point `papermill.io`).

What papermill writes again and again while a notebook runs is whole each time. Runs' own objects are never
written: a run comes into a store by `diskbook push`.
"""

import re
from collections.abc import Callable
from typing import TypeVar

import click

from diskbook.batch.stores import address as addresses
from diskbook.batch.stores.objects import Objects, open_objects
from diskbook.facts.errors import DiskbookError, UsageError

_Answer = TypeVar("_Answer")
_SUFFIX = ".ipynb"
_OF_A_RUN = re.compile(r"/(log|lease|files/[0-9a-f]{16})/")
"""As `record` and `lease` name them, which would cost each start of papermill an eighth of a second."""


class StoreHandler:
    """What papermill asks of a kind of place; each takes an address of ours, without a key in it."""

    @classmethod
    def read(cls, path: str) -> str:
        """Content of a notebook, or of a file of parameters."""

        def read(objects: Objects, name: str) -> str:
            try:
                return objects.read(name).decode()
            except FileNotFoundError:
                raise UsageError(f"there is nothing at {path}") from None
            except UnicodeDecodeError:
                raise UsageError(f"{path} is neither a notebook nor YAML") from None

        return _told(path, read)

    @classmethod
    def write(cls, buf: str, path: str) -> None:
        """Write a notebook, in place of an earlier one."""

        def write(objects: Objects, name: str) -> None:
            if not name.endswith(_SUFFIX) or _OF_A_RUN.search(path):
                raise UsageError(
                    f"{path} cannot be written: name a notebook (*{_SUFFIX}) beside the runs of a store"
                )
            objects.replace(name, buf.encode())

        _told(path, write)

    @classmethod
    def listdir(cls, path: str) -> list[str]:
        """What lies in a folder."""

        def names(objects: Objects, name: str) -> list[str]:
            below = {entry.removeprefix(f"{name}/").split("/")[0] for entry in objects.names(name)}
            return [f"{path.rstrip('/')}/{entry}" for entry in sorted(below)]

        return _told(path, names)

    @classmethod
    def pretty_path(cls, path: str) -> str:
        """The address, as papermill shows it: there is no key in it."""
        return path


def _told(path: str, do: Callable[[Objects, str], _Answer]) -> _Answer:
    """Do something with an object; what cannot be done ends papermill's command with one sentence."""
    try:
        place = addresses.run(path)
        return do(open_objects(place.parent), place.name)
    except DiskbookError as error:
        raise click.ClickException(str(error)) from None
