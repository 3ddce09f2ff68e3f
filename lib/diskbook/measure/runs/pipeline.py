"""A whole run: the notebooks in order, each its own process, and the teardown, also after an error."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
from collections.abc import Iterator

from diskbook.cloud import kinds
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, Stopped
from diskbook.measure.runs import announcement, debug, notebook_process, outcome, stage, stages
from diskbook.measure.runs.outcome import Outcome
from diskbook.measure.runs.progress import Progress
from diskbook.measure.runs.refused import is_unmade, is_void
from diskbook.results import session
from diskbook.results.run import Run

__all__ = ["Outcome", "dropped_if_refused", "execute"]


@contextlib.contextmanager
def dropped_if_refused(run: Run) -> Iterator[None]:
    """Remove the folder of a run that is refused before it made anything, so that its name is free again."""
    try:
        yield
    except DiskbookError as error:
        if is_void(run, error):
            shutil.rmtree(run.folder, ignore_errors=True)
        raise


def execute(run: Run, *, keep: bool = False, scenario: str | None = None) -> Outcome:
    """Take a begun run through all its stages, or the rest of them.

    Parameters
    ----------
    run
        From `stages.begin`, or an earlier run to go on with.
    keep
        Leave machines, disks and emulator standing.
    scenario
        The scenario as the user named it: beside a file lie its notebook and its module (`companion_files`).

    Raises
    ------
    UsageError
        When the run is analysed by files beside its scenario's file, and that is not named.
    DiskbookError
        When a stage fails; what was finished is kept and nothing is left standing (unless `keep`).
    Stopped
        After SIGINT or SIGTERM, when everything is torn down.
    """
    run.check_signed()
    sources, file = stage.notebooks(run, scenario)
    planned, left = announcement.count_trials(run)
    progress = Progress(run.folder / "ledger.jsonl", planned, planned - left, announcement.stage_seconds(run))
    with session.session(run), stage.signals(), notebook_process.scratch() as scratch:
        try:
            session.record_kept(run, keep)
            if not stages.finished(run):
                # Unless kept, the emulator ends with this process, however that ends.
                kinds.of(run).start(run, owner=not keep)
            for source in sources if keep else [*sources, paths.NOTEBOOKS / "4-teardown.ipynb"]:
                stage.execute(run, source, scratch, progress, file)
        except Stopped as stop:
            stop.hint = f"; go on with '{stage.resume(run, file)}'"
            raise
        finally:
            progress.close()
            if not keep or is_unmade(run):
                _tear_down(run, sys.exc_info()[1])
        return outcome.of(run)


def _tear_down(run: Run, failure: BaseException | None) -> None:
    """Tear down whatever happened; where that fails after a failure, say both.

    What was analysed gets its report all the same. The exit status is the teardown's: 3 where a group stands.
    """
    if isinstance(failure, DiskbookError) and not isinstance(failure, Stopped):
        # Ctrl-C ends the wait, and nothing that goes wrong with it may keep machines standing.
        with contextlib.suppress(Stopped, Exception):
            debug.hold(run, failure)
    try:
        with stage.deaf():
            stages.teardown(run)
    except DiskbookError as left:
        if failure is None:
            raise
        first: object = failure
        if isinstance(failure, Stopped):  # whose own words are that nothing is left standing
            first = f"stopped by {signal.Signals(failure.number).name}"
        is_told = str(left) in str(first)  # the stage 4-teardown has failed by the same
        both = DiskbookError(str(first) if is_told else f"{first}; and the teardown failed: {left}")
        both.exit_code = left.exit_code
        if (run.folder / "comparisons.csv").is_file():
            with contextlib.suppress(DiskbookError):  # what stands matters more
                outcome.of(run)
        raise both from failure
