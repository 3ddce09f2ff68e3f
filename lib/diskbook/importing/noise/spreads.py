"""How much runs of one test vary: within a machine's day, from day to day, week to week, machine to machine.

For long series of single numbers (one a run) of a few long-lived machines, and of many fresh ones. All
deviations are of natural logs. Classical components by the method of moments for unbalanced nested designs
(S. Searle et al., Variance Components, 1992, chapter 3), robust ones as 1.4826 MAD; intervals by drawing
VM-weeks again (weeks for fresh machines), 95 %. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

MAD = 1.4826
DRAWS = 400
WINDOW, LEAST_IN_WINDOW = 25, 13
LAGS_H = (0.5, 3.0, 24.0, 168.0, 672.0)
LAG_TOLERANCE = 1 / 6
"""Two runs are h hours apart when they are within a sixth of that."""
TIMES_H = (2.0, 12.0, 72.0, 500.0)
"""Time constants assumed for the wander of a machine."""
STEPS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377)
"""Pairs of runs that the wander is fitted to: so many runs apart."""
LEAST_PAIRS_IN_BIN = 30
ROBUST_SDS = 10.0
ENDS = (0.025, 0.975)
_CELLS = np.concatenate([[0.0], np.geomspace(1e-6, 20, 800)])


class Spread(NamedTuple):
    """A standard deviation, or a share, with its 95 % interval and the number of what it was made of."""

    name: str
    hours: float | None
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Series:
    """Runs of one cell: logs of the rate about their mean, and what they are grouped by.

    - `log`: of the rate, less its mean.
    - `hours`: middle of each run, since the first.
    - `vm`, `day`, `week`: numbers of the machine, of its day and of its week; runs are sorted by machine and
      time.
    """

    log: np.ndarray
    hours: np.ndarray
    vm: np.ndarray
    day: np.ndarray
    week: np.ndarray


def series(runs: pd.DataFrame, fresh: bool = False) -> Series:
    """Group runs by machine, day and week (UTC, weeks from Monday); fresh machines by day and week alone.

    - `runs`: columns rate, middle (a time without zone) and vm.
    """
    runs = runs.assign(vm=0) if fresh else runs
    runs = runs.sort_values(["vm", "middle"], kind="stable")
    middle, vm = runs["middle"], runs["vm"].to_numpy()
    days = (middle - pd.Timestamp("1970-01-05")) // pd.Timedelta(days=1)  # a Monday
    codes = {
        name: pd.MultiIndex.from_arrays([vm, values]).factorize()[0]
        for name, values in (("day", days), ("week", days // 7))
    }
    log = np.log(runs["rate"].to_numpy(float))
    hours = (middle - middle.min()).dt.total_seconds().to_numpy() / 3600
    return Series(log - log.mean(), hours, pd.factorize(vm)[0], codes["day"], codes["week"])


# Classical components


class _Weeks(NamedTuple):
    """Sums of each VM-week, which all components follow from; one row a week."""

    vm: np.ndarray
    n: np.ndarray
    days: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    day_squares: np.ndarray
    day_sizes: np.ndarray


def _weeks(data: Series) -> _Weeks:
    size = np.bincount(data.day).astype(float)
    total = np.bincount(data.day, data.log)
    week_of_day = np.zeros(len(size), dtype=int)
    week_of_day[data.day] = data.week
    vm = np.zeros(data.week.max() + 1, dtype=int)
    vm[data.week] = data.vm
    return _Weeks(
        vm,
        np.bincount(data.week).astype(float),
        np.bincount(week_of_day).astype(float),
        np.bincount(data.week, data.log),
        np.bincount(data.week, data.log**2),
        np.bincount(week_of_day, total**2 / size),
        np.bincount(week_of_day, size**2),
    )


def draws(vm_of_week: np.ndarray, rng: np.random.Generator, number: int = DRAWS) -> np.ndarray:
    """How often each VM-week is drawn: the first row once each, then weeks of each machine drawn again."""
    counts = np.ones((number + 1, len(vm_of_week)))
    for vm in np.unique(vm_of_week):
        own = np.flatnonzero(vm_of_week == vm)
        counts[1:, own] = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=number)
    return counts


def _variances(weeks: _Weeks, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variances of run, day and week, one value a row of `counts`; never below zero.

    Each sum of squares is set to its expectation, from the innermost level outwards.
    """
    vms = np.eye(weeks.vm.max() + 1)[weeks.vm]

    def of_vm(values: np.ndarray) -> np.ndarray:
        """Sums over the weeks of each machine."""
        return np.asarray((counts * values) @ vms)

    with np.errstate(all="ignore"):
        run = counts @ (weeks.squares - weeks.day_squares) / (counts @ (weeks.n - weeks.days))
        within = weeks.day_squares - weeks.total**2 / weeks.n
        left = counts @ within - counts @ (weeks.days - 1) * run
        day = left / (counts @ (weeks.n - weeks.day_sizes / weeks.n))
        n = of_vm(weeks.n)
        between = of_vm(weeks.total**2 / weeks.n) - of_vm(weeks.total) ** 2 / n
        of_day = of_vm(weeks.day_sizes / weeks.n) - of_vm(weeks.day_sizes) / n
        of_week = n - of_vm(weeks.n**2) / n
        left = np.nansum(between - np.maximum(day, 0)[:, None] * of_day, axis=1)
        left -= (counts.sum(axis=1) - vms.shape[1]) * run
        week = left / np.nansum(of_week, axis=1)
    return np.maximum(run, 0), np.maximum(day, 0), np.maximum(week, 0)


