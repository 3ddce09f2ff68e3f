"""A notebook executed in a separate process, which ends with this one; Jupyter leaves no files."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import write_atomic
from diskbook.measure.runs import execute_notebook
from diskbook.measure.runs.execute_notebook import EXIT_USER_ERROR
from diskbook.report.analysis import companion_files


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for what Jupyter writes about; those that killed runs have left go as well."""
    execute_notebook.clear_folders()
    with tempfile.TemporaryDirectory(prefix=f"{execute_notebook.SCRATCH_PREFIX}{os.getpid()}-") as name:
        yield Path(name)


def spawn(
    source: Path,
    target: Path,
    parameters: Mapping[str, Any],
    place: Path,
    output: Any,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Begin to execute a notebook into `target`; `place` is from `scratch`, `output` takes what it prints."""
    places = [os.path.relpath(source, paths.ROOT), str(target)]
    module = "diskbook.measure.runs.execute_notebook"
    command = [sys.executable, "-m", module, *places, json.dumps(parameters)]
    if shutil.which("setpriv"):  # Linux: it ends with this process even if that is killed
        command = ["setpriv", "--pdeathsig", "KILL", *command]
    # The user's own IPython settings must not change a run, nor the run leave files there.
    own = {name: str(place / name.lower()) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    own |= {companion_files.REPORT_LATER: "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1", **(environment or {})}
    return subprocess.Popen(
        command,
        cwd=paths.ROOT,
        env={**os.environ, **own},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def end(child: subprocess.Popen[bytes]) -> None:
    """End such a process and its kernel, where they still run. A kernel without its parent ends itself."""
    if child.poll() is not None:
        return
    process = psutil.Process(child.pid)
    family = [*process.children(recursive=True), process]
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(family, timeout=10)
    child.wait()


def execute(source: Path, target: Path, parameters: Mapping[str, Any], limit_s: float) -> None:
    """Execute a notebook that is not a stage of a run; what it shows is written whole, or not at all.

    Raises DiskbookError when it fails, or takes longer than `limit_s`; in one sentence.
    """
    with scratch() as place:
        executed, log = place / source.name, place / "log"
        with log.open("wb") as output:
            child = spawn(source, executed, parameters, place, output)
            try:
                child.wait(limit_s)
            except subprocess.TimeoutExpired:
                raise DiskbookError(f"{source.stem} was ended after {limit_s:g} s") from None
            finally:
                end(child)
        if child.returncode:
            raise DiskbookError(_why(source.stem, child.returncode, log.read_text(errors="replace")))
        write_atomic(target, executed.read_bytes())


def _why(name: str, status: int, log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if status < 0:
        return f"{name} was killed by {signal.Signals(-status).name}"
    last = lines[-1] if lines else "without a word"
    return f"{name} stopped: {last}" if status == EXIT_USER_ERROR else f"{name} failed: {last}"
