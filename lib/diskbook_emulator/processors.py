"""How busy the cores of the computer that emulates were, which all emulated machines share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diskbook.facts.linux import cpu_ticks

_STAT = Path("/proc/stat")
Cores = list[tuple[float, float]]
"""Percent of user and of kernel time, by core."""


@contextmanager
def watched() -> Iterator[Cores]:
    """Give a list that holds, at the end of the context, how busy each core was in it."""
    cores: Cores = []
    before = _STAT.read_bytes()
    yield cores
    cores += shares(before, _STAT.read_bytes())


def shares(before: bytes, after: bytes) -> Cores:
    """Compute user and kernel time of each core between two readings of /proc/stat; idle cores are kept."""
    first, last = cpu_ticks(before), cpu_ticks(after)
    spent = [
        [max(0, end - start) for start, end in zip(first[name], last[name], strict=True)]
        for name in last
        if name != "cpu" and name in first
    ]
    return [
        (100 * (user + nice) / total, 100 * (system + irq + softirq) / total)
        for user, nice, system, idle, iowait, irq, softirq, steal in spent
        if (total := user + nice + system + idle + iowait + irq + softirq + steal)
    ]
