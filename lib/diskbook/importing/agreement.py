"""Repeats of a cell that others measured: do they agree, and in which sessions were they made? Pure.

An interval over repeats says how they scatter. Where some were made minutes apart and others months later,
those of one session share what the disk and its host were like then: the sessions are the units, and an
interval over all repeats would be too narrow.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FACTOR = 1.25
"""Between the least and the greatest of a few repeats: a rule of thumb, wider than two runs of one disk that
nobody disturbed lie apart."""
LEAST = 1.10
"""And least distance of one of many repeats from their median, however narrow the rest lie."""
ROBUST_SD = 6.0
MANY = 4
"""Repeats from which their own scatter can be determined from one that is far out."""
SESSION_GAP_S = 3600.0
"""Idle for longer than this, and a session has ended."""
NIGHT_S = 8 * 3600.0
"""Idle for longer than this, and the next session is of another day, however far apart others lie."""
_TRIALS = 2.0
FAR_APART = 10.0
"""Sessions of a day that lie so many times farther apart than most of them do are of different clusters."""

Ints = npt.NDArray[np.int64]


def disagree(values: Sequence[float], errors: Sequence[float] = ()) -> bool:
    """Whether repeats of one cell differ by more than their own spread explains.

    Of a few: the greatest is more than a quarter above the least, and by more than six standard errors of
    what happened within the trials, where that is known. Of four or more, also: one is farther from their
    median than six robust standard deviations (1.4826 x the median absolute deviation), and than a tenth.
    Values that are no positive number are left out; errors are NaN where not known (`relative_error`).
    """
    known = [place for place, value in enumerate(values) if math.isfinite(value) and value > 0]
    if len(known) < 2:
        return False
    logs = np.log([values[place] for place in known])
    own = np.nan_to_num([errors[place] for place in known] if len(errors) else np.zeros(len(known)))
    within = ROBUST_SD * math.sqrt(float((own**2).max()) * 2)
    if np.ptp(logs) > max(math.log(FACTOR), within):
        return True
    far = np.abs(logs - np.median(logs))
    scatter = max(ROBUST_SD * 1.4826 * float(np.median(far)), math.log(LEAST), within)
    return len(known) >= MANY and bool(far.max() > scatter)


def relative_error(rates: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """Relative standard error of a trial's mean rate, from its series; NaN with fewer than 10 intervals.

    Means of n samples with autocorrelation phi are worth n (1 - phi) / (1 + phi) independent ones.
    """
    samples = np.asarray(rates, dtype=float)
    if len(samples) < 10 or not samples.mean() > 0:
        return math.nan
    rest = samples - samples.mean()
    squares = float((rest**2).sum())
    phi = min(max(float((rest[1:] * rest[:-1]).sum()) / squares, 0.0), 0.9) if squares else 0.0
    return float(samples.std(ddof=1) / samples.mean() / math.sqrt(len(samples) * (1 - phi) / (1 + phi)))


def sessions(starts_s: Sequence[float], ends_s: Sequence[float]) -> Ints:
    """Number the session of each trial, from 0, in order of time.

    A session ends where nothing was measured for an hour, and for longer than two trials take. Where some
    sessions of a day lie ten times farther apart than half of them do, those near each other are one.
    """
    order = np.argsort(np.asarray(starts_s, dtype=float), kind="stable")
    starts, ends = np.asarray(starts_s, dtype=float)[order], np.asarray(ends_s, dtype=float)[order]
    idle = starts[1:] - np.maximum.accumulate(ends)[:-1]
    ended = idle > max(SESSION_GAP_S, _TRIALS * float(np.median(ends - starts)) if len(order) else 0.0)
    if ended.any():
        between = np.sort(idle[ended])
        far = ended & (idle > FAR_APART * between[(len(between) - 1) // 2])
        ended = far | (ended & (idle > NIGHT_S)) if far.any() else ended
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.r_[0, np.cumsum(ended)] if len(order) else []
    return numbers
