"""The map of a campaign: a cell says ratio, interval and runs; one without a run is drawn and empty."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from diskbook.batch.campaign_map import STARTS, campaign_map
from diskbook.report.figures import as_svg
from diskbook.report.figures.style import GROUND, NARROW_PX, Picture


def drawn(provenance: str = "emulated") -> Picture:
    rows = [
        ("westeurope", 9, 3, 1.25, 4.0),
        ("westeurope", 21, 1, 0.5, math.nan),
        ("northeurope", 0, 2, math.nan, math.nan),
    ]
    frame = pd.DataFrame(rows, columns=["place", "hour", "n", "ratio", "half_pct"])
    return campaign_map({"4K read: a / b": frame}, "A title", "night", provenance)


def test_each_cell_says_ratio_interval_and_runs_and_the_others_are_empty() -> None:
    picture = drawn()
    (axes,) = picture.figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert {"+25\n±4.0\nn 3", "-50\nno CI\nn 1", "refused\nn 2"} <= set(texts)
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(boxes) == 2 * len(STARTS)
    ground = tuple(int(GROUND[place : place + 2], 16) / 255 for place in (1, 3, 5))
    assert sum(box.get_facecolor()[:3] == ground for box in boxes) == 2 * len(STARTS) - 2
    above, below = (box.get_facecolor() for box in boxes if box.get_facecolor()[:3] != ground)
    assert above[0] > above[2] and below[2] > below[0]  # above 1 orange, below it purple


def test_words_have_every_cell_and_say_what_is_emulated() -> None:
    picture = drawn()
    assert picture.caption.startswith("Emulated") and "batch night" in picture.caption
    assert "westeurope from 09 h +25 ±4.0 n 3" in picture.description
    assert (
        "13 cells are empty" in picture.description
        and "neither regions nor times of day" in picture.description
    )
    real = drawn("azure")
    assert "Emulated" not in real.caption and "emulator" not in real.description


@pytest.mark.long
def test_it_is_drawn_again_for_a_phone_from_the_same_numbers() -> None:
    narrow = drawn().at(NARROW_PX)
    assert narrow.width_px == NARROW_PX
    assert as_svg(drawn()) == as_svg(drawn())
