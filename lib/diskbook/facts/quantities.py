"""One form for what is measured: changes and differences with their intervals, as text.

Everything that people read (report, figures, command line, posts) writes them by these functions: a
ratio is a change in percent everywhere.
"""

import math

_SMALL_MS = 0.1
_MOST_DIGITS = 6


def many(number: int, unit: str) -> str:
    """Write a number of things: "1 cell", "2 cells", "1,200 cells"."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def as_written(value: object) -> str:
    """Write a float with six digits at most, and any other value as it is."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def reach(low: float, high: float, form: str) -> str:
    """Write from where to where values reach: "0.36 to 1.05"; one number where both are written alike."""
    first, last = f"{low:{form}}", f"{high:{form}}"
    return first if first == last else f"{first} to {last}"


def with_interval(words: str, low: float, high: float, form: str = ".1f", level: float = 0.95) -> str:
    """Add an interval to a number in words: "+0.3 % a block, 95 % CI -1.6 to +2.3"; nothing without one.

    - `words`: the number with its unit.
    - `low`, `high`, `level`: its interval, in that unit.
    - `form`: format of its ends.
    """
    return words if math.isnan(low) else f"{words}, {100 * level:.3g} % CI {reach(low, high, form)}"


def change(ratio: float, low: float = math.nan, high: float = math.nan, level: float = 0.95) -> str:
    """Write a ratio as a change in percent with its interval: "+146 % (95 % CI 138 to 155 %)".

    Whole percents from 10 on, one decimal from 1 on, else two. What is left of a decrease counts alike, so
    that -99.7 % does not read as all, and a wide interval has no decimals. There are more where both ends
    would read alike, or an end would read as 0 and is not.

    - `ratio`: the new value over the old one, without unit.
    - `low`, `high`, `level`: interval of the ratio, and how often such intervals cover the truth; left out
      where there is none.

    >>> change(2.46, 2.38, 2.55)
    '+146 % (95 % CI 138 to 155 %)'
    >>> change(0.173, 0.162, 0.185)
    '-83 % (95 % CI -84 to -82 %)'
    >>> change(0.9865, 0.971, 1.002)
    '-1.3 % (95 % CI -2.9 to +0.2 %)'
    """
    value, interval = change_parts(ratio, low, high, level)
    return f"{value} ({interval})" if interval else value


def change_parts(
    ratio: float, low: float = math.nan, high: float = math.nan, level: float = 0.95
) -> tuple[str, str]:
    """Write a change and its interval apart: "+146 %" and "95 % CI 138 to 155 %", empty without one."""
    if math.isnan(ratio):
        return "no number", ""
    digits = _digits(ratio, low, high)
    value = f"{round(100 * (ratio - 1), digits) + 0.0:+,.{digits}f} %"
    return value, "" if math.isnan(low) else _interval(low, high, level, digits)


def change_interval(low: float, high: float, level: float = 0.95) -> str:
    """Write the interval of a change by itself: "95 % CI -7 to +8 %"."""
    return _interval(low, high, level, _digits(low, low, high))


def changed(ratio: float, more: str = "higher", less: str = "lower") -> str:
    """Write a change as a sentence says it: "146 % higher", "83 % lower".

    >>> changed(2.46), changed(0.173), changed(2.46, "longer", "less time")
    ('146 % higher', '83 % lower', '146 % longer')
    """
    return f"{change(ratio)[1:]} {more if ratio >= 1 else less}"


def share(value: float, low: float = math.nan, high: float = math.nan, level: float = 0.95) -> str:
    """Write a share of a whole in percent with its interval: "25 %, 95 % CI 20 to 30 %"."""
    words = with_interval(f"{100 * value:.0f} %", 100 * low, 100 * high, ".0f", level)
    return words if math.isnan(low) else f"{words} %"


def difference_ms(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Write a difference of latencies in ms with its interval: "+2.1 ms, 2.0 to 2.3".

    Three digits behind the point where the difference is below 0.1 ms, two below 10 ms, else one; more where
    both ends would read alike, or an end would read as 0 and is not.
    """
    digits = telling(low, high, 3 if abs(value) < _SMALL_MS else 2 if abs(value) < 10 else 1, none=0.0)
    words = f"{round(value, digits) + 0.0:+.{digits}f} ms"  # adding 0.0 turns a rounded -0.0 into 0.0
    return words if math.isnan(low) else f"{words}, {low:.{digits}f} to {high:.{digits}f}"


def change_and_difference(
    ratio: tuple[float, float, float],
    milliseconds: tuple[float, float, float] = (math.nan, math.nan, math.nan),
    level: float = 0.95,
) -> str:
    """Write both: "+152 % (95 % CI 145 to 160 %); +2.15 ms, 2.02 to 2.31"; or the first alone."""
    words = change(*ratio, level)
    return words if math.isnan(milliseconds[0]) else f"{words}; {difference_ms(*milliseconds)}"


def _interval(low: float, high: float, level: float, digits: int) -> str:
    """Write an interval of a ratio in percent, with signs unless both ends are above."""
    first, last = 100 * (low - 1), 100 * (high - 1)
    sign = "" if first >= 0 else "+"
    return f"{100 * level:.3g} % CI {reach(first, last, f'{sign},.{digits}f')} %"


def _digits(ratio: float, low: float, high: float) -> int:
    """Decimals of a change in percent: by its size, what is left of a decrease, and half its interval."""
    size = max(min(100 * abs(ratio - 1), 100 * ratio or 100), 50 * (0.0 if math.isnan(low) else high - low))
    digits = 0 if size >= 10 else 1 if size >= 1 else 2
    return telling(100 * (low - 1), 100 * (high - 1), digits, none=0.0)


def telling(low: float, high: float, digits: int, none: float) -> int:
    """Return the number of decimals for the ends of an interval.

    More than `digits` are used where both ends would read alike, or where an end would read as the value that
    means "no difference" and is not that value.

    - `low`, `high`: ends of the interval; NaN where there is none.
    - `digits`: decimals to begin with; at most six are used.
    - `none`: the value that means "no difference": 1 for a ratio, 0 for a difference.
    """
    while digits < _MOST_DIGITS and not _tells(low, high, digits, none):
        digits += 1
    return digits


def _tells(low: float, high: float, digits: int, none: float) -> bool:
    if low < high and f"{low:.{digits}f}" == f"{high:.{digits}f}":
        return False
    return all(end == none or round(end, digits) != none for end in (low, high))
