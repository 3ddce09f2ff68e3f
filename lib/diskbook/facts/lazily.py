"""Libraries that are imported when something of them is first asked for.

An emulator, and a command that only looks at a run, never make a table; pandas takes most of their start.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Lazily:
    """A library by its name, or "module:object"; whatever is asked of it is asked of that.

    A module names it where it would import the library, and imports that for the checker of types alone::

        if TYPE_CHECKING:
            import pandas as pd
        else:
            pd = Lazily("pandas")
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        module, _, member = self._name.partition(":")
        library = import_module(module)
        return getattr(getattr(library, member) if member else library, name)
