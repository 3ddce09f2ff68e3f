"""Starting and ending the emulator's processes: nothing may outlive it."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from diskbook.facts.errors import UsageError
from diskbook_emulator import FOLDER_VARIABLE, template

# PR_SET_PDEATHSIG fires when the forking thread ends, not the process: so one thread forks, and never ends.
_FORKER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="forker")

# Ends what runs on the machines when the emulator was killed: detached jobs have no parent that could.
_WATCHDOG_NAME = "diskbook-watchdog"


def require(program: str, package: str) -> str:
    """Return the program's path, looking into the system's folders too.

    Raises UsageError when the program is not installed; the message names its Debian package.
    """
    path = shutil.which(program) or shutil.which(
        program, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
    )
    if path is None:
        raise UsageError(
            f"the emulator needs '{program}', which is not installed: install the package {package}."
        )
    return path


def spawn(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: Path
) -> subprocess.Popen[bytes]:
    """Start a command that gets SIGTERM when this process ends, however it ends."""
    setpriv = require("setpriv", "util-linux")

    def fork() -> subprocess.Popen[bytes]:
        with output.open("ab") as log:
            return subprocess.Popen(
                [setpriv, "--pdeathsig", "TERM", *command],
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    return _FORKER.submit(fork).result()


def start_watchdog(folder: Path) -> subprocess.Popen[bytes]:
    """Start the process that ends all jobs of the machines below `folder` once this process is gone.

    End it with :func:`end_watchdog` after a clean end; it waits for the other end of its pipe to close.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", template("watchdog"), _WATCHDOG_NAME, FOLDER_VARIABLE, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


def end_watchdog(watchdog: subprocess.Popen[bytes]) -> None:
    watchdog.kill()
    watchdog.wait()
    if watchdog.stdin:
        watchdog.stdin.close()


def clear(folder: Path) -> None:
    """End all that an emulator that was killed may have left: its watchdog, then jobs of its machines."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[-3:] == [_WATCHDOG_NAME, FOLDER_VARIABLE, str(folder)]:
                kill([process])
    kill(marked(folder))


def _belongs(process: psutil.Process, folder: str) -> bool:
    try:
        return process.environ().get(FOLDER_VARIABLE, "").startswith(folder) or process.cwd().startswith(
            folder
        )
    except (psutil.Error, OSError):
        return False


def marked(folder: Path, but: str | None = None) -> list[psutil.Process]:
    """Find this user's processes that belong to machines at or below `folder`, `but` those of a name.

    Their environment names the machine's folder, or they work in it. A process that has left both behind
    (`env -i` and `cd /`) is not found.
    """
    own_uid = os.getuid()
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            others = process.uids().real != own_uid or process.pid == os.getpid()
            if not others and _belongs(process, f"{folder}/") and process.name() != but:
                processes.append(process)
    return processes


def tree(pid: int) -> list[psutil.Process]:
    """Return the process and all its descendants, the process first; empty when it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def end(processes: Iterable[psutil.Process], wait_s: float = 2.0) -> None:
    """Tell the processes to end (SIGTERM), and give them a moment to do so."""
    _signal(processes, signal.SIGTERM, wait_s)


def kill(processes: Iterable[psutil.Process], wait_s: float = 3.0) -> None:
    """End the processes at once, as a power cut would, and wait until they are gone."""
    _signal(processes, signal.SIGKILL, wait_s)


def _signal(processes: Iterable[psutil.Process], number: signal.Signals, wait_s: float) -> None:
    ending = list(processes)
    for process in ending:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)
    deadline = time.monotonic() + wait_s
    while any(is_alive(process) for process in ending) and time.monotonic() < deadline:
        time.sleep(0.005)


def is_alive(process: psutil.Process) -> bool:
    """Tell whether the process still runs (a zombie does not)."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