def long_components(data: Series, rng: np.random.Generator) -> Iterator[Spread]:
    """Components of long-lived machines: run, day, week, machine, and their robust kin; NaN where none.

    "long-vm" is the standard deviation of the machines' medians, with the interval of chi-square.
    """
    weeks = _weeks(data)
    counts = draws(weeks.vm, rng)
    numbers = (len(data.log), int(data.day.max()) + 1, len(weeks.n))
    for name, variance, n in zip(("run", "day", "week"), _variances(weeks, counts), numbers, strict=True):
        yield _drawn(name, np.sqrt(variance), n)
    medians = pd.Series(data.log).groupby(data.vm).median()
    if len(medians) > 1:
        df, sd = len(medians) - 1, float(medians.std())
        low, high = (sd * float(np.sqrt(df / special.chdtri(df, end))) for end in ENDS)
        yield Spread("long-vm", None, sd, low, high, len(medians))
    yield _robust("run-robust", None, residuals(data), data.week, counts)
    for hours in LAGS_H:
        first, second = _apart(data, hours)
        if len(first) >= LEAST_PAIRS_IN_BIN:
            yield _robust("apart", hours, data.log[second] - data.log[first], data.week[first], counts)
    yield from _wander(data, counts)


def fresh_components(data: Series, rng: np.random.Generator, run: Spread | None) -> Iterator[Spread]:
    """Components of fresh machines: within a day, its robust core, and the day common to all.

    Less `run`, of long-lived machines, what is left of "fresh" is machine and disk ("fresh-less-run").
    """
    weeks = _weeks(data)
    counts = draws(weeks.vm, rng)
    with np.errstate(all="ignore"):
        n, total = counts @ weeks.n, counts @ weeks.total
        within = counts @ (weeks.squares - weeks.day_squares) / (counts @ (weeks.n - weeks.days))
        between = counts @ weeks.day_squares - total**2 / n - (counts @ weeks.days - 1) * within
        day = between / (n - counts @ weeks.day_sizes / n)
    yield _drawn("fresh", np.sqrt(within), len(data.log))
    size = np.bincount(data.day)[data.day]  # a median of few takes part of their spread with it
    several = size > 1
    if several.any():
        core = from_day(data)[several] * np.sqrt(size[several] / (size[several] - 1))
        yield _robust("fresh-robust", None, core, data.week[several], counts)
    if run is not None:
        yield _drawn("fresh-less-run", np.sqrt(np.maximum(within - run.value**2, 0)), len(data.log))
    yield _drawn("calendar-day", np.sqrt(np.maximum(day, 0)), int(data.day.max()) + 1)


