"""Axes of ratios: what shares one, from where to where it reaches, and marks that hide no interval."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diskbook.report import figures
from diskbook.report.figures.ratio_axis import groups, set_ticks, span
from diskbook.report.figures.style import DIFFERENCE, GREY, ArmLook, Picture

LOOKS = {name: ArmLook(name, "#0072B2", "o", "-") for name in ("a", "b")}
ROW = {"arm": "a", "base_arm": "b", "workload": "w", "metric": "lat_mean_ms", "scope": "these disks",
       "verdict": "difference", "pairing": "same-machine", "n_replicates": 1, "n_blocks": 4, "level": 0.95,
       "method": "t", "provenance": "azure", "nearest_zone": "", "family": "headline"}  # fmt: skip


def drawn(*ratios: float, half: float = 0.01, **changes: object) -> Picture:
    """Forest of ratios whose intervals reach as far to both sides, as a share."""
    rows = [
        {**ROW, "ratio": value, "ci_low": value * (1 - half), "ci_high": value * (1 + half), **changes}
        for value in ratios
    ]
    return figures.forest(pd.DataFrame(rows), LOOKS, {}, "A title", "run")


def marks_and_bars(axes: Axes) -> list[tuple[float, float]]:
    """Widths of marks and of their intervals as drawn, in points; a mark that is not drawn has none."""
    lines = [line for line in axes.lines if line.get_transform() == axes.transData]
    pairs = []
    for bar, _, mark in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        low, high = axes.transData.transform([(x, 0) for x in bar.get_xdata()])[:, 0]
        side = mark.get_markersize() + mark.get_markeredgewidth()
        points = (high - low) * 72 / axes.get_figure().dpi
        pairs.append((side if mark.get_visible() else 0.0, points))
    return pairs


VERDICTS = ["difference", "equivalent", "inconclusive", "interim"]


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize(("ratio", "half"), [(1.02, 0.005), (1.0, 0.05), (2.0, 0.01), (1.3, np.nan)])
def test_a_filled_mark_means_a_difference_and_nothing_else(verdict: str, ratio: float, half: float) -> None:
    """Whatever the interval says: the verdict knows more, such as the margin, the gates and the family."""
    (axes,) = drawn(ratio, half=half, verdict=verdict).figure.axes
    (mark,) = [line for line in axes.lines if line.get_marker() == "D"]
    bars = {line.get_color() for line in axes.lines if line.get_transform() == axes.transData} - {
        mark.get_color()
    }
    found = verdict == "difference"
    assert (mark.get_markerfacecolor() == DIFFERENCE) == found
    assert (mark.get_markeredgecolor() == GREY) != found
    assert DIFFERENCE not in {look.colour for look in LOOKS.values()}
    assert found or DIFFERENCE not in bars


def test_ratios_within_8_times_share_an_axis_and_others_do_not() -> None:
    assert groups([1.0, 7.9, 2.0]) == [[1, 2, 0]]
    assert groups([1.01, 0.18, 0.058, 0.89, 0.044]) == [[0, 3], [1, 2, 4]]
    assert groups([]) == []


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=30))
def test_every_ratio_is_in_one_group_of_at_most_8_times(ratios: list[float]) -> None:
    made = groups(ratios)
    assert sorted(place for group in made for place in group) == list(range(len(ratios)))
    assert all(max(ratios[i] for i in group) <= 8.0001 * min(ratios[i] for i in group) for group in made)


def test_an_axis_fits_the_data_and_shows_1_where_it_is_near() -> None:
    low, high = span([1.5, 2.6])
    assert low < 0 < np.log2(2.6) < high < np.log2(3)
    low, high = span([0.04, 0.06])
    assert -4.8 < low < np.log2(0.04) and np.log2(0.06) < high < -4
    low, high = span([0.999, 1.001])
    assert high - low == pytest.approx(0.12)


@pytest.mark.parametrize(
    ("low", "high", "width_pt", "names"),
    [
        (-0.2, 0.3, 300, ["0.9×", "1×", "1.1×", "1.2×"]),
        (-0.2, 0.3, 110, ["1×", "1.2×"]),
        (-2.53, -2.41, 110, ["0.175×", "0.185×"]),
        (-4.7, -4.0, 110, ["0.04×", "0.06×"]),
    ],
)
def test_narrow_axes_have_plain_ticks(low: float, high: float, width_pt: float, names: list[str]) -> None:
    axes = Figure().subplots()
    axes.set_xscale("log", base=2)
    set_ticks(axes, low, high, width_pt)
    assert [label.get_text() for label in axes.get_xticklabels()] == names


def test_panels_hold_ratios_that_can_be_read_together() -> None:
    picture = drawn(1.01, 0.99, 0.11, 0.01)
    ends = [tuple(axes.get_xlim()) for axes in picture.figure.axes]
    assert [low < 1 < high for low, high in ends] == [True, False, False]
    arrows = [[text.get_text() for text in axes.texts].count("1× →") for axes in picture.figure.axes]
    assert arrows == [0, 1, 1] and "Each panel has an axis of its own" in picture.description
    assert len(picture.data) == 4 and len(drawn(1.0, 0.5).figure.axes) == 1


@pytest.mark.parametrize("half", [0.0002, 0.003, 0.02, 0.3])
def test_no_mark_is_as_wide_as_its_interval(half: float) -> None:
    picture = drawn(2.0, 1.0, 0.52, half=half, verdict="difference")
    picture.figure.draw_without_rendering()
    pairs = marks_and_bars(picture.figure.axes[0])
    assert len(pairs) == 3 and all(mark < bar for mark, bar in pairs)


def test_what_is_refused_stands_beside_its_family() -> None:
    table = pd.DataFrame([
        {**ROW, "ratio": ratio, "ci_low": ratio * 0.99, "ci_high": ratio * 1.01, "family": family,
         "verdict": verdict, "workload": family + verdict}
        for ratio, family, verdict in ((1.0, "headline", "difference"), (0.1, "exploratory", "difference"),
                                       (9.0, "exploratory", "invalid"), (9.0, "control", "invalid"))
    ])  # fmt: skip
    panels = figures.forest(table, LOOKS, {}, "A title", "run").figure.axes
    labels = [" ".join(label.get_text() for label in axes.get_yticklabels()) for axes in panels]
    assert len(panels) == 2 and "exploratoryinvalid" in labels[1] and "controlinvalid" in labels[1]
