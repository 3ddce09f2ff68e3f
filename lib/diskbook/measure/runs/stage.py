"""One stage of a run: its notebook, executed in a separate process, followed and never left behind.

Quick to import: a command starts the notebook first, and imports what it does with the result meanwhile.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from diskbook.design import scenario_file
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, Stopped
from diskbook.measure.runs import notebook_process, refused
from diskbook.measure.runs.execute_notebook import EXIT_USER_ERROR
from diskbook.measure.runs.progress import Progress
from diskbook.report.analysis import companion_files
from diskbook.results.run import Run


@contextlib.contextmanager
def analysing(run: Run, scenario: str | None = None) -> Iterator[None]:
    """Execute the analysis notebook of anybody's run, which asks no cloud, beside what is done meanwhile.

    Beside a scenario's file lie its notebook and module (`companion_files`). Raises DiskbookError when it
    fails, Stopped after SIGINT or SIGTERM.
    """
    sources, file = notebooks(run, scenario)
    progress = Progress(run.folder / "ledger.jsonl", 0, 0)
    with signals(), notebook_process.scratch() as place, executing(run, sources[-1], place, progress, file):
        yield


def notebooks(run: Run, named: str | None) -> tuple[list[Path], Path | None]:
    """Find the notebooks up to the analysis, and the scenario's file where the user named that."""
    file = companion_files.check_file(run, Path(named)) if named and scenario_file.is_file(named) else None
    companion_files.check_recorded(run, file)
    analysis = companion_files.notebook(run.scenario, file)
    if file and (names := companion_files.names(run.scenario, file)):
        print(f"beside {file}, and run as code: {', '.join(names)}")
    return [paths.NOTEBOOKS / "1-provision.ipynb", paths.NOTEBOOKS / "2-benchmark.ipynb", analysis], file


def resume(run: Run, file: Path | None) -> str:
    """Return the command that resumes a run."""
    own = f"{file} " if file and companion_files.names(run.scenario, file) else ""
    return f"diskbook run {own}--resume {run.name}"


def execute(run: Run, source: Path, place: Path, progress: Progress, file: Path | None) -> None:
    """Execute one notebook and show its progress (`executing`)."""
    with executing(run, source, place, progress, file):
        pass


@contextlib.contextmanager
def executing(run: Run, source: Path, place: Path, progress: Progress, file: Path | None) -> Iterator[None]:
    """Execute one notebook beside what is done while this is entered; then follow it to its end.

    Raises DiskbookError when it fails; what was executed is kept. Jupyter writes in `place`.
    """
    name, started = source.stem, time.monotonic()
    progress.begin(name)
    parameters = {"run": os.path.relpath(run.folder, paths.ROOT)}
    log = place / f"{name}.log"
    with log.open("wb") as output:
        child = notebook_process.spawn(
            source,
            place / source.name,
            parameters,
            place,
            output,
            {companion_files.VARIABLE: str(file or "")},
        )
        try:
            _await_begin(child, place / source.name)
            yield
            while child.poll() is None:
                progress.follow()
                time.sleep(0.1)
        finally:
            notebook_process.end(child)
            progress.follow()
            with contextlib.suppress(DiskbookError):  # why the stage ended matters more
                _keep_executed(run, place / source.name)
    if child.returncode != 0:
        raise _failure(run, name, child.returncode, log.read_text(errors="replace"), resume(run, file))
    _keep_executed(run, place / source.name)
    progress.end(name, time.monotonic() - started)


def _await_begin(child: subprocess.Popen[bytes], executed: Path) -> None:
    """Leave two processes, the stage's and its kernel's, the cores until they have something to execute."""
    while child.poll() is None and not executed.exists():
        time.sleep(0.05)


def _keep_executed(run: Run, executed: Path) -> None:
    """Put an executed notebook, also one that was cut short, into the run folder, whole."""
    if executed.exists():
        (run.folder / "notebooks").mkdir(exist_ok=True)
        run.write(f"notebooks/{executed.name}", executed.read_bytes())


def _failure(run: Run, name: str, status: int, log: str, resume: str) -> DiskbookError:
    """Put a failed stage into one sentence; a defect of ours keeps its traceback in the run folder."""
    lines = [line for line in log.strip().splitlines() if line.strip()]
    again = f"finished trials are kept; resume with '{resume}'"
    if status == EXIT_USER_ERROR and lines:
        advice = refused.ADVICE if refused.is_unmade(run) else again
        return DiskbookError(f"{name} stopped: {lines[-1].strip()} ({advice})")
    if status < 0:
        return refused.BrokenStageError(f"{name} was killed by {signal.Signals(-status).name} ({again})")
    run.write(f"notebooks/{name}.log", log)
    kept = run.folder / "notebooks" / f"{name}.log"
    return refused.BrokenStageError(f"{name} ended with status {status}; its output is in {kept} ({again})")


@contextlib.contextmanager
def signals() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into `Stopped`, also where a script started us with SIGINT ignored."""

    def stop(number: int, frame: Any) -> None:
        raise Stopped(number)

    with _handled_by(stop):
        yield


@contextlib.contextmanager
def deaf() -> Iterator[None]:
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
