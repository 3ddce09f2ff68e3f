"""Intervals lie above their marks, which would hide those that are narrower."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from diskbook.clusters.figures import capacity
from diskbook.report.figures import scales


def test_intervals_are_drawn_over_marks() -> None:
    rows = [{"arm": arm, "label": arm, "write_pct": 0, "capacity_pct": share, "most_pct": share,
             "bound": 1.0, "ratio": 1.0, "low": 0.99, "high": 1.01}
            for arm, share in (("a", 25.0), ("b", 50.0))]  # fmt: skip
    (axes,) = capacity(pd.DataFrame(rows), "A title", "run", "azure").figure.axes
    (marks,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(axes.collections) == 2
    assert all(bars.get_zorder() > marks.get_zorder() for bars in axes.collections)
    assert axes.collections[1].get_linewidth()[0] < axes.collections[0].get_linewidth()[0]


def test_an_interval_lies_along_its_axis() -> None:
    axes = Figure().subplots()
    scales.level(axes, [2.0], [0.5], [0.6])
    assert axes.collections[0].get_segments()[0].tolist() == [[0.5, 2.0], [0.6, 2.0]]
