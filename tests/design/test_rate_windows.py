"""In which windows a rate was not kept."""

from __future__ import annotations

import numpy as np
import pytest

from diskbook.design import rate_windows


@pytest.mark.parametrize("start_s", [0.0, 10.0])
@pytest.mark.parametrize(("rate", "window"), [(500, 0.1), (1000, 0.1), (40, 0.5)])
def test_a_stall_leaves_its_windows_empty(rate: int, window: float, start_s: float) -> None:
    due = np.arange(0, 30, 1 / rate)
    stalled = (due > start_s) & (due < start_s + 1)
    worst, share = rate_windows.windows(due, np.where(stalled, start_s + 1, due), 30.0)
    assert worst == 0
    assert share == pytest.approx(1 / 30, abs=1.01 * window / 30)


@pytest.mark.parametrize("rate", [200, 40])
def test_a_millisecond_late_is_no_stall(rate: int) -> None:
    """The last of the 20 I/Os of a window is due a millisecond before its end."""
    due = np.arange(0, 10, 1 / rate) + 1 / rate - 0.001
    late = np.random.default_rng(1).uniform(0, 0.002, len(due))
    worst, share = rate_windows.windows(due, due + late, 10.0)
    assert worst >= 0.95 and share == 0
    half_a_second = due[due < 0.5]
    assert rate_windows.windows(half_a_second, half_a_second, 0.5) == (1.0, 0.0)
    assert np.isnan(rate_windows.windows(due[:5], due[:5], 0.01)).all()
    assert np.isnan(rate_windows.windows(due[:0], due[:0], 0.0)).all()


def test_series_of_a_tool_tell_windows_as_well() -> None:
    second = np.arange(1, 101) / 10
    iops = np.full(100, 500.0)
    iops[40:45], iops[45], iops[-1] = 0, 3000, 20  # a stall, its making up, and an interval cut short
    assert rate_windows.windows_of_series(second, iops, 500.0) == (0.0, pytest.approx(5 / 99))
    # Two I/Os are due in 0.1 s: ten intervals make a window.
    assert rate_windows.windows_of_series(second, iops / 25, 20.0) == (pytest.approx(1.0), 0.0)
    assert rate_windows.windows_of_series(second[:2], iops[:2], 500.0) == (1.0, 0.0)
    assert np.isnan(rate_windows.windows_of_series(second[:1], iops[:1], 500.0)).all()
    assert np.isnan(rate_windows.windows_of_series(second, iops, 0.0)).all()
