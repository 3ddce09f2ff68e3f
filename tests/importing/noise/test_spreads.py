"""Components of variance of long series: by hand, against planted ones, and what intervals cover."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diskbook.importing.noise import spreads as noise
from diskbook.importing.noise.spreads import Series, Spread


def data_of(log: np.ndarray, hours: np.ndarray, vm: np.ndarray) -> Series:
    middle = pd.Timestamp("2023-05-29") + pd.to_timedelta(hours, unit="h")
    return noise.series(pd.DataFrame({"rate": np.exp(log), "middle": middle, "vm": vm}))


def nested(rng: np.random.Generator, weeks: int, run: float, day: float, week: float) -> Series:
    """Two machines with 3 to 9 runs a day, normal components."""
    parts = []
    for vm in range(2):
        days = np.repeat(np.arange(weeks * 7), rng.integers(3, 10, weeks * 7))
        log = rng.normal(0, week, weeks)[days // 7] + rng.normal(0, day, weeks * 7)[days]
        log = log + rng.normal(0, run, len(days))
        parts.append((log, 24 * days + rng.uniform(0, 23.9, len(days)), np.full(len(days), vm)))
    return data_of(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def by_name(spreads: list[Spread]) -> dict[tuple[str, float | None], Spread]:
    return {(spread.name, spread.hours): spread for spread in spreads}


def test_components_by_hand() -> None:
    """One machine, two weeks of two days of two runs: sums of squares 0.04, 0.16 and 1.28, df 4, 2 and 1.

    Run .04 / 4 = .01; day (.16 - 2 x .01) / 4 = .035; week (1.28 - .01 - 2 x .035) / 4 = .3.
    """
    week, day = np.repeat([0.4, -0.4], 4), np.tile(np.repeat([0.1414213562, -0.1414213562], 2), 2)
    log = week + day + np.tile([0.0707106781, -0.0707106781], 4)
    hours = np.repeat([0, 24, 168, 192], 2) + np.tile([1.0, 2.0], 4)
    weeks = noise._weeks(data_of(log, hours, np.zeros(8)))
    variances = noise._variances(weeks, np.ones((1, 2)))
    assert [float(value[0]) for value in variances] == pytest.approx([0.01, 0.035, 0.3])


@pytest.mark.long
def test_intervals_cover_the_planted_components() -> None:
    """In 60 sets of two machines over 40 weeks; week components of 80 weeks are the least sharp."""
    rng, truth = np.random.default_rng(5), {"run": 0.01, "day": 0.008, "week": 0.02}
    held = dict.fromkeys(truth, 0)
    for _ in range(60):
        data = nested(rng, 40, *truth.values())
        weeks = noise._weeks(data)
        values = noise._variances(weeks, noise.draws(weeks.vm, rng, 200))
        for name, variance in zip(truth, values, strict=True):
            spread = noise._drawn(name, np.sqrt(variance), 1)
            held[name] += spread.low <= truth[name] <= spread.high
    assert min(held.values()) >= 52, held


@pytest.mark.long
def test_wander_and_nugget_are_told_apart() -> None:
    """Exponential covariances of 2 h and 500 h with noise of single runs, runs 1.4 h apart on average."""
    rng, parts = np.random.default_rng(8), []
    for vm in range(3):
        hours = np.cumsum(rng.exponential(1.2, 6000) + 0.2)
        log = rng.normal(0, 0.005, len(hours))
        for time, sd in ((2.0, 0.006), (500.0, 0.018)):
            kept = np.exp(-np.diff(hours, prepend=0) / time)
            state, steps = 0.0, rng.normal(0, sd, len(hours))
            values = np.empty(len(hours))
            for number, (share, step) in enumerate(zip(kept, steps, strict=True)):
                state = share * state + np.sqrt(1 - share**2) * step
                values[number] = state
            log += values
        parts.append((log, hours, np.full(len(hours), vm)))
    data = data_of(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    spreads = by_name(list(noise.long_components(data, rng)))
    assert spreads["nugget", None].value == pytest.approx(0.005, rel=0.15)
    fast = np.hypot(spreads["wander", 2.0].value, spreads["wander", 12.0].value)
    slow = np.hypot(spreads["wander", 72.0].value, spreads["wander", 500.0].value)
    assert fast == pytest.approx(0.006, rel=0.25) and slow == pytest.approx(0.018, rel=0.3)
    # Two runs 24 h apart: 2 (.005^2 + .006^2 + .018^2 (1 - exp(-24 / 500))).
    expected = np.sqrt(2 * (0.005**2 + 0.006**2 + 0.018**2 * (1 - np.exp(-24 / 500))))
    assert spreads["apart", 24.0].value == pytest.approx(expected, rel=0.05)


def test_apart_pairs_are_of_one_machine_and_near_the_lag() -> None:
    data = data_of(np.zeros(6), np.array([0, 3.1, 9, 0, 2.4, 3.0]), np.array([0, 0, 0, 1, 1, 1]))
    first, second = noise._apart(data, 3.0)
    assert list(zip(first, second, strict=True)) == [(0, 1), (3, 5)]


def test_poisson_intervals_and_differences() -> None:
    share = noise.poisson("slow", np.arange(10420) < 8)
    # The table's own row: 8 of 10,420, 0.000331 to 0.00151.
    assert share[2:] == (pytest.approx(0.000768, rel=1e-3), pytest.approx(0.000331, rel=1e-2),
                         pytest.approx(0.00151, rel=1e-2), 10420)  # fmt: skip
    assert noise.poisson("none", np.zeros(10, bool)).low == 0
    assert noise.differs((1, 0.9, 1.1), (1.3, 1.2, 1.4)) and not noise.differs((1, 0.9, 1.4), (1.3, 1.2, 1.4))
    assert noise.differs((1, np.nan, np.nan), (1.2, 1, 2))
