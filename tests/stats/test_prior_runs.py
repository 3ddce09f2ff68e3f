"""A narrower interval from earlier runs of the same cell: hand-worked numbers, guards, simulated coverage."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from diskbook.stats import prior_runs, ratios


def log_ratios(values: list[list[float]]) -> pd.Series:
    """Log ratios by replicate and block."""
    index = [(r + 1, b + 1) for r, row in enumerate(values) for b in range(len(row))]
    flat = [value for row in values for value in row]
    return pd.Series(flat, index=pd.MultiIndex.from_tuples(index, names=["replicate", "block"]))


def prior(sd: float, *dfs: int) -> prior_runs.Prior:
    return prior_runs.pool(prior_runs.Past(f"old-{n}", sd**2, df) for n, df in enumerate(dfs, 1))


def test_a_past_run_is_the_spread_of_its_replicate_means() -> None:
    found = prior_runs.past("old", log_ratios([[0.08, 0.12], [0.37, 0.43], [0.25]]))
    # Means 0.1, 0.4, 0.25: deviations -0.15, 0.15, 0.
    assert (found.variance, found.df) == (pytest.approx(2 * 0.15**2 / 2), 2)


def test_runs_are_pooled_by_their_degrees_of_freedom() -> None:
    found = prior_runs.pool([prior_runs.Past("a", 0.0004, 1), prior_runs.Past("b", 0.0001, 3)])
    assert (found.variance, found.df, found.runs) == (pytest.approx((0.0004 + 3 * 0.0001) / 4), 4, "a, b")


def test_moderated_interval_by_hand() -> None:
    # Two replicates, 0.10 and 0.12: s^2 = .0002 with 1 df. History: s.d. 1 % with 4 df, counted 1.25 times:
    # .00015625. s~^2 = (4 * .00015625 + .0002) / 5 = .000165; se = sqrt(.000165 / 2) = .00908295;
    # t(0.975, 5) = 2.570582: half-width .0233485.
    found = prior_runs.moderated(log_ratios([[0.10], [0.12]]), prior(0.01, 4))
    assert found.refusal == ""
    assert found.estimate.ratio == pytest.approx(math.exp(0.11))
    assert math.log(found.estimate.high) == pytest.approx(0.11 + 0.0233485, abs=1e-6)
    assert math.log(found.estimate.low) == pytest.approx(0.11 - 0.0233485, abs=1e-6)
    assert (found.estimate.df, found.estimate.scope) == (5, "disks like these")
    # Without it: t(0.975, 1) = 12.7062 times sqrt(.0002 / 2) = .01.
    assert math.log(found.plain.high) == pytest.approx(0.11 + 0.127062, abs=1e-6)
    assert found.saved == "±2.4 % with the history, ±13.5 % without it"


def test_replicates_that_agree_by_chance_get_a_wider_interval() -> None:
    found = prior_runs.moderated(log_ratios([[0.1000], [0.1001]]), prior(0.01, 4))
    assert found.estimate.high > found.plain.high
    assert found.saved.endswith("these replicates agree more than the history lets expect")


def test_the_runs_of_the_history_are_named_in_the_result() -> None:
    found = prior_runs.moderated(log_ratios([[0.10], [0.12]]), prior(0.01, 2, 2))
    assert found.estimate.method.endswith("history old-1, old-2")
    assert found.plain.method == "t over replicates"


def test_p_values_follow_the_moderated_interval() -> None:
    one = prior_runs.moderated(log_ratios([[0.02], [0.03]]), prior(0.01, 4)).estimate
    assert one.low > 1 and one.p_difference < 0.05
    assert one.p_difference == pytest.approx(2 * stats.t.sf(0.025 / one.log_se, 5))


def test_a_noisier_run_has_its_own_interval() -> None:
    values = log_ratios([[0.05], [0.15], [0.10]])
    found = prior_runs.moderated(values, prior(0.01, 4, 4))
    assert "F-test" in found.refusal and "s.d. of 5 %" in found.refusal
    assert found.estimate == found.plain == ratios.over_replicates(values)
    assert found.saved.startswith("the history is not used")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([[0.1, 0.2]], "1 replicate"),
        ([[0.1], [0.11], [0.12], [0.13], [0.14]], "5 replicates speak for themselves"),
        ([[0.1], [0.1]], "every log ratio is the same"),
        ([], "0 replicates"),
    ],
)
def test_where_a_history_does_not_apply(values: list[list[float]], reason: str) -> None:
    data = log_ratios(values) if values else np.empty((0, 2))
    found = prior_runs.moderated(data, prior(0.01, 4))
    assert reason in found.refusal
    assert found.estimate is found.plain


def test_what_is_no_history() -> None:
    with pytest.raises(ValueError, match="1 replicate, so it shows no spread"):
        prior_runs.past("old", log_ratios([[0.1, 0.2]]))
    with pytest.raises(ValueError, match="all the same"):
        prior_runs.past("old", log_ratios([[0.1], [0.1]]))
    with pytest.raises(ValueError, match="at least one run"):
        prior_runs.pool([])
    with pytest.raises(ValueError, match="named twice"):
        prior_runs.pool([prior_runs.Past("a", 0.1, 1), prior_runs.Past("a", 0.1, 1)])


HISTORIES = [(1,), (2,), (2, 2), (4, 4), (4, 4, 4, 4, 4)]


@pytest.mark.long
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("past_df", HISTORIES)
def test_coverage_where_the_history_is_used(n: int, past_df: tuple[int, ...]) -> None:
    """93 % or more for a run as noisy as its history and 1.25 times as noisy, 20,000 runs each."""
    for factor in (1.0, prior_runs.TOLERATED):
        printed, used = prior_runs.coverage(n, past_df, factor)
        assert printed >= used >= prior_runs.LEAST_COVERAGE
    # Earlier runs that differ among themselves (s.d. of their log s.d. 0.3).
    assert prior_runs.coverage(n, past_df, spread_of_runs=0.3)[1] >= prior_runs.LEAST_COVERAGE


def test_beyond_what_is_tolerated_coverage_falls_and_the_docstring_says_so() -> None:
    assert 0.78 < prior_runs.coverage(2, (4, 4, 4, 4, 4), 2.0)[1] < 0.83
    # The F-test catches much of it where there are more replicates.
    assert prior_runs.coverage(4, (4, 4, 4, 4, 4), 2.0)[0] > 0.90


@pytest.fixture
def no_allowance(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    prior_runs.coverage.cache_clear()
    monkeypatch.setattr(prior_runs, "ALLOWANCE", 1.0)
    yield
    prior_runs.coverage.cache_clear()


def test_a_history_that_would_not_cover_is_refused(no_allowance: None) -> None:
    """Smyth's variance as it is: 95 % when the spread is equal, under 93 % when it is 1.25 times as large."""
    assert 0.94 < prior_runs.coverage(2, (4, 4), 1.0)[1] < 0.96
    assert prior_runs.coverage(2, (4, 4), prior_runs.TOLERATED)[1] < prior_runs.LEAST_COVERAGE
    found = prior_runs.moderated(log_ratios([[0.10], [0.11]]), prior(0.01, 4, 4))
    assert "simulated coverage is 8" in found.refusal or "simulated coverage is 9" in found.refusal
    assert found.estimate == found.plain


