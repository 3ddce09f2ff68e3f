"""Tell a disturbed measurement from a wrong one.

Other programs on the machine can make an I/O late and a rate low, never the opposite. A test states what they
can move inside `load_sensitive`. If such an assertion fails while others used the processor, `conftest`
repeats the test with new fixtures. Every other failure counts at once.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

import psutil

EVERY_S = 0.5


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


class OtherLoad:
    """Record how many cores other programs use, in a thread, half-second by half-second.

    Everything counts that the kernel says was busy, time that a hypervisor took included, less what the tests
    and their descendants used. A process belongs to the tests if its environment names their folder, or if it
    descends from one that does; a daemon stays theirs when its parent ends.

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
        self._seen: list[tuple[float, float]] = []
        self._last = (time.monotonic(), self._other_s())
        threading.Thread(target=self._watch, name="other-load", daemon=True).start()

    def most_cores(self, since: float) -> float:
        """Return the largest number of cores that others used in any half-second since then.

        Parameters
        ----------
        since
            By `time.monotonic`.
        """
        return max((cores for end, cores in self._seen if end > since), default=0.0)

    def was_busy(self, since: float) -> bool:
        """Return whether others used more of the processor since then than a benchmark tolerates."""
        from checks.bench_emulator import BUSY_CORES  # slow to import, and seldom asked for

        return self.most_cores(since) > BUSY_CORES

    def _watch(self) -> None:
        while True:
            time.sleep(EVERY_S)
            now, other_s = time.monotonic(), self._other_s()
            begun, before_s = self._last
            self._last = now, other_s
            self._seen.append((now, (other_s - before_s) / (now - begun)))

    def _other_s(self) -> float:
        times = psutil.cpu_times()
        busy_s = times.user + times.nice + times.system + times.irq + times.softirq + times.steal
        return busy_s - self._own_s()

    def _own_s(self) -> float:
        """Return the seconds used by all processes of the tests, those that ended included.

        A process that ended is in the account of the parent that waited for it, if that one is ours.
        """
        alive = set(psutil.pids())
        self._foreign &= alive
        for pid in sorted(alive - self._foreign):
            self._look_at(pid)
        for pid in set(self._ours) - alive:
            parent, used_s = self._ours.pop(pid)
            self._lost_s += 0.0 if parent in self._ours else used_s
        return self._lost_s + sum(used_s for _, used_s in self._ours.values())

    def _look_at(self, pid: int) -> None:
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                parent = process.ppid()
                if pid not in self._ours and not self._is_ours(process, parent):
                    self._foreign.add(pid)
                    return
                self._ours[pid] = parent, sum(process.cpu_times()[:4])
        except psutil.Error:
            return  # it has just ended

    def _is_ours(self, process: psutil.Process, parent: int) -> bool:
        kernel = 2  # kthreadd: its children do the kernel's part of our I/O
        if parent in self._ours or kernel in (process.pid, parent):
            return True
        return self._marker in process.environ().values()
