"""Percentiles of a typical trial and of all I/Os: exact against samples, silent where data are too few."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diskbook.design import grid
from diskbook.report.figures.percentiles import apart, curves
from diskbook.stats import percentiles
from support import synthetic


@pytest.mark.parametrize(("quantile", "least"), [(0.5, 20), (0.99, 1000), (0.999, 10_000), (0.9999, 100_000)])
def test_ten_ios_must_lie_beyond(quantile: float, least: int) -> None:
    assert grid.tail_needs(quantile) == least
    lat_ms = np.array([1.0, 2.0])
    assert np.isnan(percentiles.percentile(lat_ms, np.array([least - 2, 1]), quantile))
    assert percentiles.percentile(lat_ms, np.array([least - 1, 1]), quantile) == 1.0


def test_percentile_by_hand() -> None:
    # 100 I/Os: 90 at 1 ms, 8 at 2 ms, 2 at 5 ms.
    lat_ms, count = np.array([1.0, 2.0, 5.0]), np.array([900, 80, 20])
    assert [percentiles.percentile(lat_ms, count, q) for q in (0.5, 0.9, 0.98, 0.99)] == [1.0, 1.0, 2.0, 5.0]


def test_all_ios_and_a_typical_trial_are_told_apart() -> None:
    """Ten trials, one of them slow: the merged p99 is that of all I/Os, that of a typical trial is not."""
    rng = np.random.default_rng(4)
    samples = [rng.lognormal(0, 0.2, 2000) * (5 if n == 0 else 1) for n in range(10)]
    trials = synthetic.tables(n_blocks=10, loads=(synthetic.READ,))[0]
    trials = trials[trials["arm"] == "lrs-z1"].reset_index(drop=True)
    parts = []
    for name, values in zip(trials["trial"], samples, strict=True):
        edges, counts = np.unique((values * 1e6).astype(np.int64), return_counts=True)
        parts.append(pd.DataFrame({"trial": name, "direction": "read", "lat_ns": edges, "count": counts}))
    found = percentiles.percentiles(pd.concat(parts), trials.assign(ios=2000), (0.5, 0.99))
    exact = np.quantile(np.concatenate(samples), 0.99, method="inverted_cdf")
    of_each = np.array([np.quantile(values, 0.99) for values in samples])
    p50, p99 = (row for _, row in found.iterrows())
    assert p99["all_ios_ms"] == pytest.approx(exact, rel=1e-5) and p99["n_ios"] == 20_000
    assert p99["lat_ms"] == pytest.approx(np.exp(np.log(of_each).mean()), rel=0.01)
    # One trial of ten holds all I/Os beyond the p99 of all; the typical trial knows nothing of it.
    assert p99["apart"] and p99["all_ios_ms"] > 2 * p99["lat_ms"]
    assert (p99["n_half"], p99["n_trials"]) == (1, 10)
    assert p50["n_half"] > 3
    alike = pd.DataFrame({"trial": trials["trial"], "direction": "read", "lat_ns": 1_000_000, "count": 2000})
    (of_one_latency,) = percentiles.percentiles(alike, trials.assign(ios=2000), (0.5,))["n_half"]
    assert of_one_latency == 0  # no I/O lies beyond


def test_trials_alike_agree_with_all_their_ios() -> None:
    trials, bins, _ = synthetic.tables(n_blocks=6, loads=(synthetic.READ,))
    found = percentiles.percentiles(bins, trials, (0.5, 0.99))
    assert not found["apart"].any() and found["n_half"].between(2, 3).all()
    assert found["all_ios_ms"].to_numpy() == pytest.approx(found["lat_ms"].to_numpy(), rel=0.05)


def test_one_trial_with_too_few_ios_leaves_no_typical_trial() -> None:
    """In a closed loop it is the slow trials that have fewer: those that have enough are a selection."""
    trials, bins, _ = synthetic.tables(loads=(synthetic.READ,))
    short = trials["trial"].eq("r1-b1-1-lrs-z1-randread-qd1")
    trials = trials.assign(ios=trials["ios"].where(~short, 999))
    found = percentiles.percentiles(bins, trials, (0.5, 0.99)).set_index(["arm", "quantile"])
    row = found.loc[("lrs-z1", 0.99)]
    assert np.isnan(row["lat_ms"]) and row["all_ios_ms"] > 0 and not row["apart"]
    assert row["reason"] == "not every trial has the 1,000 I/Os that p99 needs"
    assert found.loc[("lrs-z1", 0.5), "lat_ms"] > 0 and found.loc[("zrs-z1", 0.99), "lat_ms"] > 0


def test_bins_that_name_no_run_are_refused_with_trials_of_several() -> None:
    trials, bins, _ = synthetic.tables(loads=(synthetic.READ,))
    both = pd.concat([trials, trials.assign(run="other")], ignore_index=True)
    for ask in (percentiles.merge, percentiles.percentiles):
        with pytest.raises(
            ValueError, match=r"holds 2 runs \(other, synthetic\).*analyse each run by itself"
        ):
            ask(pd.concat([bins, bins]), both)
    named = pd.concat([bins.assign(run=name) for name in ("synthetic", "other")], ignore_index=True)
    assert percentiles.merge(named, both)["count"].sum() == 2 * bins["count"].sum()
    assert set(percentiles.percentiles(named, both)["n_trials"]) == {8}


def test_few_ios_print_nothing_but_the_reason() -> None:
    trials, bins, _ = synthetic.tables(n_blocks=1, loads=(synthetic.READ,), draws=500)
    found = percentiles.percentiles(bins, trials.assign(ios=500)).set_index(["arm", "quantile"])
    assert found.loc[("lrs-z1", 0.5), ["lat_ms", "all_ios_ms"]].gt(0).all()
    assert found.loc[("lrs-z1", 0.99), ["lat_ms", "all_ios_ms"]].isna().all()
    assert found.loc[("lrs-z1", 0.99), "reason"] == "not every trial has the 1,000 I/Os that p99 needs"


def test_interval_comes_from_blocks() -> None:
    trials, bins, _ = synthetic.tables(loads=(synthetic.READ,))
    found = percentiles.percentiles(bins, trials).set_index(["arm", "quantile"]).loc[("lrs-z1", 0.5)]
    trial = trials.loc[trials["arm"] == "lrs-z1", "trial"]
    logs = np.log(percentiles.of_trials(bins, 0.5).xs("read", level="direction")[trial])
    assert found["lat_ms"] == pytest.approx(np.exp(logs.mean()))
    half = 3.182446 * logs.std() / 2  # t(0.975, 3), four blocks
    assert found["ci_high_ms"] / found["lat_ms"] == pytest.approx(np.exp(half), rel=1e-5)


def test_a_line_ends_where_ten_ios_remain() -> None:
    trials, bins, _ = synthetic.tables(n_blocks=1, loads=(synthetic.READ,), draws=1000)
    points = curves(percentiles.merge(bins, trials), ["randread-qd1"])
    line = points[points["arm"] == "lrs-z1"]
    assert line["quantile"].iloc[0] == pytest.approx(0.5)
    assert line["quantile"].iloc[-1] == pytest.approx(0.99)
    assert line["lat_ms"].is_monotonic_increasing


def test_labels_are_moved_apart_around_their_middle() -> None:
    moved = apart([0.2, 0.5, 0.5, 0.52, 0.9], 0.1)
    assert np.diff(moved).min() >= 0.1 - 1e-9
    assert moved[0] == 0.2 and moved[-1] == 0.9 and np.mean(moved[1:4]) == pytest.approx(0.50667, abs=1e-4)
    assert apart([], 0.1) == []


def fio_bins(lat_ms: np.ndarray, trial: str = "t") -> pd.DataFrame:
    """Histogram of latencies in fio's bins, 64 an octave, told by their middle."""
    ns = lat_ms * 1e6
    width = np.exp2(np.floor(np.log2(ns))) / 64
    middle, counts = np.unique(np.floor(ns / width) * width + width / 2, return_counts=True)
    return pd.DataFrame({"trial": trial, "direction": "read", "lat_ns": middle.astype(int), "count": counts})


