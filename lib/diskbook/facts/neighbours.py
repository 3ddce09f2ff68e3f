"""Functions of neighbours that the core calls, by name: it imports no neighbour, and most runs need none.

One table per kind. A run that was measured here needs no reader, a run in a folder no store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

READERS = {
    "trial": "diskbook.importing.raw:read_trial",
    "limits": "diskbook.importing.named_limits:head",
}
"""Of an imported run: a trial from its raw files, and what is said of its limits."""
STORES = {
    "cached": "diskbook.batch.stores.fetch:cached",
    "left": "diskbook.batch.stores.fetch:left",
}
"""A copy of the run at an address, and the folders that killed fetches have left."""
CATALOGUE = {
    "view": "diskbook.batch.catalogue.read:view",
    "join": "diskbook.batch.catalogue.join:join_finished",
}
"""The rows of the runs of a folder or store, and a finished run's joining them."""


def find(table: Mapping[str, str], name: str) -> Callable[..., Any]:
    """Import a neighbour's function.

    Parameters
    ----------
    table, name
        One of the tables above, and a name in it.
    """
    module, _, function = table[name].partition(":")
    imported: Callable[..., Any] = getattr(import_module(module), function)
    return imported
