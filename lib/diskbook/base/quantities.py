"""One form for what is measured: ratios and differences with their intervals, as text.

Everything that people read (report, figures, command line, posts) writes them by these functions, so that a
ratio is never a percentage in one place and a factor in another.
"""

from __future__ import annotations

import math

_SMALL_MS = 0.1
_LARGE = 100.0


def ratio(value: float, low: float = math.nan, high: float = math.nan, level: float = 0.95) -> str:
    """Write a ratio as a factor with its interval: "2.52 times, 95 % CI 2.45 to 2.60".

    Parameters
    ----------
    value
        The ratio, without unit.
    low, high, level
        Its interval and how often such intervals cover the truth; left out where there is none.
    """
    times = f"{_factor(value)} times"
    return times if math.isnan(low) else f"{times}, {interval(low, high, level)}"


def interval(low: float, high: float, level: float = 0.95) -> str:
    """Write an interval of a ratio: "95 % CI 2.45 to 2.60"."""
    return f"{100 * level:.3g} % CI {_factor(low)} to {_factor(high)}"


def difference_ms(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Write a difference of latencies in ms with its interval: "+2.1 ms, 2.0 to 2.3".

    Three digits behind the point where the difference is below 0.1 ms, two below 10 ms, else one.
    """
    digits = 3 if abs(value) < _SMALL_MS else 2 if abs(value) < 10 else 1
    words = f"{value:+.{digits}f} ms"
    return words if math.isnan(low) else f"{words}, {low:.{digits}f} to {high:.{digits}f}"


def ratio_and_difference(
    times: tuple[float, float, float],
    milliseconds: tuple[float, float, float] = (math.nan, math.nan, math.nan),
    level: float = 0.95,
) -> str:
    """Write both: "2.52 times, 95 % CI 2.45 to 2.60; +2.15 ms, 2.02 to 2.31"; or the first alone."""
    words = ratio(*times, level)
    return words if math.isnan(milliseconds[0]) else f"{words}; {difference_ms(*milliseconds)}"


def _factor(value: float) -> str:
    return f"{value:,.0f}" if value >= _LARGE else f"{value:.2f}"
