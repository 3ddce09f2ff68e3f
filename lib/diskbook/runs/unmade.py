"""Runs that were refused before they made anything: nothing of them is worth going on with."""

from __future__ import annotations

from diskbook.base.errors import DiskbookError
from diskbook.store.run import Run

ADVICE = "nothing was made, and the run is not kept: correct that and run again"
_BEFORE = {"begin", "plan", "notice", "batch", "marked"}
_HELD = ".held"  # of `session.held`: the run is kept in a store


class BrokenStageError(DiskbookError):
    """A stage was killed, or failed by a defect: what it left is needed to see why, or to go on."""


def is_unmade(run: Run) -> bool:
    """Tell whether a run, kept in no store, has created and measured nothing.

    Files and marks on own hosts count only once all of them are made.
    """
    if run.manifest["resource_groups"] or (run.folder / _HELD).exists():
        return False
    kinds = {event["event"] for event in run.ledger() if event.get("stage") != "teardown"}
    return kinds <= _BEFORE
