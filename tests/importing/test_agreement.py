"""Whether repeats agree, and in which sessions they were made."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diskbook.importing import agreement

DAY, MINUTE = 86400.0, 60.0


@pytest.mark.parametrize(
    ("values", "is_unlike"),
    [
        ([393, 50_446], True),
        ([5000, 5100], False),
        ([5000, 6400], True),
        ([5000], False),
        ([], False),
        ([5000, math.nan, 0.0], False),
        ([100, 101, 99, 100, 80], True),
        ([100, 101, 99, 100, 97], False),
        ([100, 104, 96, 110, 93, 90], False),
        ([100, 100, 200, 200], True),
    ],
)
def test_repeats_that_differ_by_more_than_their_spread(values: list[float], is_unlike: bool) -> None:
    assert agreement.disagree(values) is is_unlike


def test_what_happens_within_trials_explains_what_lies_between_them() -> None:
    assert agreement.disagree([5000, 6400], [0.01, 0.01])
    assert not agreement.disagree([5000, 6400], [0.05, 0.04])
    assert agreement.disagree([5000, 6400], [math.nan, math.nan])


def test_repeats_of_one_disk_are_seldom_flagged() -> None:
    rng = np.random.default_rng(5)
    for count in (2, 3, 5, 20):
        flagged = sum(agreement.disagree(np.exp(rng.normal(0, 0.03, count)).tolist()) for _ in range(500))
        assert flagged <= 15, (count, flagged)


def test_error_of_a_mean_counts_autocorrelation() -> None:
    rng = np.random.default_rng(6)
    white = 100 + rng.normal(0, 10, 400)
    assert agreement.relative_error(white) == pytest.approx(0.005, rel=0.25)
    slow = 100 + np.convolve(rng.normal(0, 10, 420), np.ones(20) / 20, "valid")
    assert agreement.relative_error(slow) > 2 * slow.std() / 100 / np.sqrt(len(slow))
    assert math.isnan(agreement.relative_error([1.0] * 9)) and agreement.relative_error([1.0] * 20) == 0


def in_sessions(*starts: float) -> list[int]:
    return agreement.sessions(starts, [start + 30 for start in starts]).tolist()


def test_an_hour_of_rest_ends_a_session() -> None:
    assert in_sessions(0, 5 * MINUTE, 10 * MINUTE) == [0, 0, 0]
    assert in_sessions(DAY, 0, DAY + MINUTE, MINUTE) == [1, 0, 1, 0]
    assert in_sessions(0, DAY, 2 * DAY, 5 * DAY) == [0, 1, 2, 3]
    assert in_sessions() == [] and in_sessions(7.0) == [0]


def test_sessions_near_each_other_are_one_where_others_are_months_away() -> None:
    hours = 2 * 3600.0
    starts = (0, hours, 2 * hours, 150 * DAY, 150 * DAY + hours, 150 * DAY + 2 * hours)
    assert in_sessions(*starts) == [0, 0, 0, 1, 1, 1]


def test_a_long_trial_is_no_rest() -> None:
    assert agreement.sessions([0, 5 * 3600], [5 * 3600 - 60, 6 * 3600]).tolist() == [0, 0]


def test_days_are_sessions_however_far_apart_others_lie() -> None:
    days = (0, 1, 2, 3, 30, 31, 32, 60, 61, 77)
    assert in_sessions(*(day * DAY for day in days)) == list(range(10))
    pause = 3600.0 + 60
    assert agreement.sessions(
        [0, 3600 + pause, 9000 + 2 * pause], [3600, 7200 + pause, 12600 + 2 * pause]
    ).tolist() == [0, 0, 0]
