"""A load as it was recorded: rates per interval, what they say of the demand, and the need that they make."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diskbook.choose.need import Need
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import KIB, MB, duration, percent

_FLAT = 0.02
"""How near to the highest rate an interval counts as at it."""
_BAND = 0.10
_LEAST_FLAT = 5
_DENSER = 3.0
"""How much denser than just below the intervals at the top are, where a cap cut them off."""
_BURST = 2.0
"""Multiple of the mean rate above which intervals belong to a burst."""
_SHORT_S = 30.0
"""Length of a burst that a mean over a longer interval hides."""
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*([AaPp]\.?[Mm]\b)?")
QUANTILES = (0.5, 0.95, 0.99, 1.0)


@dataclass(frozen=True, eq=False)
class Trace:
    """Rates per interval, of all `devices` together.

    `seconds` are the lengths, `mb_s` 10^6 bytes a second, `reads` shares (NaN without I/O), `outstanding`
    mean I/Os in flight (NaN where not recorded), `notes` sentences on what was left out or taken for granted.
    """

    seconds: np.ndarray
    iops: np.ndarray
    mb_s: np.ndarray
    reads: np.ndarray
    outstanding: np.ndarray
    devices: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def interval_s(self) -> float:
        """Usual length of an interval."""
        return float(np.median(self.seconds))

    def quantiles(self, values: np.ndarray) -> list[float]:
        """Values that are not exceeded in a share (`QUANTILES`) of the time; NaN without any."""
        known = ~np.isnan(values)
        if not known.any():
            return [math.nan] * len(QUANTILES)
        order = np.argsort(values[known])
        shares = np.cumsum(self.seconds[known][order]) / self.seconds[known].sum()
        places = np.searchsorted(shares, np.array(QUANTILES) - 1e-12).clip(max=len(order) - 1)
        return [float(value) for value in values[known][order][places]]

    @property
    def clipped(self) -> str:
        """Why the recorded disk may have cut the demand off, in a sentence; empty where nothing shows it."""
        for values, unit in ((self.iops, "IOPS"), (self.mb_s, "MB/s")):
            top = float(values.max())
            at = int((values >= (1 - _FLAT) * top).sum())
            below = int(((values >= (1 - _BAND) * top) & (values < (1 - _FLAT) * top)).sum())
            if at >= max(_LEAST_FLAT, 0.02 * len(values)) and at > _DENSER * below * _FLAT / (_BAND - _FLAT):
                return (
                    f"the trace looks clipped: {at} of {len(values)} intervals are within {percent(_FLAT)} "
                    f"of {top:,.0f} {unit}; unless the load was that steady, a cap cut it off and the demand "
                    "is higher"
                )
        return ""

    @property
    def bursts_s(self) -> list[float]:
        """Lengths of the stretches above twice the mean rate, in seconds."""
        high = self.iops > _BURST * float(self.iops @ self.seconds) / float(self.seconds.sum())
        starts = np.flatnonzero(np.diff(np.concatenate([[0], high.astype(int)])) == 1)
        ends = np.flatnonzero(np.diff(np.concatenate([high.astype(int), [0]])) == -1)
        return [float(self.seconds[a : b + 1].sum()) for a, b in zip(starts, ends, strict=True)]

    def need(self, size_gib: int) -> Need:
        """Return the need that this trace makes if it repeats for ever."""
        reads = np.nan_to_num(self.reads)
        total = float(self.iops @ self.seconds)
        share = float((reads * self.iops) @ self.seconds) / total
        return Need(self.iops, self.mb_s, self.seconds, size_gib, min(1.0, share))

    def words(self) -> list[str]:
        """Say what was recorded, a line each."""
        sizes = np.divide(
            self.mb_s * MB / KIB, self.iops, out=np.full(len(self.iops), np.nan), where=self.iops > 0
        )
        table = {
            "IOPS": self.iops, "MB/s": self.mb_s, "KiB per I/O": sizes, "reads, %": 100 * self.reads,
            "outstanding": self.outstanding,
        }  # fmt: skip
        lines = [
            f"recorded: {', '.join(self.devices)}; {len(self.iops):,} intervals of {self.interval_s:g} s, "
            f"{duration(float(self.seconds.sum()))} in all",
            f"  {'':<14}" + "".join(f"{name:>12}" for name in ("p50", "p95", "p99", "highest")),
        ]
        for name, values in table.items():
            cells = ["not told" if math.isnan(value) else f"{value:,.4g}" for value in self.quantiles(values)]
            lines.append(f"  {name:<14}" + "".join(f"{cell:>12}" for cell in cells))
        bursts = self.bursts_s
        if bursts:
            lines.append(
                f"  {len(bursts)} bursts above twice the mean: {duration(float(np.median(bursts)))} each by "
                f"the median, {duration(max(bursts))} the longest"
            )
        return [
            *lines,
            *(f"  note: {note}" for note in filter(None, [*self.notes, self.clipped, self.hidden])),
        ]

    @property
    def hidden(self) -> str:
        """How much a mean over an interval could hide, in a sentence; empty for short intervals."""
        if self.interval_s <= _SHORT_S:
            return ""
        return (
            f"each value is a mean over {duration(self.interval_s)}: a burst of {_SHORT_S:.0f} s within it "
            f"can be up to {self.interval_s / _SHORT_S:.0f} times as high, and is not seen"
        )


def made(
    times: Sequence[str | None], rows: dict[str, dict[str, np.ndarray]], device: str | None,
    interval_s: float | None, where: str, notes: Sequence[str],
) -> Trace:  # fmt: skip
    """Add devices up to a trace, and check it; DiskbookError where nothing can be made of it.

    `times` are of the intervals' ends as written, `rows` by device "reads" and "writes" (I/Os a second),
    "bytes" (a second) and "outstanding", `interval_s` what the user says, `where` the file, for messages.
    """
    if device is not None and device not in rows:
        raise DiskbookError(f"{where}: it has no device '{device}'; it has {', '.join(sorted(rows)[:20])}")
    rows = rows if device is None else {device: rows[device]}
    seconds, more = lengths(times, interval_s, where)
    total = {key: np.sum([row[key] for row in rows.values()], axis=0) for key in ("reads", "writes", "bytes")}
    iops = total["reads"] + total["writes"]
    values = np.concatenate([iops, total["bytes"]])
    if not np.isfinite(values).all() or (values < 0).any() or values.max() > 1e13:
        raise DiskbookError(f"{where}: a rate is negative, infinite or beyond any disk; check the file")
    if not iops.any() or not total["bytes"].any():
        raise DiskbookError(
            f"{where}: there is no load in it ({', '.join(rows)}); record while the workload runs"
        )
    reads = np.divide(total["reads"], iops, out=np.full(len(iops), np.nan), where=iops > 0)
    outstanding = np.sum([row["outstanding"] for row in rows.values()], axis=0)
    return Trace(seconds, iops, total["bytes"] / MB, reads, outstanding, tuple(rows), (*notes, *more))


def lengths(
    times: Sequence[str | None], interval_s: float | None, where: str
) -> tuple[np.ndarray, list[str]]:
    """Length of each interval in seconds, from the times that were written; clocks that jump are noticed.

    Only differences count, so the order of day and month does not matter, and neither does the time zone.
    """
    number = len(times)
    if number < 2:
        raise DiskbookError(
            f"{where}: it has one usable sample, which tells no percentiles; record for longer"
        )
    if interval_s is not None:
        return np.full(number, interval_s), []
    clocks = [_seconds_of_day(text) for text in times]
    known = np.array([math.nan if clock is None else clock for clock in clocks])
    steps = np.diff(known) % 86400
    if np.isnan(steps).all() or not (steps[~np.isnan(steps)] > 0).any():
        raise DiskbookError(
            f"{where}: it has no timestamps; give --interval SECONDS, the interval that it was recorded with"
        )
    usual = float(np.quantile(steps[steps > 0], 0.5, method="lower"))
    odd = ~(np.abs(steps - usual) <= 0.5 * usual)
    notes = []
    if odd.any():
        notes.append(
            f"{int(odd.sum())} of {len(steps)} times do not follow their neighbours (a clock change, a gap "
            f"or a 12-hour clock); those intervals count as {usual:g} s"
        )
    return np.concatenate([[usual], np.where(odd, usual, steps)]), notes


def _seconds_of_day(text: str | None) -> float | None:
    match = _CLOCK.search(text or "")
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if match[4]:
        hour = hour % 12 + 12 * (match[4][0] in "Pp")
    return 3600.0 * hour + 60 * minute + second


def number(text: str) -> float:
    """Read a number with a decimal point or comma; ValueError where it is none."""
    value = float(text.strip().replace(",", "."))
    if not math.isfinite(value):
        raise ValueError(f"'{text}' is not a number")
    return value
