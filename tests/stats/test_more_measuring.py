"""What more measuring brings: half-widths and the split of variance, by hand and against fresh draws."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from diskbook.stats import intervals, more_measuring
from diskbook.stats.more_measuring import VarianceSplit, narrowed, outlook, variance_split
from diskbook.tables.vocabulary import Scope

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
    # Half-width of 4 blocks: 3.182446 s / 2; of 8: 2.364624 s / sqrt(8): a factor of 0.5254.
    assert narrowed(1.0, 4, 8) == pytest.approx(0.52540, abs=1e-4)


def test_narrowing_is_what_more_units_of_the_same_spread_show() -> None:
    values = np.random.default_rng(3).normal(0, 0.02, 6)
    spread = values.std(ddof=1)
    scaled = np.concatenate([values, values])
    scaled = (scaled - scaled.mean()) / scaled.std(ddof=1) * spread  # 12 values of the same deviation
    now, more = (intervals.t_interval(part) for part in (values, scaled))
    half = float(more.high - more.mean)
    assert narrowed(float(now.high - now.mean), 6, 12) == pytest.approx(half)


def test_the_split_gives_back_the_standard_errors() -> None:
    table = comparison(0.01, 0.005)
    split = variance_split(rows(table)[0], table)
    assert split == (pytest.approx(0.01**2), pytest.approx(0.005**2)) and not split.by_chance
    assert split.with_blocks(1) == pytest.approx(split.total)
    assert split.with_blocks(1e9) == pytest.approx(split.total - split.within)


def test_twice_the_blocks_halve_the_part_within_replicates() -> None:
    table = comparison(0.01, 0.005)
    found = outlook(rows(table)[0], table)
    assert (found.unit, found.n) == ("replicates", 2)
    # t(1) = 12.7062, sqrt(0.01^2 - 0.005^2 / 2) = 0.0093541.
    assert found.twice_the_blocks == pytest.approx(0.118855, rel=1e-4)
    assert found.now == pytest.approx(0.127062, rel=1e-4)
    assert found.narrowed == (pytest.approx(0.013079, abs=1e-6), pytest.approx(0.007271, abs=1e-6))


def test_replicates_that_agree_by_chance_say_nothing_of_blocks() -> None:
    table = comparison(0.004, 0.005)
    found = outlook(rows(table)[0], table)
    assert found.by_chance and math.isnan(found.twice_the_blocks)
    assert VarianceSplit(1.0, 2.0).by_chance and not VarianceSplit(2.0, 1.0).by_chance


def test_of_the_very_disks_blocks_are_counted() -> None:
    table = comparison(0.01, 0.005)
    found = outlook(rows(table)[1], table)
    assert (found.unit, found.n, found.by_chance) == ("blocks", 6, False)
    assert len(found.narrowed) == len(more_measuring.MORE) and math.isnan(found.twice_the_blocks)


@pytest.mark.parametrize("table", [comparison(0.01, math.nan), comparison(0.01, 0.005, 2, 2)])
def test_without_a_spread_within_replicates_there_is_no_split(table: pd.DataFrame) -> None:
    general = rows(table)[0]
    assert variance_split(general, table) is None
    assert math.isnan(outlook(general, table).twice_the_blocks)


def test_another_comparison_is_no_part_of_the_split() -> None:
    table = comparison(0.01, 0.005)
    others = table.assign(workload="randread-qd1")
    assert variance_split(rows(table)[0], pd.concat([others, table.iloc[:1]])) is None


@pytest.mark.parametrize(
    ("n", "mean", "sd", "family"), [(2, 0.03, 0.01, 1), (3, 0.0, 0.02, 1), (5, 0.06, 0.03, 3)]
)
def test_the_assurance_is_the_share_of_drawn_replicates_that_reach_it(
    n: int, mean: float, sd: float, family: int
) -> None:
    """Replicates drawn from the predictive distribution, each judged by the intervals of the analysis."""
    rng, margin = np.random.default_rng(n), 0.05
    values = np.linspace(-1, 1, n)
    values = mean + sd * values / values.std(ddof=1)
    half = intervals.quantile(0.95, n - 1) * sd / math.sqrt(n)
    row = {
        "n_replicates": n,
        "level": 0.95,
        "ci_low": math.exp(mean - half),
        "ci_high": math.exp(mean + half),
    }
    coming = mean + sd * math.sqrt(1 + 1 / n) * rng.standard_t(n - 1, 20_000)
    interval = intervals.t_interval(np.column_stack([np.tile(values, (len(coming), 1)), coming]))
    bound = math.log1p(margin)
    narrow = (interval.high - interval.low) / 2 <= bound
    settled = (intervals.p_difference(interval) < 0.05 / family) | (
        intervals.p_equivalence(interval, bound) < 0.05
    )
    reached = more_measuring.assurance(row, margin, family)
    assert reached == (pytest.approx(narrow.mean(), abs=0.012), pytest.approx(settled.mean(), abs=0.012))
