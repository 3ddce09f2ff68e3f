"""Time within a trial and over a run: warm-up, the end of a credit, flat rates, drift."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from diskbook.design import series
from diskbook.stats import drift
from support import synthetic

RNG = np.random.default_rng(11)


def table(**trials: np.ndarray) -> pd.DataFrame:
    """Series of trials by name, one sample a second."""
    parts = [
        pd.DataFrame({"trial": name, "direction": "read", "second": np.arange(1.0, len(v) + 1), "iops": v})
        for name, v in trials.items()
    ]
    return pd.concat(parts, ignore_index=True)


def noise(n: int, level: float = 1000.0, cv: float = 0.02) -> np.ndarray:
    return level * (1 + RNG.normal(0, cv, n))


def test_reads_and_writes_are_added_and_order_is_irrelevant() -> None:
    both = pd.concat([table(a=np.full(25, 300.0)), table(a=np.full(25, 200.0)).assign(direction="write")])
    sync = table(a=np.full(25, 999.0)).assign(direction="sync")
    (part,) = series.samples(pd.concat([both, sync]).sample(frac=1, random_state=1))
    assert part.trial.tolist() == ["a"] and (part.iops == 500).all()
    assert (np.diff(part.second[0]) == 1).all()


def test_trials_of_several_lengths() -> None:
    found = series.samples(table(a=noise(25), b=noise(30), c=noise(25)))
    assert [(part.trial.tolist(), part.iops.shape[1]) for part in found] == [(["a", "c"], 25), (["b"], 30)]
    assert series.samples(None) == [] and series.samples(found) is found


def mser_by_hand(values: np.ndarray) -> int:
    batches = values[: len(values) // 5 * 5].reshape(-1, 5).mean(axis=1)
    scores = {d: batches[d:].var() / len(batches[d:]) for d in range(len(batches) // 2 + 1)}
    return 5 * min(scores, key=lambda d: scores[d])


@pytest.mark.parametrize("tau", [3.0, 6.0, 10.0])
def test_mser_as_by_hand(tau: float) -> None:
    values = noise(80) * (1 + 0.5 * np.exp(-np.arange(80) / tau))
    cut, unsettled = series.mser(values[None])
    assert cut[0] == mser_by_hand(values) > 0 and not unsettled[0]


def test_a_steady_trial_needs_no_cut_and_a_ramp_never_settles() -> None:
    steady, ramp = np.tile([990.0, 1010.0], 30), np.linspace(500, 1000, 60)
    found = series.diagnose(table(steady=steady, ramp=ramp, short=noise(12)))
    assert found.loc["steady", "mser_cut_s"] <= 5 and not found.loc["steady", "mser_unsettled"]
    assert found.loc["ramp", "mser_unsettled"]
    assert np.isnan(found.loc["short", "mser_cut_s"])


def test_mser_sees_no_credit_cliff_but_the_fall_is_found() -> None:
    cliff = np.concatenate([noise(41, 3500), noise(19, 120)])
    found = series.diagnose(table(cliff=cliff)).loc["cliff"]
    assert found["fell_at_s"] == 41
    assert (found["rate_before"], found["rate_after"]) == (
        pytest.approx(3500, rel=0.02),
        pytest.approx(120, rel=0.05),
    )


@pytest.mark.parametrize(
    "values",
    [
        noise(60),
        noise(60) * np.linspace(1, 0.7, 60),
        np.r_[noise(30, 120), noise(30, 3500)],
        np.full(60, 7.0),
    ],
    ids=["steady", "slow drift", "a rise", "constant"],
)
def test_what_is_no_fall_is_not_called_one(values: np.ndarray) -> None:
    found = series.diagnose(table(a=values)).loc["a"]
    # A line to 0.7 explains three quarters of its variance by one step, but falls by less than 20 %.
    assert np.isnan(found["fell_at_s"])


def test_missing_samples_are_not_assessable(recwarn) -> None:
    broken = noise(40)
    broken[5] = np.nan
    found = series.diagnose(table(a=broken, zero=np.zeros(40)))
    assert np.isnan(found.loc["a", "mser_cut_s"]) and np.isnan(found["fell_at_s"]).all()
    assert not recwarn.list


def test_flat_trials() -> None:
    found = series.flat_trials(table(cap=noise(40, cv=0.001), free=noise(40), short=noise(20, cv=0.001)))
    assert found == {"cap"}


def test_slope_as_scipy_and_common_to_replicates() -> None:
    blocks, values = np.arange(1.0, 9.0), 0.01 * np.arange(8) + RNG.normal(0, 0.005, 8)
    line = stats.linregress(blocks, values)
    found = drift.slopes(values[None], blocks)
    assert (float(found.mean), float(found.se)) == (pytest.approx(line.slope), pytest.approx(line.stderr))
    two = drift.slopes(np.stack([values, values + 5]), blocks)
    assert float(two.mean) == pytest.approx(line.slope) and two.df == 13


def drifting(**changes: float) -> pd.DataFrame:
    """Trials whose latency grows by a share a block, by arm."""
    truth = synthetic.Truth(block=0.0, trial=0.003)
    trials, _, _ = synthetic.tables(2, truth, n_blocks=8, loads=(synthetic.WRITE,))
    growth = trials["arm"].map(lambda arm: changes.get(arm, changes.get("every", 0.0)))
    return trials.assign(lat_mean_ms=trials["lat_mean_ms"] * (1 + growth) ** trials["block"])


def verdicts(trials: pd.DataFrame) -> pd.Series:
    return drift.drift(trials).set_index("arm")["verdict"]


def test_a_drift_that_all_share_is_told_from_that_of_one_arm() -> None:
    found = drift.drift(drifting(every=0.01)).set_index("arm")
    assert found.loc["all arms", "verdict"] == "drifts"
    assert found.loc["all arms", "change_per_block"] == pytest.approx(0.01, abs=0.002)
    assert found.loc["zrs-z1", "change_per_block"] == pytest.approx(0, abs=0.002)
    alone = drift.drift(drifting(**{"zrs-z1": 0.02})).set_index("arm")
    assert alone.loc["zrs-z1", "verdict"] == "drifts"
    assert alone.loc["zrs-z1", "change_per_block"] == pytest.approx(0.02 * 4 / 5, abs=0.003)


def test_too_few_blocks_say_nothing_of_drift(recwarn) -> None:
    trials, _, _ = synthetic.tables(n_blocks=2, loads=(synthetic.WRITE,))
    assert set(verdicts(trials)) == {"not assessable"}
    assert drift.drift(trials.iloc[:0]).empty
    assert not recwarn.list
