"""Windows of a held rate in which less was sent than was due. Pure.

Apart from `held_rate`, which needs pandas: the tools judge windows, and every command imports the tools.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
WINDOW_S = 0.1
LEAST_DUE = 20
"""I/Os that must be due in a window, so that one that comes just after its end is no failure."""
LOW = 0.9
"""Part of what was due in a window, below which the rate was not kept in it."""


def windows(due_s: Floats, sent_s: Floats, runtime_s: float) -> tuple[float, float]:
    """Return the worst window's part of what was due, and the share of windows below 90 % of it.

    Windows are 0.1 s long, longer where fewer than 20 I/Os would be due in one. A schedule of constant gaps
    says exactly how many were due; what was late is sent in another window, which then has more.

    - `due_s`, `sent_s`: when each I/O was due and when it was sent, from the start of the measurement; in any
      order.
    - `runtime_s`: how long was measured.

    Returns NaN where less than a window was measured.
    """
    rate = len(due_s) / runtime_s if runtime_s > 0 else 0.0
    length = max(WINDOW_S, LEAST_DUE / rate) if rate else np.inf
    number = int(runtime_s / length + 1e-9)
    if not number:
        return np.nan, np.nan
    edges = np.linspace(0.0, number * length, number + 1)
    due, sent = (np.histogram(times, edges)[0] for times in (due_s, sent_s))
    return _judged(sent / np.maximum(due, 1))


def windows_of_series(second: Floats, iops: Floats, rate: float) -> tuple[float, float]:
    """Judge windows by the rates that a tool says of its intervals, as `windows` does.

    For tools that log no single I/O. They count what ended in an interval. The last one may be cut short, so
    it is left out, and several are taken together where fewer than 20 I/Os are due in one.
    """
    if len(second) < 2 or not rate > 0:
        return np.nan, np.nan
    order = np.argsort(second)
    grain = float(np.median(np.diff(second[order])))
    together = max(1, int(np.ceil(LEAST_DUE / (rate * grain) - 1e-9))) if grain > 0 else 0
    number = (len(second) - 1) // together if together else 0
    if not number:
        return np.nan, np.nan
    kept = iops[order][: number * together].reshape(number, together).mean(axis=1)
    return _judged(kept / rate)


def _judged(achieved: Floats) -> tuple[float, float]:
    return float(achieved.min()), float((achieved < LOW).mean())
