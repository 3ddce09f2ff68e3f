"""Execute one notebook by papermill in its own process (`python -m diskbook.measure.runs.execute_notebook`).

papermill is not safe in threads, and what it writes about a run that was cut short is no evidence; so each
stage is a process, and its success is what the run folder records.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from diskbook.facts import imports, paths
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import kernel_ahead, kernel_sockets

USER_ERRORS = (
    "DiskbookError",
    "UsageError",
    "UnusableError",
    "TooLargeError",
    "BrokenError",
    "MistakesError",
    "JobLost",
    "StepFailed",
    "NoRoomError",
    "StoreError",
    "UnreachableError",
    "LeaseLostError",
    "HeldError",
    "AnotherRunError",
    "AgainError",
    "EngineLostError",
    "BrokenStageError",
    "LeftStandingError",
    "NotAsStoredError",
)
"""DiskbookError and all of its kind: of what a cell raised papermill knows the name alone."""
EXIT_USER_ERROR = 3  # the last line of standard error is one sentence for the user

# By name: they take long to import as well.
_MANAGER = "diskbook.measure.runs.kernel_manager.OwnKernelManager"
_ENGINE = "diskbook.measure.runs.sparing_engine"


def main(source: str, target: str, parameters: str) -> int:
    """Execute `source` with parameters (JSON text) into `target`; return the exit status."""
    with kernel_ahead.begun(Path(source)):
        return _executed(source, target, parameters)


def _executed(source: str, target: str, parameters: str) -> int:
    # A second, which the parent, who wants a constant of this module, need not spend.
    with imports.without(*imports.SPECIAL_FORMATS, *imports.REMOTE_NOTEBOOKS):
        from papermill.exceptions import PapermillExecutionError

    _keep_files_together()
    try:
        with kernel_sockets.folder() as sockets:
            _execute(source, target, json.loads(parameters), sockets)
    except PapermillExecutionError as error:
        if error.ename in USER_ERRORS:
            print(error.evalue, file=sys.stderr)
            return EXIT_USER_ERROR
        print(error, file=sys.stderr)
        return 1
    except DiskbookError as error:
        print(error, file=sys.stderr)
        return EXIT_USER_ERROR
    except RuntimeError as error:
        if "Kernel died" not in str(error):  # nbclient's words, in DeadKernelError and before there is one
            raise
        print("its kernel died: somebody killed it, or the memory ran out", file=sys.stderr)
        return EXIT_USER_ERROR
    return 0


def _execute(source: str, target: str, parameters: dict[str, Any], sockets: Path) -> None:
    import papermill
    from traitlets.config import Config

    # A notebook of somebody's own may name neither kernel nor language; all of ours are Python.
    papermill.execute_notebook(
        source,
        target,
        parameters,
        progress_bar=False,
        kernel_name="python3",
        language="python",
        engine_name=import_module(_ENGINE).NAME if _is_analysis(source) else None,
        kernel_manager_class=_MANAGER,
        shutdown_kernel="immediate" if _is_analysis(source) else "graceful",
        config=Config(KernelManager=kernel_sockets.settings(sockets)),
    )


def _is_analysis(source: str) -> bool:
    """Whether it is a notebook of the workbook's that leaves nothing to do at its end: no machine, no file.

    A Python that has imported so much takes a second to end in good order.
    """
    return Path(source).resolve().is_relative_to(paths.NOTEBOOKS) and Path(source).stem.startswith("3-")


def _keep_files_together() -> None:
    """Have Jupyter's temporary files where the parent removes them, also when this process is killed.

    Not by TMPDIR: the kernel would look for emulators there.
    """
    runtime = os.environ.get("JUPYTER_RUNTIME_DIR")
    if runtime:
        Path(runtime).mkdir(parents=True, exist_ok=True)
        tempfile.tempdir = runtime


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
