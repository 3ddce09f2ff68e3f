"""Runs that were refused before they created anything. There is nothing to resume."""

import contextlib

from diskbook.cloud import kinds
from diskbook.facts import files
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import stage
from diskbook.results import session
from diskbook.results.run import Run

ADVICE = "nothing was made, and the run is not kept: correct that and run again"
_BEFORE = {"begin", "plan", "notice", "batch", "marked"}


class BrokenStageError(DiskbookError):
    """A stage was killed, or failed by a defect: what it left is needed to see why, or to go on."""


def is_unmade(run: Run) -> bool:
    """Tell whether a run has created and measured nothing, and none that was killed kept it in a store.

    Files and marks on own hosts count only once all of them are made.
    """
    held = run.folder / session.HELD
    if run.manifest["resource_groups"] or (held.exists() and not files.is_locked(held)):
        return False
    kinds = {event["event"] for event in run.ledger() if event.get("stage") != "teardown"}
    return kinds <= _BEFORE


def is_void(run: Run, error: BaseException) -> bool:
    """Tell whether a run that ends with an error was refused before it made anything, and nothing uses it."""
    if not isinstance(error, DiskbookError) or isinstance(error, BrokenStageError):
        return False
    with contextlib.suppress(DiskbookError, OSError):
        in_use = (run.folder / session.HELD).exists() or session.is_worked_on(run)
        stands = stage.standing(run.manifest) or kinds.of(run).is_there(run)
        return is_unmade(run) and run.is_signed and not (in_use or stands)
    return False