@pytest.mark.parametrize("quantile", [0.5, 0.99, 0.999])
def test_a_percentile_is_exact_to_a_fraction_of_a_bin(quantile: float) -> None:
    rng = np.random.default_rng(3)
    samples = {f"t{n}": rng.lognormal(0.1 * n, 0.05, 40_000) for n in range(5)}
    made = percentiles.of_trials(pd.concat([fio_bins(v, name) for name, v in samples.items()]), quantile)
    for name, values in samples.items():
        assert made[name, "read"] == pytest.approx(np.quantile(values, quantile), rel=0.002)


def test_nothing_is_put_between_two_modes() -> None:
    """98 of 100 I/Os at 1 ms and two at 10 ms: no percentile lies between."""
    lat_ms = np.repeat([1.0, 10.0], [980, 20])
    for quantile, expected in ((0.5, 1.0), (0.9, 1.0), (0.979, 1.0), (0.985, 10.0), (0.999, 10.0)):
        assert percentiles.of_trials(fio_bins(lat_ms), quantile)["t", "read"] == pytest.approx(
            expected, rel=0.01
        )


def test_narrow_bins_of_other_tools_do_not_overlap() -> None:
    bins = pd.DataFrame(
        {"trial": "t", "direction": "read", "lat_ns": [1_000_000, 1_001_000], "count": [500, 500]}
    )
    assert percentiles.of_trials(bins, 0.5)["t", "read"] == pytest.approx(1.0005, rel=1e-9)
    assert percentiles.of_trials(bins.iloc[:0], 0.5).empty


def test_the_line_of_a_mixed_load_is_that_of_all_its_ios() -> None:
    both = pd.DataFrame({"lat_ms": [10.0, 20.0, 0.1, 0.2], "count": [500, 500, 500, 500]})
    rows = both.assign(arm="a", workload="mixed", direction=["read", "read", "write", "write"])
    line = curves(rows, ["mixed"])
    assert line["lat_ms"].is_monotonic_increasing and set(line["n_ios"]) == {2000}
    assert line["lat_ms"].iloc[0] == 0.2 and line["lat_ms"].iloc[-1] == 20.0
