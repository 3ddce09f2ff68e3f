"""Maps of ratios: each cell has its number, those on limits have a star, and words say how many."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.patches import Rectangle

from diskbook.clusters.figures import ratio_map
from diskbook.report.figures.export import as_svg
from diskbook.report.figures.style import Picture


def drawn(ratio: float = 0.63, provenance: str = "emulated") -> Picture:
    rows = [
        ("4K read", 1.0, 0.98, False),
        ("4K read", 12.0, ratio, True),
        ("64K write", 1.0, math.nan, False),
    ]
    frame = pd.DataFrame(rows, columns=["load", "threads", "ratio", "capped"])
    return ratio_map({"Measured": frame}, "cluster / server", "A title", "run", provenance)


def test_a_number_a_cell_a_star_where_a_limit_is_and_a_key_of_colours() -> None:
    (axes,) = drawn().figure.axes
    assert [text.get_text() for text in axes.texts] == ["-2", "-37*"]
    assert not any(patch.get_hatch() for patch in axes.patches if isinstance(patch, Rectangle))
    key = [text.get_text() for text in axes.get_legend().get_texts()]
    assert key == ["-50 %", "-29 %", "0", "+41 %", "+100 %"]


def test_words_count_what_sits_on_limits_and_say_what_is_emulated() -> None:
    picture = drawn()
    assert "1 of 2 cells sits on a limit; -2 % in the other" in picture.description
    assert picture.caption.startswith("Emulated") and "cluster against server" in picture.caption
    assert "Emulated" not in drawn(provenance="azure").caption


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert as_svg(drawn()) == as_svg(drawn())
    nothing = pd.DataFrame(columns=["load", "threads", "ratio", "capped"])
    assert "no cell" in ratio_map({"Measured": nothing}, "a / b", "t", "run", "azure").description