def _drawn(name: str, values: np.ndarray, n: int) -> Spread:
    """First value, with the quantiles of the others; the interval always holds the value.

    All are NaN where there is nothing to compute it from, such as weeks of one week.
    """
    known = values[1:][np.isfinite(values[1:])]
    if not np.isfinite(values[0]) or not len(known):
        return Spread(name, None, np.nan, np.nan, np.nan, n)
    value, (low, high) = float(values[0]), np.quantile(known, ENDS)
    return Spread(name, None, value, min(float(low), value), max(float(high), value), n)


# Robust components


def residuals(data: Series) -> np.ndarray:
    """Logs about the median of the 25 runs of the same machine around each run (fewer at the ends)."""
    rolled = (
        pd.Series(data.log)
        .groupby(data.vm)
        .rolling(WINDOW, center=True, min_periods=LEAST_IN_WINDOW)
        .median()
        .to_numpy()
    )
    medians: np.ndarray = np.where(np.isnan(rolled), data.log, rolled)
    return np.asarray(data.log - medians)


def from_day(data: Series) -> np.ndarray:
    """Logs about the median of their day."""
    medians = pd.Series(data.log).groupby(data.day).transform("median")
    return np.asarray(data.log - medians.to_numpy(float))


def _robust(
    name: str, hours: float | None, values: np.ndarray, week: np.ndarray, counts: np.ndarray
) -> Spread:
    """1.4826 times the median distance from the median; its interval from histograms of each week."""
    distances = np.abs(values - np.median(values))
    ends = MAD * np.nanquantile(_medians(distances, week, counts)[1:], ENDS)
    value = MAD * float(np.median(distances))
    return Spread(name, hours, value, min(float(ends[0]), value), max(float(ends[1]), value), len(values))


