"""The run that a command works on: in a folder here, or a copy of what a store has, which is kept there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from diskbook.facts import paths


def opened(name: str) -> tuple[Any, Any]:
    """Open a run to go on with it; return it and its address, which is None for a run of this machine."""
    if paths.is_address(name):
        from diskbook.batch import stored

        return stored.working_copy(name)
    from diskbook.results import run as runs

    return runs.open_run(name), None


def kept(run: Any, place: Any, store: str | None = None) -> AbstractContextManager[None]:
    """Keep a run where it is, or in a store that is named, for the length of a with block."""
    if place is None and store is None:
        return nullcontext()
    from diskbook.batch import stored

    return stored.kept(run, place if store is None else stored.place_of(run, store))
