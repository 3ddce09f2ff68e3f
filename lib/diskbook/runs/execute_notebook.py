"""Execute one notebook by papermill, in a process of its own (`python -m diskbook.runs.execute_notebook`).

papermill is not safe in threads, and what it writes about a run that was cut short is no evidence; so each
stage is a process, and its success is what the run folder records.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

USER_ERRORS = ("DiskbookError", "UsageError", "UnusableError", "JobLost")
EXIT_USER_ERROR = 3  # the last line of standard error is one sentence for the user


def main(source: str, target: str, parameters: str) -> int:
    """Execute `source` with parameters (JSON text) into `target`; return the exit status."""
    import papermill  # a second, which the parent, who wants a constant of this module, need not spend
    from papermill.exceptions import PapermillExecutionError

    _keep_files_together()
    try:
        # A notebook of somebody's own may name neither kernel nor language; all of ours are Python.
        papermill.execute_notebook(
            source,
            target,
            json.loads(parameters),
            progress_bar=False,
            kernel_name="python3",
            language="python",
        )
    except PapermillExecutionError as error:
        if error.ename in USER_ERRORS:
            print(error.evalue, file=sys.stderr)
            return EXIT_USER_ERROR
        print(error, file=sys.stderr)
        return 1
    except RuntimeError as error:
        if "Kernel died" not in str(error):  # nbclient's words, in DeadKernelError and before there is one
            raise
        print("its kernel died: somebody killed it, or the memory ran out", file=sys.stderr)
        return EXIT_USER_ERROR
    return 0


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
