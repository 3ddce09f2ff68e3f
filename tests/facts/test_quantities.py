"""Ratios and differences have one form everywhere."""

from __future__ import annotations

import math

from diskbook.facts import quantities


def test_a_ratio_is_a_factor_with_its_interval_and_level() -> None:
    assert quantities.ratio(2.518, 2.449, 2.6) == "2.52 times, 95 % CI 2.45 to 2.60"
    assert quantities.ratio(0.98, 0.9, 1.05, 0.975) == "0.98 times, 97.5 % CI 0.90 to 1.05"
    assert quantities.ratio(132.4, 99.994, 150.2) == "132 times, 95 % CI 99.99 to 150"


def test_a_ratio_without_interval_stands_alone() -> None:
    assert quantities.ratio(1.5) == "1.50 times"


def test_small_ratios_and_narrow_intervals_have_a_digit_more() -> None:
    assert quantities.ratio(0.181, 0.178, 0.1846) == "0.181 times, 95 % CI 0.178 to 0.185"
    assert quantities.ratio(1.0091, 0.9951, 1.0234) == "1.009 times, 95 % CI 0.995 to 1.023"
    assert quantities.ratio_parts(1.0091, 0.9951, 1.0234) == ("1.009 times", "95 % CI 0.995 to 1.023")
    assert quantities.ratio_parts(2.5) == ("2.50 times", "")


def test_no_end_reads_as_no_difference_unless_it_is() -> None:
    assert quantities.ratio(1.09, 1.0004, 1.19) == "1.0900 times, 95 % CI 1.0004 to 1.1900"
    assert quantities.ratio(0.96, 0.92, 0.9996) == "0.9600 times, 95 % CI 0.9200 to 0.9996"
    assert quantities.ratio(1.1, 1.0, 1.2) == "1.10 times, 95 % CI 1.00 to 1.20"
    assert quantities.difference_ms(0.21, 0.0012, 0.42) == "+0.210 ms, 0.001 to 0.420"


def test_shares_and_other_numbers_have_the_same_interval() -> None:
    assert quantities.share(0.25, 0.201, 0.3) == "25 %, 95 % CI 20 to 30 %"
    assert quantities.share(0.25) == "25 %"
    assert (
        quantities.with_interval("+0.3 % a block", -1.6, 2.3, "+.1f")
        == "+0.3 % a block, 95 % CI -1.6 to +2.3"
    )
    assert quantities.with_interval("12.1", math.nan, math.nan) == "12.1"


def test_nothing_is_minus_zero() -> None:
    assert quantities.difference_ms(-0.0004, -0.1, 0.1) == "+0.000 ms, -0.100 to 0.100"


def test_a_difference_has_its_sign_and_the_digits_that_its_size_needs() -> None:
    assert quantities.difference_ms(2.15, 2.02, 2.31) == "+2.15 ms, 2.02 to 2.31"
    assert quantities.difference_ms(-0.042, -0.05, -0.03) == "-0.042 ms, -0.050 to -0.030"
    assert quantities.difference_ms(21.5) == "+21.5 ms"


def test_both_are_said_where_both_are_known() -> None:
    times, none = (2.52, 2.45, 2.6), (math.nan, math.nan, math.nan)
    assert quantities.ratio_and_difference(times, (2.1, 2.0, 2.3)) == (
        "2.52 times, 95 % CI 2.45 to 2.60; +2.10 ms, 2.00 to 2.30"
    )
    assert quantities.ratio_and_difference(times, none) == "2.52 times, 95 % CI 2.45 to 2.60"


def test_things_are_counted_as_people_do() -> None:
    assert [quantities.many(number, "cell") for number in (0, 1, 1200)] == [
        "0 cells",
        "1 cell",
        "1,200 cells",
    ]


def test_a_range_of_one_value_is_that_value() -> None:
    assert (
        quantities.reach(0.371, 0.374, ".2f") == "0.37" and quantities.reach(1, 2000, ",.0f") == "1 to 2,000"
    )


def test_the_ends_of_an_interval_never_read_alike_where_they_differ() -> None:
    assert quantities.ratio(0.17281, 0.172801, 0.172819) == "0.17281 times, 95 % CI 0.17280 to 0.17282"
    assert quantities.ratio(1.0, 1.0, 1.0) == "1.000 times, 95 % CI 1.000 to 1.000"
    assert quantities.difference_ms(12.31, 12.302, 12.318) == "+12.31 ms, 12.30 to 12.32"
    assert quantities.share(0.251, 0.2505, 0.2515) == "25 %, 95 % CI 25 %"
    assert quantities.with_interval("+0.3 % a block", 0.29, 0.31) == "+0.3 % a block, 95 % CI 0.3"
