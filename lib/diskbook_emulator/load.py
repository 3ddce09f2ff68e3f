"""What emulated machines and disks were loaded with, as shares of their limits, window by window. Pure.

Azure divides by the provisioned limits, so this divides by the catalogue's. Credit is of the buckets as they
are played.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diskbook.facts import catalog
from diskbook.facts.metrics import Metric
from diskbook.facts.units import MB
from diskbook_emulator.types import Activity, DiskSpec, Limits, VmSpec

Values = NDArray[np.float64]
# Columns of the counts: I/Os and bytes of the disk, then those that the host cache answered.
_MISSES, _HITS = {"iops": 1, "mb_s": 2}, {"iops": 3, "mb_s": 4}
_UNIT = {"iops": 1.0, "mb_s": MB}


@dataclass(frozen=True)
class Windows:
    """Windows of equal length, in whole seconds since the Unix epoch, the first beginning at `start`."""

    start: int
    grain_s: int
    count: int

    @property
    def end(self) -> int:
        """End of the last window."""
        return self.start + self.count * self.grain_s

    @property
    def starts(self) -> NDArray[np.int64]:
        """Beginning of each window."""
        return self.start + self.grain_s * np.arange(self.count)


def of_machine(metric: Metric, vm: VmSpec, activities: Iterable[Activity], windows: Windows) -> Values | None:
    """Percentages of a machine's metric, a value a window; None where the machine has no such limit."""
    own = [item for item in activities if item.vm.id == vm.id]
    column = (_HITS if metric.path == "cached" else _MISSES)[metric.counts]
    if not metric.credit:
        limit = _machine_limit(metric, vm)
        return None if limit is None else _consumed(own, column, limit * _UNIT[metric.counts], windows)
    if metric.path == "cached" or not own:  # cached limits that burst are not played
        return None
    return _used(own, metric.counts, own[-1].vm_uncached, windows)


def of_disk(
    metric: Metric, disk: DiskSpec, activities: Iterable[Activity], windows: Windows
) -> Values | None:
    """Percentages of a disk's metric, on whatever machines it is, a value a window; None as above."""
    own = [item for item in activities if item.disk.id == disk.id]
    if metric.credit:
        return _used(own, metric.counts, own[-1].disk_limits, windows)
    limit = {"iops": disk.iops, "mb_s": disk.mb_s}[metric.counts]
    return _consumed(own, _MISSES[metric.counts], limit * _UNIT[metric.counts], windows)


def _machine_limit(metric: Metric, vm: VmSpec) -> float | None:
    size = catalog.vm_size(vm.size)
    cached = metric.path == "cached"
    if metric.counts == "iops":
        return size.cached_iops if cached else size.uncached_iops
    return size.cached_mb_s if cached else size.uncached_mb_s


def _consumed(activities: list[Activity], column: int, limit: float, windows: Windows) -> Values:
    """Rate in a window as a percentage of a limit a second."""
    per_second = _by_second(activities, column, windows.start, windows.end)
    return 100.0 * per_second.reshape(windows.count, windows.grain_s).mean(axis=1) / limit


def _used(activities: list[Activity], counts: str, limits: Limits, windows: Windows) -> Values | None:
    """Share of the burst credit that is used at the end of each window, in percent; None without credit."""
    base, credit = {
        "iops": (limits.iops, limits.credit_ios),
        "mb_s": (limits.mb_s, limits.credit_mb),
    }[counts]
    if base is None or credit <= 0:
        return None
    first = min((int(item.counts[0, 0]) for item in activities if len(item.counts)), default=windows.start)
    start = min(first, windows.start)
    demand = _by_second(activities, _MISSES[counts], start, windows.end) / _UNIT[counts]
    used, level = np.empty(len(demand)), 0.0
    for second, amount in enumerate(demand.tolist()):
        level = min(max(level + amount - base, 0.0), credit)
        used[second] = level
    return 100.0 * used[windows.start - start :][windows.grain_s - 1 :: windows.grain_s] / credit


def _by_second(activities: Iterable[Activity], column: int, start: int, end: int) -> Values:
    """Amounts by second from start to end, added over attachments."""
    total = np.zeros(end - start)
    for item in activities:
        place = item.counts[:, 0] - start
        inside = (place >= 0) & (place < end - start)
        np.add.at(total, place[inside], item.counts[inside, column])
    return total
