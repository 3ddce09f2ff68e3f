"""Stationarity on simulated samples: false alarms in correlated noise, and the falls that must be seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from checks.simulate import ar1
from diskbook.design.series import Samples
from diskbook.stats.gates.data import most_by_chance
from diskbook.stats.stationarity import _of_halves, rate_changed

TRIALS, RUNS = 8, 200


def steady(cv: float, phi: float, *, n: int = 60, runs: int = RUNS) -> np.ndarray:
    """Rates of comparisons, [run, arm, trial, second]."""
    return 1000 * np.exp(ar1(cv, phi, (runs, 2, TRIALS, n), np.random.default_rng(3)))


def judged(iops: np.ndarray) -> pd.DataFrame:
    names = np.arange(iops[..., 0].size)
    seconds = np.broadcast_to(np.arange(iops.shape[-1]), (len(names), iops.shape[-1]))
    cell_of = dict(zip(names.tolist(), (names // iops.shape[2]).tolist(), strict=True))
    return rate_changed([Samples(names, seconds, iops.reshape(len(names), -1))], pd.Series(cell_of))


def invalid(iops: np.ndarray) -> float:
    """Share of the comparisons that the gate calls invalid."""
    table = judged(iops)
    changed = (table["far"] | table["cell_change"].notna()).to_numpy(bool).reshape(len(iops), -1)
    moved = table["moved"].to_numpy(bool).reshape(changed.shape).sum(axis=1)
    return float((changed.any(axis=1) | (moved > most_by_chance(changed.shape[1]))).mean())


@pytest.mark.long
@pytest.mark.parametrize("phi", [0.0, 0.6, 0.8])
@pytest.mark.parametrize("cv", [0.003, 0.05, 0.10])
@pytest.mark.parametrize("n", [20, 60])
def test_steady_trials_are_rarely_called_changed(cv: float, phi: float, n: int) -> None:
    assert invalid(steady(cv, phi, n=n)) <= 0.05


def test_other_noise_than_supposed_gives_few_alarms() -> None:
    """Samples of different spread by trial; one odd sample at the end, as of a second that was cut."""
    noisy = 1000 * np.exp(np.log(steady(0.03, 0.6) / 1000) * np.array([1, 1, 1, 1, 1, 1, 1, 2.0])[:, None])
    assert invalid(noisy) <= 0.06
    cut = steady(0.005, 0.3)
    cut[:, :, ::3, -1] = 0.0
    assert invalid(cut) <= 0.05


def test_a_fall_of_10_percent_in_one_trial() -> None:
    fallen = steady(0.02, 0.5)
    fallen[:, 0, 3, 30:] *= 0.9
    assert invalid(fallen) >= 0.95


def test_a_fall_of_10_percent_in_all_trials_of_an_arm_shows_in_strong_noise() -> None:
    fallen = steady(0.10, 0.6)
    fallen[:, 1, :, 30:] *= 0.9
    assert invalid(fallen) >= 0.95
    table = judged(fallen)
    assert table["cell_change"].dropna().median() == pytest.approx(-0.105, abs=0.02)


@pytest.mark.parametrize("at", [6, 20, 40, 54])
@pytest.mark.parametrize("share", [0.36, 0.75])
def test_a_credit_that_runs_out_is_seen_wherever_it_does(at: int, share: float) -> None:
    fallen = steady(0.03, 0.6)
    fallen[:, 0, 0, at:] *= 1 - share
    table = judged(fallen)
    in_first = table["moved"].to_numpy(bool).reshape(RUNS, 2, TRIALS)[:, 0, 0]
    assert in_first.mean() >= 0.95
    assert judged(fallen[:, :, :2])["moved"].to_numpy(bool).reshape(RUNS, 2, 2)[:, 0, 0].mean() >= 0.95


def test_small_changes_are_not_told_however_sure() -> None:
    fallen = steady(0.002, 0.0)
    fallen[:, 0, 0, 30:] *= 0.98
    assert invalid(fallen) == 0.0


def test_trials_without_a_cell_are_each_alone_and_short_ones_untold() -> None:
    names = np.array(["a", "b"])
    iops = np.tile(np.where(np.arange(60) < 30, 1000.0, 500.0), (2, 1))
    table = rate_changed([Samples(names, np.tile(np.arange(60), (2, 1)), iops)])
    assert table["moved"].all() and table["cell_change"].isna().all()
    short = rate_changed(
        [Samples(names, np.tile(np.arange(12), (2, 1)), iops[:, 24:36])], pd.Series({"a": 1, "b": 1})
    )
    assert short["change"].isna().all() and not short["moved"].any()


@pytest.mark.parametrize("phi", [-0.3, 0.2, 0.7])
def test_the_variance_of_two_halves_is_that_of_their_covariances(phi: float) -> None:
    n = 5
    weights = np.repeat([-1.0, 1.0], n) / n
    lags = np.abs(np.subtract.outer(np.arange(2 * n), np.arange(2 * n)))
    assert _of_halves(np.array(phi), np.array(n)) == pytest.approx(weights @ phi**lags @ weights)