def test_coverage_through_whole_estimates() -> None:
    """400 histories and runs through `past`, `pool` and `moderated`, blocks and all."""
    rng, truth, held, used, widths = np.random.default_rng(3), 0.9, 0, 0, []

    def one(run: int, replicates: int) -> np.ndarray:
        disks = rng.normal(truth, 0.01, (replicates, 1))
        return disks + rng.normal(0, 0.02, (replicates, 3))

    for _ in range(400):
        known = prior_runs.pool(prior_runs.past(f"old-{run}", one(run, 4)) for run in range(2))
        found = prior_runs.moderated(one(0, 2), known)
        used += not found.refusal
        held += found.estimate.low <= math.exp(truth) <= found.estimate.high
        widths.append(
            math.log(found.estimate.high / found.estimate.low) / math.log(found.plain.high / found.plain.low)
        )
    assert held / 400 >= 0.94
    assert used / 400 > 0.8
    assert float(np.median(widths)) < 0.5  # what it saves at two replicates


def test_what_is_saved_by_hand() -> None:
    # Two replicates, s.d. 1 %, of which 80 % of runs show up to sqrt(F(.8; 1, 4)) = 1.533206 times as much:
    # plain 12.7062 * .01533206 / sqrt(2); with 4 df of history sqrt((4 * 1.5625 + 2.350722) / 5) = 1.311515
    # times 2.570582 * .01 / sqrt(2).
    plain, with_it = prior_runs.expected_half_widths(2, prior(0.01, 4))
    assert plain == pytest.approx(math.expm1(0.137753), rel=1e-4)
    assert with_it == pytest.approx(math.expm1(0.0238392), rel=1e-4)


def test_properties() -> None:
    """Swapping arms inverts the interval, order of replicates does not matter."""
    known, values = prior(0.01, 4), [[0.10, 0.11], [0.12, 0.13]]
    one = prior_runs.moderated(log_ratios(values), known).estimate
    swapped = prior_runs.moderated(-log_ratios(values), known).estimate
    turned = prior_runs.moderated(log_ratios(values[::-1]), known).estimate
    assert (1 / swapped.high, 1 / swapped.low) == pytest.approx((one.low, one.high))
    assert (turned.low, turned.high) == pytest.approx((one.low, one.high))


def test_a_run_is_noisier_beyond_the_f_quantile_of_the_allowed_variance() -> None:
    allowed = 1.25**2 * 0.0004 * float(stats.f.ppf(0.8, 2, 6))
    noisier = prior_runs.noisier(np.array([0.99, 1.01]) * allowed, 2, 0.0004, 6)
    assert noisier.tolist() == [False, True]
