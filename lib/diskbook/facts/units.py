"""Units of bytes and time, and how shares, durations and times are read and written.

Disk sizes count in powers of two (GiB), rates in powers of ten (MB/s), as Azure documents them.
"""

import math
import re
from datetime import UTC, datetime

from diskbook.facts.errors import UsageError

KIB = 1024
MIB = 1024**2
GIB = 1024**3
MB = 1e6
MB_PER_MIB = MIB / MB

NS_PER_US = 1000
NS_PER_MS = 1e6
NS_PER_S = 1e9
MS_PER_S = 1000
US_PER_MS = 1000
US_PER_S = 1_000_000

_SIZES = {"GIB": GIB, "TIB": 1024 * GIB, "GB": 10**9, "TB": 10**12}
_MOST_GIB = 64 * 65536
"""As much as 64 disks of the largest size hold."""
_SPANS = ((86400, "days"), (3600, "h"), (60, "min"))


def percent(share: float, form: str = ".3g") -> str:
    """Write a share in percent: 0.015 is "1.5 %".

    - `share`: of 1.
    - `form`: format of the number, e.g. ".1f", or "+.1f" for a change.

    >>> percent(0.015), percent(-0.02, "+.1f")
    ('1.5 %', '-2.0 %')
    """
    return f"{100 * share:{form}} %"


def parse_percent(text: str, option: str, most: float = 100.0, zero: bool = False) -> float:
    """Read a percentage as a share: "1.5%" is 0.015.

    - `text`: what a user wrote.
    - `option`: where, e.g. "--effect"; it begins the message.
    - `most`: the number must be less, in percent.
    - `zero`: whether 0 % and `most` itself make sense.

    Raises UsageError when the sign is missing (1.5 or 0.015 could mean either), or the number makes no sense.

    >>> parse_percent("1.5%", "--effect")
    0.015
    """
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if math.isnan(value) or not text.strip().endswith("%"):
        raise UsageError(f"{option} {text}: write a percentage with its sign, for example 1.5%")
    if not (0 <= value <= most if zero else 0 < value < most):
        words = f"from 0 to {most:g} %" if zero else f"more than 0 % and less than {most:g} %"
        raise UsageError(f"{option} {text}: it must be {words}")
    return value / 100


def parse_gib(text: str, option: str) -> int:
    """Read a size such as 2TiB, 500GiB or 2TB as whole GiB; UsageError where it is none."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = match[2] if match else ""
    if not match or unit.upper() not in _SIZES or unit.endswith("b"):
        raise UsageError(f"{option} {text}: write GiB, TiB, GB or TB behind the number, for example 2TiB")
    size = math.ceil(float(match[1]) * _SIZES[unit.upper()] / GIB - 1e-9)
    if not 1 <= size <= _MOST_GIB:
        raise UsageError(f"{option} {text}: the data need 1 GiB or more, and at most 4 PiB")
    return size


def parse_rate(text: str | None, option: str, unit: str) -> float | None:
    """Read a rate above 0 such as 8000, 8k or "8000 IOPS"; UsageError where it is none."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE]\d{1,2})?)\s*([A-Za-z/]*)\s*", text)
    thousand = match is not None and match[2] == "k" and unit == "IOPS"
    value = float(match[1]) * (1000 if thousand else 1) if match else 0.0
    if match is None or not (thousand or match[2].lower() in ("", unit.lower())) or not value > 0:
        raise UsageError(f"{option} {text}: write a number of {unit} above 0, for example {option} 8000")
    return value


def duration(seconds: float, minutes_from_s: float = 90.0, hours_from_s: float = 5400.0) -> str:
    """Write how long something takes: "37 s", "20 min", "2.5 h".

    - `minutes_from_s`, `hours_from_s`: from where on minutes and hours are written: 0 and infinity where a
      plan has no seconds, or a wait no hours.

    >>> duration(37), duration(1200), duration(9000)
    ('37 s', '20 min', '2.5 h')
    """
    if seconds < minutes_from_s:
        return f"{seconds:.0f} s"
    if seconds < hours_from_s:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def span(seconds: float) -> str:
    """Write an age or a lifetime in whole units: "40 s", "12 min", "3 h", "2 days".

    It is coarser than `duration`: what stands for days is not told to the tenth of an hour.
    """
    for unit, name in _SPANS:
        if seconds >= 2 * unit or (name != "days" and seconds >= unit):
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def epoch(text: str) -> float:
    """Read an ISO 8601 time as seconds since the Unix epoch; one without a time zone is in UTC.

    Raises ValueError when it is no such time.
    """
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=time.tzinfo or UTC).timestamp()


def utc_text(epoch_s: float, timespec: str = "seconds") -> str:
    """Write seconds since the Unix epoch as ISO 8601 text in UTC.

    - `timespec`: how finely, as `datetime.isoformat` takes it.
    """
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec=timespec)


def now_utc() -> str:
    """Return the time as ISO 8601 text in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
