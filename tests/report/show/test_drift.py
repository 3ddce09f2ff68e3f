"""Sentences on what changed within trials and over the run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diskbook.design.series import diagnose
from diskbook.report.show import facts
from diskbook.stats import drift
from support import synthetic


def series(rates: np.ndarray) -> pd.DataFrame:
    """One trial of reads, one sample a second."""
    seconds = np.arange(1.0, len(rates) + 1)
    return pd.DataFrame({"trial": "t1", "direction": "read", "second": seconds, "iops": rates})


def test_a_credit_that_runs_out_is_told_with_its_moment() -> None:
    rates = np.r_[np.full(20, 30000.0), np.full(20, 5000.0)]
    said = facts.within(diagnose(series(rates)))
    assert said[0].startswith(
        "in 1 of 1 trials the rate fell for good, soonest after 20 s, from 30,000 to 5,000"
    )


def test_a_steady_trial_says_so() -> None:
    rates = 5000 + np.random.default_rng(1).normal(0, 20, 40)
    assert "in none of 1 trials" in facts.within(diagnose(series(rates)))[0]


def test_no_series_is_said() -> None:
    empty = pd.DataFrame(columns=["trial", "direction", "second", "iops"])
    assert "is not known" in facts.within(diagnose(empty))[0]


@pytest.mark.parametrize(("n_blocks", "said"), [(2, "that takes 3 blocks"), (6, "all arms together")])
def test_drift_over_the_run(n_blocks: int, said: str) -> None:
    trials = synthetic.tables(n_blocks=n_blocks, loads=(synthetic.WRITE,))[0]
    labels = {name: name.upper() for name in trials["arm"].unique()}
    found = facts.over_run(drift.drift(trials), labels, {"randwrite-qd1": "4K write"})
    assert any(said in item for item in found)


def test_an_arm_that_drifts_alone_is_named() -> None:
    trials = synthetic.tables(n_blocks=6, loads=(synthetic.WRITE,))[0]
    own = trials["arm"] == "zrs-z3"
    trials.loc[own, "lat_mean_ms"] *= 1.2 ** trials.loc[own, "block"]
    labels = {name: name.upper() for name in trials["arm"].unique()}
    said = facts.over_run(drift.drift(trials), labels, {"randwrite-qd1": "4K write"})[-1]
    assert "ZRS-Z3, 4K write +1" in said and "5 in 100 do by chance" in said
