"""How busy the cores of a Linux machine were: /proc/stat (proc_stat(5))."""

from __future__ import annotations

_COLUMNS = 8


def ticks(content: bytes) -> dict[str, list[int]]:
    """First columns of the lines "cpu", "cpu0" and so on of /proc/stat."""
    rows = [line.split() for line in content.decode(errors="replace").splitlines()]
    return {
        row[0]: [int(word) for word in row[1 : _COLUMNS + 1]]
        for row in rows
        if len(row) > _COLUMNS and row[0].startswith("cpu") and all(word.isdecimal() for word in row[1:])
    }
