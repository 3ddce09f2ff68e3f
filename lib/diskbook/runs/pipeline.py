"""A whole run: the notebooks in order, each its own process, and the teardown, whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook import load
from diskbook.analysis import beside, report as reports
from diskbook.base import paths
from diskbook.base.errors import DiskbookError, Stopped
from diskbook.catalogue import join as catalogue
from diskbook.cloud import emulator as own_emulator
from diskbook.runs import notebook_process, stages
from diskbook.runs.execute_notebook import EXIT_USER_ERROR
from diskbook.runs.progress import Progress
from diskbook.show import documents
from diskbook.store import plan as plans, session
from diskbook.store.run import Run

TEXTS = [name for name, field in documents.Judged.model_fields.items() if field.annotation is str]


@dataclass(frozen=True)
class Outcome:
    """What a run ended in: the headline, whether that is closed by the protocol, and its report."""

    run: Run
    headline: str
    report: Path
    protocol: str = ""

    @property
    def words(self) -> str:
        """Last words of a command."""
        answer = [self.headline, self.protocol] if self.protocol else [self.headline]
        return "\n".join(["", *answer, "", f"report: {self.report}"])


def document(outcome: Outcome) -> documents.Report:
    """What a run ended in, for programs."""
    table = pd.read_csv(outcome.run.folder / "comparisons.csv")
    table[TEXTS] = table[TEXTS].fillna("")
    rows = table[list(documents.Judged.model_fields)].to_dict("records")
    return documents.Report(
        run=outcome.run.name,
        provenance=outcome.run.manifest["provenance"],
        answer=outcome.headline,
        protocol=outcome.protocol,
        report=str(outcome.report),
        comparisons=[documents.Judged.model_validate(row) for row in rows],
    )


def execute(run: Run, *, keep: bool = False, scenario: str | None = None) -> Outcome:
    """Take a begun run through all its stages, or the rest of them.

    Parameters
    ----------
    run
        From `stages.begin`, or an earlier run to go on with.
    keep
        Leave machines, disks and emulator standing.
    scenario
        The scenario as the user named it: beside a file lie its notebook and its module (`beside`).

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
    sources, file = _notebooks(run, scenario)
    planned, left = _count_trials(run)
    progress = Progress(run.folder / "ledger.jsonl", planned, planned - left)
    with session.session(run), _signals(), notebook_process.scratch() as scratch:
        try:
            session.record_kept(run, keep)
            if not stages.finished(run):
                # Unless kept, the emulator ends with this process, however that ends.
                own_emulator.start(run, owner=not keep)
            for source in sources if keep else [*sources, paths.NOTEBOOKS / "4-teardown.ipynb"]:
                _stage(run, source, scratch, progress, file)
        except Stopped as stop:
            stop.hint = f"; go on with '{_resume(run, file)}'"
            raise
        finally:
            progress.close()
            if not keep:
                _tear_down(run, sys.exc_info()[1])
        return _outcome(run)


def analyse(run: Run, scenario: str | None = None) -> Outcome:
    """Execute the analysis notebook of a run, which asks no cloud, and write the report.

    Parameters
    ----------
    run, scenario
        As for `execute`; the run may be anybody's.

    Raises
    ------
    DiskbookError, Stopped
        As for `execute`.
    """
    sources, file = _notebooks(run, scenario)
    with _signals(), notebook_process.scratch() as scratch:
        _stage(run, sources[-1], scratch, Progress(run.folder / "ledger.jsonl", 0, 0), file)
        return _outcome(run)


def _tear_down(run: Run, failure: BaseException | None) -> None:
    """Tear down whatever happened; where that fails after a failure, say both."""
    try:
        with _deaf():
            stages.teardown(run)
    except DiskbookError as left:
        if failure is None:
            raise
        first: object = failure
        if isinstance(failure, Stopped):  # whose own words are that nothing is left standing
            first = f"stopped by {signal.Signals(failure.number).name}"
        raise DiskbookError(f"{first}; and the teardown failed: {left}") from failure


