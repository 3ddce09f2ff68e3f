"""Units: what is read and written of bytes, shares, durations and times."""

from __future__ import annotations

import math

import pytest

from diskbook.facts import units
from diskbook.facts.errors import UsageError


def test_sizes_count_in_powers_of_two_and_rates_in_powers_of_ten() -> None:
    assert (units.KIB, units.MIB, units.GIB) == (2**10, 2**20, 2**30)
    assert units.MB_PER_MIB == 1.048576
    assert units.NS_PER_S == units.NS_PER_MS * 1000 == units.NS_PER_US * 1e6
    assert units.US_PER_S == units.US_PER_MS * 1000


@pytest.mark.parametrize(
    ("share", "form", "text"),
    [
        (0.015, ".3g", "1.5 %"),
        (0.8, ".3g", "80 %"),
        (0.123456, ".1f", "12.3 %"),
        (0.05, "+.0f", "+5 %"),
        (-0.0301, "+.2f", "-3.01 %"),
    ],
)
def test_a_share_is_written_in_percent(share: float, form: str, text: str) -> None:
    assert units.percent(share, form) == text


@pytest.mark.parametrize(("text", "share"), [("1.5%", 0.015), (" 80 % ", 0.8), ("99.9%", 0.999)])
def test_a_percentage_is_read_as_a_share(text: str, share: float) -> None:
    assert units.parse_percent(text, "--effect") == pytest.approx(share)


@pytest.mark.parametrize("text", ["1.5", "0.015", "%", "nan%", "five%"])
def test_a_percentage_without_its_sign_or_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--effect .*: write a percentage with its sign"):
        units.parse_percent(text, "--effect")


@pytest.mark.parametrize("text", ["0%", "-1%", "100%", "inf%"])
def test_a_percentage_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="it must be more than 0 % and less than 100 %"):
        units.parse_percent(text, "--effect")


def test_zero_percent_and_another_bound_are_taken_where_they_make_sense() -> None:
    assert units.parse_percent("0%", "--sd-disk", zero=True) == 0.0
    assert units.parse_percent("150%", "--effect", most=200) == 1.5
    with pytest.raises(UsageError, match="it must be from 0 to 50 %"):
        units.parse_percent("51%", "--sd-disk", most=50, zero=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89.4, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h"), (100_000, "27.8 h")],
)
def test_a_duration_is_written_in_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


def test_a_duration_may_do_without_seconds_or_without_hours() -> None:
    assert units.duration(30, minutes_from_s=0) == "0 min"
    assert units.duration(119, 120, math.inf) == "119 s"
    assert units.duration(7200, 120, math.inf) == "120 min"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h"), (100_000, "28 h"), (172_800, "2 days")],
)
def test_a_span_is_written_in_whole_units(seconds: float, text: str) -> None:
    assert units.span(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:10+00:00", 10.0),
        ("1970-01-01T00:00:10Z", 10.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-01T00:00:10", 10.0),
        ("1970-01-01T00:00:00.1234567Z", 0.123456),
    ],
)
def test_a_time_is_read_as_seconds_since_the_epoch(text: str, seconds: float) -> None:
    assert units.epoch(text) == pytest.approx(seconds, abs=1e-9)


def test_a_time_without_a_zone_is_in_utc_wherever_the_computer_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    assert units.epoch("2026-07-01T12:00:00") == units.epoch("2026-07-01T12:00:00Z")


def test_what_is_no_time_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="yesterday"):
        units.epoch("yesterday")


def test_seconds_since_the_epoch_are_written_in_utc() -> None:
    assert units.utc_text(10.25) == "1970-01-01T00:00:10+00:00"
    assert units.utc_text(10.25, "microseconds") == "1970-01-01T00:00:10.250000+00:00"
    assert units.epoch(units.utc_text(1_700_000_000)) == 1_700_000_000