def _medians(distances: np.ndarray, week: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Median of the distances in each drawing, to 2 % of itself: weeks are summed as histograms."""
    size = counts.shape[1]
    cell = np.searchsorted(_CELLS, distances, side="right") - 1
    histogram = np.bincount(week * len(_CELLS) + cell, minlength=size * len(_CELLS)).reshape(size, -1)
    summed = np.cumsum(counts @ histogram, axis=1)
    at = (summed >= summed[:, -1:] / 2).argmax(axis=1)
    return np.asarray(np.where(summed[:, -1] > 0, _CELLS[at], np.nan))


def _apart(data: Series, hours: float) -> tuple[np.ndarray, np.ndarray]:
    """Runs, and for each the run of the same machine that is nearest to so many hours later."""
    step = 10 * (data.hours.max() + hours)  # machines lie far from each other on one axis
    at = data.hours + step * data.vm
    right = np.clip(np.searchsorted(at, at + hours), 1, len(at) - 1)
    nearest = np.where(at[right] - at - hours < at + hours - at[right - 1], right, right - 1)
    kept = np.abs(at[nearest] - at - hours) <= LAG_TOLERANCE * hours
    return np.flatnonzero(kept), nearest[kept]


def _wander(data: Series, counts: np.ndarray) -> Iterator[Spread]:
    """Nugget and wander: nonnegative least squares of half the robust variance of differences on their lag.

    Model: nugget + sum of s^2 (1 - exp(-lag / time)) over `TIMES_H`; neighbouring times trade off.
    """
    pairs = [_step(data, step) for step in STEPS]
    first, second = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    lag = data.hours[second] - data.hours[first]
    edges = np.geomspace(0.25, 1500, 19)
    which = np.digitize(lag, edges)
    rows: list[tuple[float, int, np.ndarray]] = []
    for number in range(1, len(edges)):
        chosen = which == number
        if chosen.sum() >= LEAST_PAIRS_IN_BIN:
            distances = np.abs(data.log[second[chosen]] - data.log[first[chosen]])
            medians = _medians(distances, data.week[first[chosen]], counts)
            medians[0] = np.median(distances)
            rows.append((float(np.median(lag[chosen])), int(chosen.sum()), (MAD * medians) ** 2 / 2))
    if len(rows) <= len(TIMES_H):
        return
    lags, numbers = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    halves = np.array([row[2] for row in rows])
    model = np.column_stack([np.ones(len(rows)), *(1 - np.exp(-lags / time) for time in TIMES_H)])
    fits = np.array([_fit(model, half, numbers) for half in halves.T])
    for column, hours in enumerate((None, *TIMES_H)):
        spread = _drawn("wander" if column else "nugget", np.sqrt(fits[:, column]), int(numbers.sum()))
        yield spread._replace(hours=hours)


def _step(data: Series, step: int) -> tuple[np.ndarray, np.ndarray]:
    first = np.arange(max(0, len(data.log) - step))
    first = first[data.vm[first] == data.vm[first + step]]
    return first, first + step


def _fit(model: np.ndarray, half: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    known = np.isfinite(half) & (half > 0)
    if known.sum() < model.shape[1]:
        return np.full(model.shape[1], np.nan)
    weight = np.sqrt(numbers[known]) / half[known]
    solution, _ = optimize.nnls(model[known] * weight[:, None], half[known] * weight)
    return np.asarray(solution)


# Shares


def long_shares(data: Series) -> Iterator[Spread]:
    """Shares of slow and fast runs about the median of 25, with Poisson intervals; skewness and kurtosis.

    "Slower by 10 %" is a time 1.1 times as long: a log rate lower by log 1.1.
    """
    left = residuals(data)
    yield poisson("slow-runs-10", left < -np.log(1.1))
    yield poisson("slow-runs-50", left < -np.log(1.5))
    yield poisson("fast-runs-10", left > np.log(1.1))
    yield Spread("skewness", None, float(stats.skew(left)), np.nan, np.nan, len(left))
    yield Spread("excess-kurtosis", None, float(stats.kurtosis(left)), np.nan, np.nan, len(left))
    far = ROBUST_SDS * MAD * float(np.median(np.abs(left - np.median(left))))
    if far > 0:
        for name, share in (
            ("slow-runs-10-sd", (left < -far).mean()),
            ("fast-runs-10-sd", (left > far).mean()),
        ):
            yield Spread(name, None, float(share), np.nan, np.nan, len(left))


def fresh_shares(data: Series, rng: np.random.Generator) -> Iterator[Spread]:
    """Shares of fresh machines slower than the median of their day, with intervals over weeks."""
    counts = draws(_weeks(data).vm, rng)
    left, n = from_day(data), counts @ np.bincount(data.week)
    for name, factor in (("slow-pairs-10", 1.1), ("slow-pairs-20", 1.2)):
        slow = np.bincount(data.week, left < -np.log(factor), minlength=counts.shape[1])
        yield _drawn(name, (counts @ slow) / n, len(left))


def poisson(name: str, event: np.ndarray) -> Spread:
    """Share of runs in which something happened, with the exact Poisson interval of its number."""
    n, k = len(event), int(event.sum())
    low = float(special.chdtri(2 * k, ENDS[1])) / 2 if k else 0.0
    return Spread(name, None, k / n, low / n, float(special.chdtri(2 * k + 2, ENDS[0])) / 2 / n, n)


def differs(new: Any, old: Any) -> bool:
    """Whether two estimates, each (value, low, high), contradict: neither value in the other's interval."""
    (value, *ends), (other, *others) = new, old
    if any(pd.isna(end) for end in (*ends, *others)):
        return bool(abs(value - other) > 0.1 * max(abs(value), abs(other)))
    return not (ends[0] <= other <= ends[1] or others[0] <= value <= others[1])
