"""One spending limit: reserved before, settled after."""

from __future__ import annotations

import math

from hypothesis import given, strategies as st

from diskbook.batch.spending_limit import Purse


def test_what_is_reserved_is_not_free_until_it_is_settled() -> None:
    purse = Purse(10.0, {"before": 2.0})
    assert purse.reserve("a", 5.0) and not purse.reserve("b", 4.0)
    assert (purse.spent, purse.reserved, purse.free) == (2.0, 5.0, 3.0)
    assert purse.could_ever(8.0) and not purse.could_ever(8.5)
    purse.settle("a", 1.5)
    assert (purse.spent, purse.reserved, purse.free) == (3.5, 0.0, 6.5)


def test_without_a_limit_nothing_binds_and_the_cost_is_known() -> None:
    purse = Purse(None, {})
    assert purse.reserve("a", 1e9) and math.isinf(purse.free)
    purse.settle("a", 3.0)
    assert purse.spent == 3.0


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), max_size=30))
def test_the_limit_holds_while_no_run_costs_more_than_was_reserved(runs: list[tuple[float, float]]) -> None:
    purse = Purse(10.0, {})
    for number, (usd, share) in enumerate(runs):
        if purse.reserve(str(number), usd) and number % 2:
            purse.settle(str(number), usd * share)
        assert purse.spent + purse.reserved <= 10.0 + 1e-6
