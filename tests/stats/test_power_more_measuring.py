"""What more measuring brings: half-widths that come true in 80 % of runs, by hand and against fresh draws."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from diskbook.design.vocabulary import Scope
from diskbook.stats import intervals, power
from diskbook.stats.power import agree_by_chance, narrowed, outlook

NAMES = {
    "arm": "zrs-z1",
    "base_arm": "lrs-z1",
    "workload": "randwrite-qd1",
    "direction": "write",
    "metric": "lat_mean_ms",
}


def comparison(general: float, within: float, replicates: int = 2, blocks: int = 6) -> pd.DataFrame:
    """Both scopes of one comparison, with standard errors of log ratios as given; NaN for no interval."""
    halves = {
        Scope.LIKE_THESE: general * intervals.quantile(0.95, replicates - 1),
        Scope.THESE: within * intervals.quantile(0.95, blocks - replicates),
    }
    common = {**NAMES, "level": 0.95, "n_replicates": replicates, "n_blocks": blocks}
    rows = [
        {**common, "scope": scope, "ci_low": math.exp(-half), "ci_high": math.exp(half)}
        for scope, half in halves.items()
    ]
    return pd.DataFrame(rows)


def rows(table: pd.DataFrame) -> tuple[dict, dict]:
    general, these = table.to_dict("records")
    return general, these


def test_narrowing_by_hand() -> None:
    # F(0.8; 1, 1) is the square of t(1) at 0.9, 3.077684: sqrt((1 + 9.472136) / 2) = 2.288245,
    # times t(2) / t(1) = 4.302653 / 12.706205, times sqrt(2 / 3).
    assert narrowed(1.0, 2, 1, 1) == pytest.approx(2.288245 * 4.302653 / 12.706205 * math.sqrt(2 / 3))


@pytest.mark.parametrize("level", [0.95, 0.981])
@pytest.mark.parametrize("n", [2, 3, 5, 10])
@pytest.mark.parametrize("more", power.MORE)
def test_what_is_said_comes_true_in_80_percent_of_runs(n: int, more: int, level: float) -> None:
    values = np.random.default_rng(n).normal(0, 0.04, (8000, n + more))
    now, then = (intervals.t_interval(part, level) for part in (values[:, :n], values))
    said = narrowed((now.high - now.low) / 2, n, more, n - 1, level)
    assert ((then.high - then.low) / 2 <= said).mean() == pytest.approx(0.8, abs=0.02)


def test_blocks_of_several_replicates_come_true_too() -> None:
    values = np.random.default_rng(1).normal(0, 0.04, (8000, 3, 4))
    now, then = (intervals.within_replicates(part) for part in (values[..., :2], values))
    said = [narrowed(half, 6, 6, df) for half, df in zip((now.high - now.low) / 2, now.df, strict=True)]
    assert 0.75 < ((then.high - then.low) / 2 <= said).mean() < 0.91


def test_an_outlook_has_a_width_for_each_number_of_units() -> None:
    table = comparison(0.01, 0.005)
    general, these = (outlook(row, table) for row in rows(table))
    assert (general.unit, general.n, general.by_chance) == ("replicates", 2, False)
    assert general.now == pytest.approx(0.127062, rel=1e-4)
    assert general.narrowed == pytest.approx([narrowed(general.now, 2, more, 1) for more in (1, 5, 15)])
    assert (these.unit, these.n, these.by_chance) == ("blocks", 6, False)
    assert these.narrowed == pytest.approx([narrowed(these.now, 6, more, 4) for more in (1, 5, 15)])


def test_replicates_that_agree_by_chance_are_noticed() -> None:
    table = comparison(0.004, 0.005)
    assert outlook(rows(table)[0], table).by_chance
    others = table.assign(workload="randread-qd1")
    assert not agree_by_chance(rows(table)[0], pd.concat([others, table.iloc[:1]]))


@pytest.mark.parametrize("table", [comparison(0.01, math.nan), comparison(0.001, 0.005, 2, 2)])
def test_without_a_spread_within_replicates_nothing_is_known_of_chance(table: pd.DataFrame) -> None:
    assert not agree_by_chance(rows(table)[0], table)


def test_the_width_within_replicates_by_hand() -> None:
    # One replicate of 5 blocks: t(4) = 2.776445; chi2(0.8; 4) = 5.988617.
    one = math.expm1(2.776445 * 0.02 * math.sqrt(5.988617 / 4) / math.sqrt(5))
    assert power.half_width_within(0.02, 1, 5) == pytest.approx(one, rel=1e-6)
    # Three of 2 blocks: t(1 (3 + 2) / (1 + 2)) = t(5 / 3); chi2(0.8; 3) = 4.641628.
    t = float(stats.t.ppf(0.975, 5 / 3))
    three = math.expm1(t * 0.02 * math.sqrt(4.641628 / 3) / math.sqrt(6))
    assert power.half_width_within(0.02, 3, 2) == pytest.approx(three, rel=1e-6)
    assert math.isnan(power.half_width_within(0.02, 3, 1))


def test_a_pilots_spread_is_allowed_for_by_steins_two_quantiles() -> None:
    quantiles = stats.t.ppf(0.975, 10) + stats.t.ppf(0.9, 10)
    assert power.for_power(0.05, 0.05, 0.9, 10) == math.ceil((quantiles * 0.05 / math.log(1.05)) ** 2)
