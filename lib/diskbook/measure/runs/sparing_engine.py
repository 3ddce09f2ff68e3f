"""papermill's engine, which here saves an executed notebook every second in place of twice a cell.

An analysis has eighty cells and, with its figures, a megabyte to be written. What was not saved is computed
again from the run's files; a notebook that measures keeps papermill's own way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines

NAME = "sparing"
EVERY_S = 1.0


class SparingEngine(NBClientEngine):
    """Executes as papermill does by default, and saves more seldom until the end."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: NotebookExecutionManager, kernel_name: str, **kwargs: Any
    ) -> Any:
        """Execute the cells; papermill saves before, and whatever happens also after them."""
        nb_man.save = _seldom(nb_man.save)
        try:
            return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)
        finally:
            del nb_man.save


def _seldom(save: Callable[..., None]) -> Callable[..., None]:
    """Have a notebook saved once in `EVERY_S`."""
    saved = time.monotonic()

    def saved_seldom(**kwargs: Any) -> None:
        nonlocal saved
        if time.monotonic() - saved >= EVERY_S:
            save(**kwargs)
            saved = time.monotonic()

    return saved_seldom


papermill_engines.register(NAME, SparingEngine)
