"""What disks of pools did second by second: from totals, looked at several times a second."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from diskbook_emulator.layout_file import LayoutFile


class MemberActivity:
    """I/Os and bytes by second; what happens between two looks is the later one's."""

    def __init__(self) -> None:
        self._before: dict[int, NDArray[np.int64]] = {}
        self._counts: dict[str, dict[int, NDArray[np.int64]]] = defaultdict(dict)

    def look(self, number: int, disks: Sequence[str], file: LayoutFile, now: float) -> None:
        """Note what the disks of a volume have done since the last look; the first one only begins."""
        ios = file.member_ios()
        totals = np.stack([ios[:, :2].sum(axis=1), ios[:, 2:].sum(axis=1)], axis=1)
        grown = totals - self._before.get(number, totals)
        self._before[number] = totals
        for disk_id, more in zip(disks, grown, strict=True):
            if more.any():
                seconds = self._counts[disk_id]
                seconds[int(now)] = seconds.get(int(now), np.zeros(2, np.int64)) + more

    def of(self, disk_id: str, attached: float, detached: float | None) -> NDArray[np.int64]:
        """Rows as of `ModelFile.activity`: what a disk did in one attachment."""
        seconds = self._counts.get(disk_id, {})
        inside = [
            at for at in sorted(seconds) if int(attached) <= at and (detached is None or at <= detached)
        ]
        return np.array([[at, *seconds[at], 0, 0] for at in inside], np.int64).reshape(-1, 5)
