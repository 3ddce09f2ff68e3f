"""Maps of ratios: each cell has its number, those on limits are hatched, and words say how many."""

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
    return ratio_map({"Measured": frame}, "cluster / server", "ratio-map", "A title", "run", provenance)


def test_a_number_a_cell_and_a_hatch_where_a_limit_is() -> None:
    (axes,) = drawn().figure.axes
    numbers = [text.get_text() for text in axes.texts]
    assert "0.98" in numbers and "0.63" in numbers
    hatched = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_hatch()]
    assert len(hatched) == 1


def test_words_count_what_sits_on_limits_and_say_what_is_emulated() -> None:
    picture = drawn()
    assert "1 of 2 cells sits on a limit; 0.98 in the other" in picture.alt
    assert picture.caption.startswith("Emulated") and "cluster / server" in picture.caption
    assert "Emulated" not in drawn(provenance="azure").caption


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert as_svg(drawn()) == as_svg(drawn())
    nothing = pd.DataFrame(columns=["load", "threads", "ratio", "capped"])
    assert "no cell" in ratio_map({"Measured": nothing}, "a / b", "map", "t", "run", "azure").alt
