"""Execute one notebook by papermill in its own process (`python -m diskbook.measure.runs.execute_notebook`).

papermill is not safe in threads, and what it writes about a run that was interrupted is not evidence; so
each stage is a process, and its success is what the run folder records. Jupyter writes in temporary folders;
those that killed processes have left are found here.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from diskbook.facts.errors import DiskbookError

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
    "NoAnswer",
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
    "ArchiveError",
    "UnscrubbedError",
)
"""DiskbookError and all of its kind: of what a cell raised papermill knows the name alone."""
EXIT_USER_ERROR = 3  # the last line of standard error is one sentence for the user


def main(source: str, target: str, parameters: str) -> int:
    """Execute `source` with parameters (JSON text) into `target`; return the exit status."""
    # A second, which the parent, who wants a constant of this module, need not spend.
    from papermill.exceptions import PapermillExecutionError

    _keep_files_together()
    try:
        with sockets() as folder:
            _execute(source, target, json.loads(parameters), folder)
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

    # By default a kernel listens on TCP ports of this machine, to which every user of it can connect.
    socket, file = str(sockets / SOCKET), str(sockets / "kernel.json")
    # A notebook of somebody's own may name neither kernel nor language; all of ours are Python.
    papermill.execute_notebook(
        source,
        target,
        parameters,
        progress_bar=False,
        kernel_name="python3",
        language="python",
        kernel_manager_class=_own_kernels(),
        config=Config(KernelManager={"transport": "ipc", "ip": socket, "connection_file": file}),
    )


def _own_kernels() -> type:
    """Return the class that starts kernels, always with the Python of this environment.

    jupyter_client would start what a user has installed under the name that a notebook asks for. Its kernels
    end with this process, also when that is killed.
    """
    from jupyter_client.manager import AsyncKernelManager

    class OwnKernelManager(AsyncKernelManager):
        def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
            program = [sys.executable, "-m", "diskbook.measure.runs.kernel"]
            return [*program, "-f", self.connection_file, *(extra_arguments or [])]

    return OwnKernelManager


def _keep_files_together() -> None:
    """Have Jupyter's temporary files where the parent removes them, also when this process is killed.

    Not by TMPDIR: the kernel would look for emulators there.
    """
    runtime = os.environ.get("JUPYTER_RUNTIME_DIR")
    if runtime:
        Path(runtime).mkdir(parents=True, exist_ok=True)
        tempfile.tempdir = runtime


SCRATCH_PREFIX = "diskbook-scratch-"
"""Begins the name of a temporary folder; the number of the process that writes there follows."""
SOCKET = "s"
"""Begins the names of a kernel's sockets; each has a hyphen and a digit besides."""
LONGEST = 103
"""Bytes of a socket's path: 107 on Linux (unix(7)), 103 on macOS."""
_RANDOM = 8  # characters that `tempfile` adds


@contextmanager
def sockets() -> Iterator[Path]:
    """Make a folder that only this user can enter, for the sockets of a kernel; it is removed at the end."""
    below = len(f"//{SOCKET}-9") + _RANDOM
    room = {place: LONGEST - below - len(os.fsencode(place)) for place in temporary_places()}
    place = next((place for place in room if len(_begin(place)) <= room[place]), None)
    if place is None:
        raise DiskbookError("the names of all temporary folders are too long for a socket; shorten TMPDIR")
    with tempfile.TemporaryDirectory(prefix=_begin(place), dir=place) as name:  # of mode 0700
        yield Path(name)


def _begin(place: Path) -> str:
    """Begin of a folder's name: short where the parent process removes it, else one that is swept."""
    return "k-" if os.environ.get("JUPYTER_RUNTIME_DIR") == str(place) else f"{SCRATCH_PREFIX}{os.getpid()}-"


def temporary_places() -> list[Path]:
    """Folders for temporary files, the preferred one first."""
    named = [tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp"]
    folders = [Path(name) for name in dict.fromkeys(named) if name]
    return [place for place in folders if place.is_dir() and os.access(place, os.W_OK | os.X_OK)]


def left_folders() -> Iterator[Path]:
    """Find folders of this user's processes that are gone."""
    for path in sorted(path for place in temporary_places() for path in place.glob(f"{SCRATCH_PREFIX}*-*")):
        pid = path.name.removeprefix(SCRATCH_PREFIX).partition("-")[0]
        try:
            ours = path.lstat().st_uid == os.getuid()
        except OSError:  # somebody removed it meanwhile
            continue
        if pid.isdigit() and not psutil.pid_exists(int(pid)) and ours:
            yield path


def clear_folders() -> None:
    """Remove what killed processes have left."""
    for path in left_folders():
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
