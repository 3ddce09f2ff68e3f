"""A whole run: the notebooks in order, each its own process, and the teardown, whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from diskbook.analysis import report as reports
from diskbook.base import paths
from diskbook.base.errors import DiskbookError, Stopped
from diskbook.cloud import emulator as own_emulator
from diskbook.runs import leftovers, stages
from diskbook.runs.execute_notebook import EXIT_USER_ERROR
from diskbook.runs.progress import Progress
from diskbook.scenario import schedule
from diskbook.store import session
from diskbook.store.run import Run


@dataclass(frozen=True)
class Outcome:
    """What a run ended in: the headline, and where the report lies."""

    folder: Run
    headline: str
    report: Path


def execute(folder: Run, *, keep: bool = False) -> Outcome:
    """Take a begun run through all its stages, or the rest of them.

    Parameters
    ----------
    folder
        From `stages.begin`, or an earlier run to go on with.
    keep
        Leave machines, disks and emulator standing.

    Raises
    ------
    DiskbookError
        When a stage fails; what was finished is kept and nothing is left standing (unless `keep`).
    Stopped
        After SIGINT or SIGTERM, when everything is torn down.
    """
    scenario = folder.scenario
    planned, left = _count_trials(folder)
    progress = Progress(folder.folder / "ledger.jsonl", planned, planned - left)
    with session.session(folder), _signals(), _scratch() as scratch:
        try:
            session.record_kept(folder, keep)
            if not stages.finished(folder):
                # Unless kept, the emulator ends with this process, however that ends.
                own_emulator.start(folder, owner=not keep)
            for name in ("1-provision", "2-benchmark", scenario.analysis_notebook):
                _stage(folder, name, scratch, progress)
            if not keep:
                _stage(folder, "4-teardown", scratch, progress)
        except Stopped as stop:
            stop.hint = f"; go on with 'diskbook run --resume {folder.name}'"
            raise
        finally:
            progress.close()
            if not keep:
                with _deaf():
                    stages.teardown(folder)
        return _outcome(folder)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Make a folder for what Jupyter writes about; those that killed runs have left go as well."""
    leftovers.clear_scratch()
    with tempfile.TemporaryDirectory(prefix=f"{leftovers.SCRATCH}{os.getpid()}-") as name:
        yield Path(name)


def _outcome(folder: Run) -> Outcome:
    return Outcome(folder, reports.headline(folder), reports.build(folder))


def _count_trials(folder: Run) -> tuple[int, int]:
    """How many trials are planned, and how many of them lie in blocks that are not complete."""
    scenario = folder.scenario
    blocks = schedule.plan(scenario)
    left = [
        block for origin in stages.origins(scenario) for block in stages.remaining(folder, scenario, origin)
    ]
    return sum(len(block.trials) for block in blocks), sum(len(block.trials) for block in left)


def _stage(folder: Run, name: str, scratch: Path, progress: Progress) -> None:
    """Execute one notebook and show its progress."""
    started = time.monotonic()
    progress.say(f"{name} ...")
    parameters = {"run": os.path.relpath(folder.folder, paths.ROOT)}
    log = scratch / f"{name}.log"
    with log.open("wb") as output:
        child = _spawn(folder, name, parameters, scratch, output)
        try:
            while child.poll() is None:
                progress.follow()
                time.sleep(0.1)
        finally:
            _end(child)
            progress.follow()
            progress.close()
    if child.returncode != 0:
        raise _failure(folder, name, child.returncode, log.read_text(errors="replace"))
    progress.say(f"{name} done in {time.monotonic() - started:.0f} s")


def _spawn(
    folder: Run, name: str, parameters: Mapping[str, Any], scratch: Path, output: Any
) -> subprocess.Popen[bytes]:
    executed = folder.folder / "notebooks" / f"{name}.ipynb"
    executed.parent.mkdir(exist_ok=True)
    source = os.path.relpath(paths.NOTEBOOKS / f"{name}.ipynb", paths.ROOT)
    target = os.path.relpath(executed, paths.ROOT)
    command = [sys.executable, "-m", "diskbook.runs.execute_notebook", source, target, json.dumps(parameters)]
    if shutil.which("setpriv"):  # Linux: the stage ends with this process even if that is killed
        command = ["setpriv", "--pdeathsig", "KILL", *command]
    # The user's own IPython settings must not change a run, nor the run leave files there.
    own = {name: str(scratch / name.lower()) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    return subprocess.Popen(
        command,
        cwd=paths.ROOT,
        env={**os.environ, **own, "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a stage's process and its kernel, where they still run. A kernel without its parent ends itself."""
    if child.poll() is not None:
        return
    process = psutil.Process(child.pid)
    family = [*process.children(recursive=True), process]
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(family, timeout=10)
    child.wait()


def _failure(folder: Run, name: str, status: int, log: str) -> DiskbookError:
    """Put a failed stage into one sentence; a defect of ours keeps its traceback in the run folder."""
    lines = [line for line in log.strip().splitlines() if line.strip()]
    again = f"finished trials are kept; go on with 'diskbook run --resume {folder.name}'"
    if status == EXIT_USER_ERROR and lines:
        return DiskbookError(f"{name} stopped: {lines[-1].strip()} ({again})")
    if status < 0:
        return DiskbookError(f"{name} was killed by {signal.Signals(-status).name} ({again})")
    folder.write(f"notebooks/{name}.log", log)
    kept = folder.folder / "notebooks" / f"{name}.log"
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
