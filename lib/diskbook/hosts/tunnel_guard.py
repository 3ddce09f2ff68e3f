"""Runs a command until its own standard input closes, and ends the command with all that it has started.

Started as a separate program (`python -I tunnel_guard.py COMMAND ...`), so that the command ends also when
whoever started it was killed. Its exit status is the command's.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

PATIENCE_S = 1.0


def main(command: list[str]) -> int:
    """Run a command until it ends or standard input closes; return its exit status."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_end_with_input, args=(child,), daemon=True).start()
    status = child.wait()
    _signal(child, signal.SIGKILL)  # what it has left behind
    return status if status >= 0 else 128 - status


def _end_with_input(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):  # not through sys.stdin, whose lock would be held when this program ends
        pass
    _signal(child, signal.SIGTERM)
    try:
        child.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        _signal(child, signal.SIGKILL)


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal the command's group, which has its id."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
