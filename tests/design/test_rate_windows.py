"""In which windows a rate was not kept."""

from __future__ import annotations

import numpy as np
import pytest

from diskbook.design import rate_windows


@pytest.mark.parametrize(("rate", "window"), [(500, 0.1), (1000, 0.1), (40, 0.5)])
def test_a_stall_leaves_its_windows_empty(rate: int, window: float) -> None:
    due = np.arange(0, 30, 1 / rate)
    stalled = (due > 10) & (due < 11)
    worst, share = rate_windows.windows(due, np.where(stalled, 11.0, due), 30.0)
    assert worst == 0
    assert share == pytest.approx(1 / 30, abs=1.01 * window / 30)


def test_a_millisecond_late_is_no_stall() -> None:
    due = np.arange(0, 10, 1 / 200)
    late = np.random.default_rng(1).uniform(0, 0.002, len(due))
    worst, share = rate_windows.windows(due, due + late, 10.0)
    assert worst >= 0.95 and share == 0
    assert np.isnan(rate_windows.windows(due[:5], due[:5], 0.01)).all()


def test_series_of_a_tool_tell_windows_as_well() -> None:
    second = np.arange(1, 101) / 10
    iops = np.full(100, 500.0)
    iops[40:45], iops[45], iops[-1] = 0, 3000, 20  # a stall, its making up, and an interval cut short
    assert rate_windows.windows_of_series(second, iops, 500.0) == (0.0, pytest.approx(5 / 99))
    # Two I/Os are due in 0.1 s: ten intervals make a window.
    assert rate_windows.windows_of_series(second, iops / 25, 20.0)[1] == pytest.approx(0.0, abs=0.12)
    assert np.isnan(rate_windows.windows_of_series(second[:1], iops[:1], 500.0)).all()
