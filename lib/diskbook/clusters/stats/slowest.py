"""The slowest of several copies that are written at once: what a write waits for. Pure.

Latencies of equal copies are taken as lognormal and independent: the mean of the largest of k is
E[max] = k * integral of x f(x) F(x)^(k-1) over x (order statistics; David and Nagaraja, "Order Statistics",
2003), here by the trapezoid rule over the normal deviate.
"""

import numpy as np
from scipy.special import ndtr

_DEVIATES = np.linspace(-12.0, 12.0, 4801)


def of_copies(copies: int, sigma: float) -> float:
    """Mean latency of the slowest of some copies, in means of one; `sigma` is the deviation of its log."""
    density = np.exp(-(_DEVIATES**2) / 2) / np.sqrt(2 * np.pi)
    latency = np.exp(sigma * _DEVIATES - sigma**2 / 2)
    return float(np.trapezoid(copies * latency * density * ndtr(_DEVIATES) ** (copies - 1), _DEVIATES))


def spread(lat_ms: np.ndarray, count: np.ndarray) -> float:
    """Standard deviation of the log of latency, from the bins of a histogram; NaN of nothing."""
    if not np.sum(count):
        return float("nan")
    logs = np.log(lat_ms)
    mean = np.average(logs, weights=count)
    return float(np.sqrt(np.average((logs - mean) ** 2, weights=count)))
