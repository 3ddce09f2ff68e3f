"""The process of a run: started so that it ends in order when the one that started it does."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

PROGRAM = ("-m", "diskbook.batch.work")
"""What it is; it takes an order as JSON."""
HELD = 75  # EX_TEMPFAIL of sysexits.h
"""Status of a run that somebody else works on: it waits for that one."""
LOST = 128 + 9
"""Status of a run whose place was lost in the middle, as of a process that SIGKILL ended."""


def start(program: Sequence[str], order: str, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start it, with both streams into a file. The thread that calls has to live as long as it does."""
    command = [sys.executable, *program, order]
    if shutil.which("setpriv"):  # Linux: it tears down and ends even if this process is killed
        command = ["setpriv", "--pdeathsig", "TERM", *command]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C comes to the batch alone, which ends its runs in order
    )


def terminate(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()


def last_line(log: Path) -> str:
    """What it said last; empty where it said nothing."""
    with contextlib.suppress(OSError):
        lines = log.read_text("utf-8", errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""
    return ""
