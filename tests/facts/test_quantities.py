"""Ratios and differences have one form everywhere."""

from __future__ import annotations

import math

from diskbook.facts import quantities


def test_a_ratio_is_a_change_in_percent_with_its_interval_and_level() -> None:
    assert quantities.change(2.518, 2.449, 2.6) == "+152 % (95 % CI 145 to 160 %)"
    assert quantities.change(0.98, 0.9, 1.05, 0.975) == "-2.0 % (97.5 % CI -10.0 to +5.0 %)"
    assert quantities.change(132.4, 99.994, 150.2) == "+13,140 % (95 % CI 9,899 to 14,920 %)"
    assert quantities.change_parts(1.0091, 0.9951, 1.0234) == ("+0.9 %", "95 % CI -0.5 to +2.3 %")
    assert quantities.change_interval(0.93, 1.08) == "95 % CI -7.0 to +8.0 %"


def test_a_wide_interval_has_no_decimals() -> None:
    assert quantities.change(1.027, 0.712, 1.481) == "+3 % (95 % CI -29 to +48 %)"


def test_a_change_without_interval_stands_alone() -> None:
    assert quantities.change(1.5) == "+50 %"
    assert quantities.change_parts(2.5) == ("+150 %", "")
    assert quantities.change(math.nan) == "no number"


def test_what_is_left_of_a_decrease_has_digits() -> None:
    assert quantities.change(0.181, 0.178, 0.1846) == "-81.9 % (95 % CI -82.2 to -81.5 %)"
    assert quantities.change(0.003, 0.0028, 0.0032) == "-99.70 % (95 % CI -99.72 to -99.68 %)"
    assert quantities.change(0.0) == "-100 %"


def test_a_sentence_says_which_way() -> None:
    assert quantities.changed(2.46) == "146 % higher"
    assert quantities.changed(0.173) == "83 % lower"
    assert quantities.changed(0.173, "longer", "less time") == "83 % less time"


def test_no_end_reads_as_no_difference_unless_it_is() -> None:
    assert quantities.change(1.09, 1.0004, 1.19) == "+9.00 % (95 % CI 0.04 to 19.00 %)"
    assert quantities.change(0.96, 0.92, 0.9996) == "-4.00 % (95 % CI -8.00 to -0.04 %)"
    assert quantities.change(1.1, 1.0, 1.2) == "+10 % (95 % CI 0 to 20 %)"
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
    assert quantities.change_and_difference(times, (2.1, 2.0, 2.3)) == (
        "+152 % (95 % CI 145 to 160 %); +2.10 ms, 2.00 to 2.30"
    )
    assert quantities.change_and_difference(times, none) == "+152 % (95 % CI 145 to 160 %)"


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
    assert quantities.change(0.17281, 0.172801, 0.172819) == "-82.719 % (95 % CI -82.720 to -82.718 %)"
    assert quantities.change(1.0, 1.0, 1.0) == "+0.00 % (95 % CI 0.00 %)"
    assert quantities.difference_ms(12.31, 12.302, 12.318) == "+12.31 ms, 12.30 to 12.32"
    assert quantities.share(0.251, 0.2505, 0.2515) == "25 %, 95 % CI 25 %"
    assert quantities.with_interval("+0.3 % a block", 0.29, 0.31) == "+0.3 % a block, 95 % CI 0.3"
