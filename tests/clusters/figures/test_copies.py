"""Where copies lie: a box a drive, letters for data, hatched parity, and words on what it is drawn from."""

from __future__ import annotations

import pandas as pd
from matplotlib.patches import Rectangle

from diskbook.clusters.figures import copies
from diskbook.clusters.figures.copies import COLUMNS, PARITY
from diskbook.report.figures.export import as_svg
from diskbook.report.figures.style import Picture

MIRROR = [("two-way mirror", node, drive, 0, "AB"[drive]) for node in (0, 1) for drive in (0, 1)]
TIER = [("parity tier", 0, drive, 0, holds) for drive, holds in enumerate(["A", PARITY, ""])]


def drawn(by_rule: bool = False, provenance: str = "emulated") -> Picture:
    return copies(
        pd.DataFrame([*MIRROR, *TIER], columns=list(COLUMNS)), by_rule, "A title", "run", provenance
    )


def test_every_drive_has_a_box_and_parity_is_hatched() -> None:
    mirror, tier = drawn().figure.axes
    boxes = [patch for patch in mirror.patches if isinstance(patch, Rectangle)]
    letters = [text.get_text() for text in mirror.texts if len(text.get_text()) == 1]
    assert len(boxes) == 4 and letters == ["A", "B", "A", "B"]
    assert [patch.get_hatch() for patch in tier.patches if patch.get_hatch()] == ["////"]
    assert {text.get_text() for text in mirror.texts} >= {"node 1, drives", "node 2, drives"}
    across = [patch.get_x() for patch in boxes]
    assert across == sorted(across) and across[2] - across[1] > across[1] - across[0]


def test_words_say_whether_it_is_a_layout_or_a_rule() -> None:
    assert "the layout that the emulator plays" in drawn().description
    assert drawn().description.startswith("Emulated") and "nobody tells" in drawn().description
    ruled = drawn(by_rule=True, provenance="azure")
    assert "drawn from the rules" in ruled.description and not ruled.description.startswith("Emulated")


def test_the_same_places_give_the_same_bytes_and_none_is_no_error() -> None:
    assert as_svg(drawn()) == as_svg(drawn())
    assert copies(pd.DataFrame(columns=list(COLUMNS)), True, "None", "run", "azure").data.empty
