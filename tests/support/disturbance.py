"""Tell a disturbed measurement from a wrong one.

Other programs on the machine can make an I/O late and a rate low, never the opposite. So can a virtual
machine that stands still or wakes programs late. A test states what they can move inside `load_sensitive`. If
such an assertion fails while others used the processor, or while the machine was late, `conftest` repeats the
test with new fixtures. Every other failure counts at once.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
from scipy.ndimage import median_filter

from support import late_timers

EVERY_S = late_timers.EVERY_S
STANDSTILL_MS, LATE_MS = 20.0, 0.5  # of one sleep, and of half of them: 3 and 0.07 are usual
SETTLED_S = 2.0  # a job's shell has gone to its folder by then
INIT, KTHREADD = 1, 2  # ids: who waits for orphans, and the parent of the kernel's threads
FOLDERS = ("diskbook-test-", "diskbook-own-", "pytest-of-")  # how names of the tests' folders begin


class LoadSensitiveError(AssertionError):
    """An assertion failed that other programs on the machine may have caused."""


@contextlib.contextmanager
def load_sensitive() -> Iterator[None]:
    """Mark the assertions in the block as ones that a busy machine can break.

    Raises
    ------
    LoadSensitiveError
        In place of the AssertionError of the block.
    """
    try:
        yield
    except AssertionError as error:
        raise LoadSensitiveError(str(error)) from error


class Lateness:
    """Record how late the machine wakes programs, in a program of its own that ends with this one."""

    def __init__(self) -> None:
        self._said, name = tempfile.mkstemp()
        Path(name).unlink()
        command = [sys.executable, late_timers.__file__, str(os.getpid())]
        self.program = subprocess.Popen(
            command, stdout=self._said, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def said(self, since: float) -> str:
        """Say by how much the machine was late since then; "" where it was not, or nothing is known."""
        text = os.pread(self._said, os.fstat(self._said).st_size, 0).decode()
        looks = [tuple(map(float, line.split())) for line in text.splitlines()]
        _, latest_ms, half_ms = np.max([(0, 0, 0), *(look for look in looks if look[0] > since)], axis=0)
        if latest_ms > STANDSTILL_MS:
            return f"the machine stood still for {latest_ms:.0f} ms"
        return f"the machine woke programs {half_ms:.1f} ms late" if half_ms > LATE_MS else ""


class OtherLoad:
    """Record how much of the processor other programs use, in a thread, half-second by half-second.

    Everything counts that the kernel says was busy, time that a hypervisor took included, less what the tests
    and their descendants used. A process belongs to the tests if its environment names their folder, if it
    works in a folder of theirs (as a machine's jobs do, children of init), or if it descends from one that
    does; a daemon stays theirs when its parent ends. Orphans that came and went between two looks count as
    the tests': they are in the account of init, or will be as soon as it waits for them.

    Parameters
    ----------
    marker
        Text in the environment of each process that the tests start.
    """

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._ours: dict[int, tuple[int, float]] = {os.getpid(): (0, 0.0)}  # pid: its parent, seconds used
        self._foreign: set[int] = set()
        self._lost_s = 0.0
        self._looks: list[tuple[float, float]] = []  # when, and the seconds that others have used by then
        self._lateness = Lateness()
        threading.Thread(target=self._watch, name="other-load", daemon=True).start()

    def most_cores(self, since: float) -> float:
        """Return the largest number of cores that others used in any second since then.

        A second is two looks, each the median of itself and its neighbours: the time of a process that ends
        during a look may be counted twice there, or not at all.

        Parameters
        ----------
        since
            By `time.monotonic`.
        """
        times, used_s = np.transpose(self._looks)
        times, used_s = times[:-1], median_filter(used_s, 3)[:-1]  # the last has one neighbour only
        cores = (used_s[2:] - used_s[:-2]) / (times[2:] - times[:-2])
        return float(np.max(cores[times[:-2] > since], initial=0.0))

    def disturbed(self, since: float) -> str:
        """Say what has disturbed a measurement since then; "" where nothing did.

        Others used more of the processor than a benchmark tolerates, or the machine was late.
        """
        from checks.bench_emulator import BUSY_CORES  # slow to import, and seldom asked for

        cores = self.most_cores(since)
        return f"others used {cores:.1f} cores" if cores > BUSY_CORES else self._lateness.said(since)

    def _watch(self) -> None:
        while True:
            self._looks.append((time.monotonic(), self._other_s()))
            time.sleep(EVERY_S)

    def _other_s(self) -> float:
        before_s, own_s = _busy_s(), self._own_s()
        return (before_s + _busy_s()) / 2 - own_s  # a look takes a while, and the machine goes on meanwhile

    def _own_s(self) -> float:
        """Return the seconds used by all processes of the tests, those that ended included.

        A process that ended is in the account of the parent that waited for it, if that one is ours or init.
        For threads of the kernel nobody waits.
        """
        alive = set(psutil.pids())
        self._foreign &= alive
        for pid in sorted(alive - self._foreign):
            self._look_at(pid)
        waited = {INIT, *self._ours} - {KTHREADD}
        for pid in set(self._ours) - alive:
            parent, used_s = self._ours.pop(pid)
            self._lost_s += 0.0 if parent in waited else used_s
        orphans_s = sum(psutil.Process(INIT).cpu_times()[2:4]) if INIT in alive else 0.0
        return self._lost_s + orphans_s + sum(used_s for _, used_s in self._ours.values())

    def _look_at(self, pid: int) -> None:
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                parent = process.ppid()
                if pid not in self._ours and not self._is_ours(process, parent):
                    if time.time() - process.create_time() > SETTLED_S:
                        self._foreign.add(pid)
                    return
                waited_for_s = sum(process.cpu_times()[2:4])
            self._ours[pid] = parent, waited_for_s + time.clock_gettime(_processor_clock(pid))
        except (psutil.Error, OSError):
            return  # it has just ended

    def _is_ours(self, process: psutil.Process, parent: int) -> bool:
        if parent in self._ours or KTHREADD in (process.pid, parent):  # the kernel's part of our I/O
            return True
        if parent == INIT and process.status() == psutil.STATUS_ZOMBIE:
            return True
        working = Path(process.cwd())
        return self._marker in process.environ().values() or any(
            part.startswith(FOLDERS) for part in working.parts
        )


def _busy_s() -> float:
    """Return the seconds for which the processors have not been idle: at work, or taken by a hypervisor.

    Work is counted at the ticks of a clock: too much of what that clock wakes. Idle time is measured.
    """
    return sum(time.monotonic() - each.idle - each.iowait for each in psutil.cpu_times(percpu=True))


def _processor_clock(pid: int) -> int:
    """Return the id of the clock of a process's processor time, as clock_getcpuclockid(3) makes it.

    It counts nanoseconds. /proc cuts off hundredths of a second, which hides much of many small processes.
    """
    return ~pid << 3 | 2