def _notebooks(run: Run, named: str | None) -> tuple[list[Path], Path | None]:
    """Find the notebooks up to the analysis, and the scenario's file where the user named that."""
    file = beside.check_file(run, Path(named)) if named and load.is_file(named) else None
    beside.check_recorded(run, file)
    analysis = beside.notebook(run.scenario, file)
    if file and (names := beside.names(run.scenario, file)):
        print(f"beside {file}, and run as code: {', '.join(names)}")
    return [paths.NOTEBOOKS / "1-provision.ipynb", paths.NOTEBOOKS / "2-benchmark.ipynb", analysis], file


def _resume(run: Run, file: Path | None) -> str:
    """Return the command that goes on with a run."""
    own = f"{file} " if file and beside.names(run.scenario, file) else ""
    return f"diskbook run {own}--resume {run.name}"


def _outcome(run: Run) -> Outcome:
    outcome = Outcome(run, reports.headline(run), reports.build(run), reports.protocol(run))
    if why := catalogue.join_finished(run):
        print(f"diskbook: {why}", file=sys.stderr)
    return outcome


def _count_trials(run: Run) -> tuple[int, int]:
    """How many trials are planned, and how many of them lie in blocks that are not complete."""
    blocks = plans.blocks_of(run)
    left = [block for origin in stages.origins(run.scenario) for block in plans.remaining(run, origin)]
    return sum(len(block.trials) for block in blocks), sum(len(block.trials) for block in left)


def _stage(run: Run, source: Path, scratch: Path, progress: Progress, file: Path | None) -> None:
    """Execute one notebook and show its progress."""
    name, started = source.stem, time.monotonic()
    progress.say(f"{name} ...")
    parameters = {"run": os.path.relpath(run.folder, paths.ROOT)}
    log = scratch / f"{name}.log"
    with log.open("wb") as output:
        child = notebook_process.spawn(
            source, scratch / source.name, parameters, scratch, output, {beside.VARIABLE: str(file or "")}
        )
        try:
            while child.poll() is None:
                progress.follow()
                time.sleep(0.1)
        finally:
            notebook_process.end(child)
            progress.follow()
            progress.close()
            with contextlib.suppress(DiskbookError):  # why the stage ended matters more
                _keep_executed(run, scratch / source.name)
    if child.returncode != 0:
        raise _failure(run, name, child.returncode, log.read_text(errors="replace"), _resume(run, file))
    _keep_executed(run, scratch / source.name)
    progress.say(f"{name} done in {time.monotonic() - started:.0f} s")


def _keep_executed(run: Run, executed: Path) -> None:
    """Put an executed notebook, also one that was cut short, into the run folder, whole."""
    if executed.exists():
        (run.folder / "notebooks").mkdir(exist_ok=True)
        run.write(f"notebooks/{executed.name}", executed.read_bytes())


def _failure(run: Run, name: str, status: int, log: str, resume: str) -> DiskbookError:
    """Put a failed stage into one sentence; a defect of ours keeps its traceback in the run folder."""
    lines = [line for line in log.strip().splitlines() if line.strip()]
    again = f"finished trials are kept; go on with '{resume}'"
    if status == EXIT_USER_ERROR and lines:
        return DiskbookError(f"{name} stopped: {lines[-1].strip()} ({again})")
    if status < 0:
        return DiskbookError(f"{name} was killed by {signal.Signals(-status).name} ({again})")
    run.write(f"notebooks/{name}.log", log)
    kept = run.folder / "notebooks" / f"{name}.log"
    return DiskbookError(f"{name} ended with status {status}; its output is in {kept} ({again})")


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into `Stopped`, also where a script started us with SIGINT ignored."""

    def stop(number: int, frame: Any) -> None:
        raise Stopped(number)

    with _handled_by(stop):
        yield


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Let nothing interrupt the teardown; a second Ctrl-C is told so."""

    def wait(number: int, frame: Any) -> None:
        print("tearing down; this takes a moment", file=sys.stderr)

    with _handled_by(wait):
        yield


@contextlib.contextmanager
def _handled_by(handler: Callable[[int, Any], None]) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
