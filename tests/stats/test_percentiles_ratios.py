"""Ratios of percentiles, from pairs of trials."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from diskbook.design.model import Comparison
from diskbook.stats import percentiles, ratios
from diskbook.stats.percentiles import RATIO_COLUMNS, percentile_ratios
from support import synthetic

ITEM = Comparison(arm="zrs-z1", base_arm="lrs-z1", workload="randwrite-qd1", pairing="same-machine")


def made(replicates: int = 3, draws: int = 20_000):
    trials, bins, _ = synthetic.tables(
        4, n_replicates=replicates, n_blocks=3, loads=(synthetic.WRITE,), samples=1, draws=draws
    )
    # Each trial's own percentiles from its own bins, so that both sources tell of the same I/Os.
    noise = np.exp(np.random.default_rng(1).normal(0, 0.01, len(trials)))
    return trials.assign(lat_p99_ms=trials["lat_p99_ms"] * noise), bins


def test_ratio_and_interval_are_those_of_paired_trials() -> None:
    trials, bins = made()
    found = percentile_ratios(bins, trials, [ITEM]).set_index(["quantile", "scope"])
    row = found.loc[(0.99, "disks like these")]
    assert row["ratio"] == pytest.approx(3.2 / 1.3, rel=0.05)
    own = percentiles.of_trials(bins, 0.99)
    exact = own.reindex(pd.MultiIndex.from_frame(trials[["trial", "direction"]])).to_numpy()
    means = ratios.log_means(trials.assign(lat_p99_ms=exact), "lat_p99_ms")
    paired = ratios.over_replicates(
        ratios.block_log_ratios(means, "zrs-z1", "lrs-z1", "randwrite-qd1", "write")
    )
    assert (row["ratio"], row["ci_low"], row["ci_high"]) == pytest.approx(
        (paired.ratio, paired.low, paired.high)
    )


def test_too_few_ios_are_refused_with_the_number_needed() -> None:
    trials, bins = made(draws=200)
    found = percentile_ratios(bins, trials, [ITEM]).set_index(["quantile", "scope"])
    row = found.loc[(0.999, "these disks")]
    assert math.isnan(row["ratio"]) and math.isnan(row["ci_low"]) and "10,000 I/Os" in row["reason"]


def test_short_trials_have_the_ratio_of_all_ios_alone() -> None:
    trials, bins = made()
    found = percentile_ratios(bins, trials.assign(ios=500), [ITEM])
    p99 = found[found["quantile"] == 0.99]
    assert p99[["ratio", "ci_low", "ci_high"]].isna().all(axis=None) and not p99["apart"].any()
    assert p99["all_ios_ratio"].to_numpy() == pytest.approx(3.2 / 1.3, rel=0.05)
    assert p99["reason"].str.contains("not every trial has the 1,000 I/Os").all()


def test_a_bursty_arm_has_another_ratio_of_all_ios() -> None:
    """Of the 9 trials of ZRS one is 50 times as slow: the typical trial's ratio hardly knows it."""
    trials, bins = made()
    slow = bins["trial"].eq(trials.loc[trials["arm"] == "zrs-z1", "trial"].iloc[0])
    bursty = bins.assign(lat_ns=bins["lat_ns"].where(~slow, 50 * bins["lat_ns"]))
    found = percentile_ratios(bursty, trials, [ITEM]).set_index(["quantile", "scope"])
    row, quiet = found.loc[(0.99, "these disks")], found.loc[(0.5, "these disks")]
    typical = 3.2 / 1.3 * 50 ** (1 / 9)
    assert row["ratio"] == pytest.approx(typical, rel=0.05) and row["ci_low"] < typical < row["ci_high"]
    assert row["apart"] and row["all_ios_ratio"] > 10 * 3.2 / 1.3
    assert quiet["apart"] and quiet["all_ios_ratio"] == pytest.approx(3.2 / 1.3, rel=0.1)


def test_one_replicate_refuses_the_general_claim_here_too() -> None:
    trials, bins = made(replicates=1)
    found = percentile_ratios(bins, trials, [ITEM]).set_index(["quantile", "scope"])
    assert math.isnan(found.loc[(0.99, "disks like these"), "ratio"])
    assert found.loc[(0.99, "these disks"), "ci_low"] < found.loc[(0.99, "these disks"), "ratio"]


def test_nothing_measured_gives_an_empty_table() -> None:
    trials, bins = made(replicates=1)
    found = percentile_ratios(bins.iloc[:0], trials.iloc[:0], [ITEM])
    assert found.empty and list(found.columns) == RATIO_COLUMNS
