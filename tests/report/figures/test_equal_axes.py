"""Panels that are compared have equal axes; and the end of a trial is not drawn as a fall of its rate."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from diskbook.report import figures
from diskbook.report.figures.credit import whole_intervals
from diskbook.report.figures.scales import equal_x, equal_y
from diskbook.report.figures.style import ArmLook

LOOKS = {"a": ArmLook("a", "#0072B2", "o", "-")}


@pytest.mark.parametrize(
    ("ends", "made"),
    [
        ([5.0, 4.4, 3.5], [5.0, 5.0, 5.0]),
        # A quarter of the widest still shares its axis, less does not.
        ([8.0, 2.0, 1.9, 0.4], [8.0, 8.0, 1.9, 0.4]),
        ([5000.0, 450.0, 400.0], [5000.0, 450.0, 450.0]),
        ([], []),
    ],
)
def test_panels_within_4_times_share_an_axis(ends: list[float], made: list[float]) -> None:
    panels = [Figure().subplots() for _ in ends]
    for axes, end in zip(panels, ends, strict=True):
        axes.set(xlim=(0, end), ylim=(0, end))
    equal_x(panels)
    equal_y(panels)
    assert [axes.get_xlim()[1] for axes in panels] == made == [axes.get_ylim()[1] for axes in panels]


def test_strips_of_several_loads_have_one_axis() -> None:
    rows = [
        {"trial": f"t{n}", "arm": "a", "workload": load, "direction": "read", "status": "ok", "attempt": 1,
         "replicate": 1, "block": n, "iops": 1000 / lat_ms, "lat_mean_ms": lat_ms, "outstanding": 1,
         "block_size_bytes": 4096, "provenance": "emulated"}
        for n, (load, lat_ms) in enumerate([("v", 1.5), ("w", 5.0)])
    ]  # fmt: skip
    trials = pd.DataFrame(rows)
    one, other = figures.strip(trials, LOOKS, {}, ["v", "w"], "A title", "run").figure.axes
    assert one.get_xlim() == other.get_xlim() and one.get_xlim()[1] > 5


def test_the_last_interval_of_a_trial_is_left_out() -> None:
    series = pd.DataFrame({"trial": ["t", "t", "t", "u", "u"], "second": [0.1, 0.2, 0.3, 0.1, 0.2],
                           "iops": [2300.0, 2300.0, 1300.0, 2300.0, 900.0]})  # fmt: skip
    kept = whole_intervals(series)
    assert kept["iops"].tolist() == [2300.0] * 3
