"""A file against itself: its rate by what it counted, and its series by its summary. Pure."""

import math
from collections.abc import Iterator

import numpy as np

from diskbook.tools.record import Direction, Measurement, Series

CONTRADICTS = "the file contradicts itself"
_NEAR = 0.1
"""By how much a rate may differ from I/Os over time: a ramp's end, and what a text rounds."""
_NEAR_OF_CLONES = 0.3
"""The same of several threads, which may end one after another."""
_NEAR_SERIES = 0.25


def of(measurement: Measurement) -> tuple[str, ...]:
    """Say where numbers of one measurement contradict each other."""
    near = _NEAR if measurement.load.threads in (None, 1) else _NEAR_OF_CLONES
    sentences: list[str] = []
    for name, part in measurement.directions.items():
        if name in ("read", "write"):
            sentences += _of_totals(name, part, near)
            sentences += _of_series(name, part, measurement.series.get(name))
    return tuple(f"{CONTRADICTS}: {sentence}" for sentence in sentences)


def _of_totals(name: str, part: Direction, near: float) -> Iterator[str]:
    counted = part.ios / part.runtime_ms * 1000 if part.ios > 0 and part.runtime_ms > 0 else math.nan
    if abs(part.iops - counted) > max(1.0, near * counted):
        yield f"{part.iops:,.0f} IOPS of {name}s are told, I/Os and time make {counted:,.0f}"


def _of_series(name: str, part: Direction, series: Series | None) -> Iterator[str]:
    if series is None or len(series.iops) < 2 or not part.iops > 0:
        return
    mean = float(np.mean(series.iops))
    if abs(mean / part.iops - 1) > _NEAR_SERIES:
        yield f"{part.iops:,.0f} IOPS of {name}s are told, the series has {mean:,.0f} on average"
