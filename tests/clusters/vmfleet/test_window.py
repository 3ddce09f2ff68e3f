"""The time that all machines share, and what was done in it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from diskbook.clusters.vmfleet import fleet
from diskbook.tools.record import Direction, Series


def part(iops: float, runtime_s: float = 10.0) -> Direction:
    ios = iops * runtime_s
    return Direction(ios, iops, iops * 4096, 1000 * runtime_s, lat_mean_ms=20.0)


def by_second(*rates: float) -> Series:
    ends = np.arange(1.0, len(rates) + 1)
    return Series(ends, np.array(rates), np.full(len(rates), 20.0))


def test_from_the_last_start_to_the_first_end() -> None:
    shared = fleet.common([0.0, 1.5, 0.5], [10.0, 10.0, 9.0])
    assert (shared.start_s, shared.end_s, shared.length_s) == (1.5, 9.5, 8.0)
    assert shared.share == pytest.approx(0.8)
    assert fleet.common([0.0, 20.0], [10.0, 10.0]).share == 0


def test_a_series_tells_when_and_the_counts_how_many() -> None:
    rising = by_second(*range(0, 200, 20))  # 900 I/Os in 10 s, 90 a second
    course = fleet.course(part(100), rising, 0.0)  # but 1,000 were counted
    late = fleet.Window(5.0, 10.0, 0.5)
    assert fleet.ios_within([course], late) == pytest.approx(1000 * 700 / 900)
    assert fleet.ios_within([fleet.course(part(100), None, 0.0)], late) == pytest.approx(500)


def test_what_follows_the_last_whole_interval_is_at_the_mean_rate() -> None:
    course = fleet.course(part(100, 3.5), by_second(100, 100, 100), 0.0)
    assert fleet.ios_within([course], fleet.Window(3.0, 3.5, 0.1)) == pytest.approx(50)
    over = fleet.course(part(100, 2.9995), by_second(100, 100, 100), 0.0)  # DiskSpd's last may end late
    assert fleet.ios_within([over], fleet.Window(0.0, 2.9995, 1.0)) == pytest.approx(299.95)


def test_a_series_of_zeros_counts_as_none() -> None:
    course = fleet.course(part(100), by_second(*[0.0] * 10), 0.0)
    assert fleet.ios_within([course], fleet.Window(0.0, 5.0, 0.5)) == pytest.approx(500)


def test_series_are_added_within_the_window() -> None:
    courses = [
        fleet.course(part(100), by_second(*[100.0] * 10), 0.0),
        fleet.course(part(50), by_second(*[50.0] * 10), 0.5),
    ]
    added = fleet.series_within(courses, fleet.common([0.0, 0.5], [10.0, 10.0]))
    assert added is not None
    assert added.second.tolist() == list(range(1, 10))
    assert added.iops == pytest.approx([150] * 9) and added.lat_mean_ms == pytest.approx([20] * 9)
    assert fleet.series_within([*courses, fleet.course(part(1), None, 0)], fleet.Window(0, 9, 1)) is None
    assert fleet.series_within(courses, fleet.Window(0, 0.5, 1)) is None


def test_a_tiny_interval_asks_for_no_more_memory_than_there_are_intervals() -> None:
    tiny = Series(np.array([1e-6, 2e-6]), np.array([1.0, 1.0]), np.array([math.nan, 1.0]))
    added = fleet.series_within([fleet.course(part(1, 1e9), tiny, 0.0)], fleet.Window(0.0, 1e9, 1.0))
    assert added is not None and len(added.second) <= 4


rates = st.lists(st.floats(0, 1e5), min_size=3, max_size=12)


@pytest.mark.long
@example([([0.0, 0.0, 2.225073858507e-311], 0.0)], 0.0)
@given(st.lists(st.tuples(rates, st.floats(0, 2)), min_size=1, max_size=6), st.floats(0, 1))
def test_the_whole_time_holds_all_ios_and_two_parts_of_it_add_up(
    machines: list[tuple[list[float], float]], cut: float
) -> None:
    courses, total = [], 0.0
    for told, begun in machines:
        counted = Direction(sum(told) + 1, (sum(told) + 1) / len(told), 1.0, 1000.0 * len(told), 20.0)
        courses.append(fleet.course(counted, by_second(*told), begun))
        total += counted.ios
    end = 20.0
    assert fleet.ios_within(courses, fleet.Window(0.0, end, 1.0)) == pytest.approx(total)
    halves = [fleet.Window(0.0, cut * end, 1.0), fleet.Window(cut * end, end, 1.0)]
    assert sum(fleet.ios_within(courses, half) for half in halves) == pytest.approx(total)
