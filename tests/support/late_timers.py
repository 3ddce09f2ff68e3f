"""Measure how late this machine wakes a program that sleeps for 5 ms at a time and comes before all others.

    python late_timers.py PARENT

prints twice a second the time (`time.monotonic`), and how late the last sleeps ended in ms: the latest, and
the median. A virtual machine may stand still, or be late for minutes, and no account of the processor shows
that. With SCHED_FIFO no other program delays this one. Whoever may not have that measures nothing.
"""

from __future__ import annotations

import os
import statistics
import sys
import time

SLEEP_S, EVERY_S = 0.005, 0.5


def main(parent: int) -> None:
    """Measure until the parent has ended."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return
    now = time.monotonic()
    while os.getppid() == parent:
        said, late_ms = now, []
        while now < said + EVERY_S:
            begun = now
            time.sleep(SLEEP_S)
            now = time.monotonic()
            late_ms.append(1000 * (now - begun - SLEEP_S))
        print(now, max(late_ms), statistics.median(late_ms), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
