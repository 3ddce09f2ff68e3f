"""A computation in a copy of this process, beside what this one does meanwhile: where there are two cores.

The copy is a fork, which has all that was imported and computed. Of a process with threads it has only the
one that forks, so that what others hold stays held: it computes, writes one answer and ends, without whatever
a process does at its end. An answer that fails or does not come is computed here, so that nothing is lost but
time, and errors are raised where they belong.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")
MOST_S = 60.0
"""How long an answer is waited for."""


def begun(compute: Callable[[], bytes]) -> Callable[[], bytes]:
    """Begin to compute bytes aside; return what waits for them, which is to be called once."""
    if not _possible():
        return compute
    read, write = os.pipe()
    try:
        copy = _forked()
    except OSError:  # no memory, or no process more
        os.close(read)
        os.close(write)
        return compute
    if copy == 0:
        _answer(compute, write)
    os.close(write)
    return lambda: _waited(copy, read, compute)


def each(compute: Callable[[T], V], items: Sequence[T], few: int) -> list[V]:
    """Compute something of each item, of every second one aside; all of it here where there are but a few."""
    if len(items) <= few:
        return [compute(item) for item in items]
    seconds = begun(lambda: pickle.dumps([compute(item) for item in items[1::2]]))
    try:
        firsts = [compute(item) for item in items[::2]]
    except BaseException:
        with contextlib.suppress(Exception):
            seconds()  # so that no copy is left
        raise
    results = [*firsts, *pickle.loads(seconds())]
    results[::2], results[1::2] = firsts, results[len(firsts) :]
    return results


def _possible() -> bool:
    """Whether a fork is safe and helps: on Linux, from the main thread, with a second core."""
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return False
    return len(os.sched_getaffinity(0)) > 1


def _forked() -> int:
    with warnings.catch_warnings():  # Python 3.12 and later warn of threads
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _answer(compute: Callable[[], bytes], write: int) -> None:
    """Compute and write, in the copy; never return."""
    status = 1
    try:
        with os.fdopen(write, "wb") as pipe:
            pipe.write(compute())
        status = 0
    finally:
        os._exit(status)


def _waited(copy: int, read: int, compute: Callable[[], bytes]) -> bytes:
    answer = _received(read)
    if answer is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(copy, 9)
    _, status = os.waitpid(copy, 0)
    return compute() if answer is None or status else answer


def _received(read: int) -> bytes | None:
    """All that comes through a pipe; None where it takes too long."""
    until = time.monotonic() + MOST_S
    parts: list[bytes] = []
    with os.fdopen(read, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
            part = pipe.read(1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
    return None
