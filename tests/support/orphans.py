"""Whether a program that the product starts ends when the product's process is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from diskbook_emulator.processes import is_alive
from support.emulated import soon

LIMIT_S = 10
"""The kernel ends such a program with its parent: only one that goes on takes longer."""


def ends_with_its_parent(starting: str, place: Path) -> bool:
    """Have a Python process start a program, kill that process, and tell whether the program ends too.

    Parameters
    ----------
    starting
        Statements that start `program` (a path) with its output to standard output.
    place
        Empty folder for the program.
    """
    program = place / "program"
    program.write_text("#!/bin/sh\necho $$\nexec sleep 600\n")
    program.chmod(0o700)
    code = f"import sys, time\nprogram = {str(program)!r}\n{starting}\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        try:
            parent.kill()
            parent.wait()
            return soon(lambda: not is_alive(child), LIMIT_S)
        finally:
            if is_alive(child):
                child.kill()
