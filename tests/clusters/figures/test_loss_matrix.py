"""The drill matrix: what was played, what the rule alone says, and where the two disagree."""

from __future__ import annotations

import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from diskbook.clusters.figures import loss_matrix
from diskbook.clusters.figures.loss_matrix import COLUMNS
from diskbook.report.figures.export import as_svg
from diskbook.report.figures.style import BLUE, PURPLE_DARK, VERMILLION, Picture

LOST = {"drive": "one drive", "node": "one node"}
PLAYED = ("mirror, 2 nodes", "drive", "yes", "yes", 120, 120, False)
OFFLINE = ("mirror, 2 nodes", "node", "no", "no", 80, 80, False)
WRONG = ("nested, 2 nodes", "drive", "yes", "no", 10, 9, False)
FAILED = ("nested, 2 nodes", "node", "yes", "", 0, 0, True)
RULED = ("dual parity, 4 nodes", "node", "yes", "", 0, 0, False)


def drawn(*rows: tuple[object, ...], provenance: str = "emulated") -> Picture:
    frame = pd.DataFrame(list(rows), columns=list(COLUMNS))
    return loss_matrix(frame, LOST, "A title", "run", provenance)


def patches(picture: Picture) -> list[Rectangle]:
    (axes,) = picture.figure.axes
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_a_cell_that_was_played_has_its_outcome_and_blocks() -> None:
    picture = drawn(PLAYED, OFFLINE)
    (axes,) = picture.figure.axes
    shown = [text.get_text() for text in axes.texts]
    assert "online\nall 120" in shown and "offline\nall 80" in shown
    assert [to_hex(patch.get_facecolor()).upper() for patch in patches(picture)] == [BLUE, VERMILLION]
    assert not any(patch.get_hatch() for patch in patches(picture))
    assert "mirror, 2 nodes: drive online, node offline" in picture.alt
    assert "no acknowledged block was lost; the rule says the same of all" in picture.description


def test_what_was_not_played_is_hatched_and_what_failed_says_so() -> None:
    picture = drawn(FAILED, RULED)
    (axes,) = picture.figure.axes
    assert [patch.get_hatch() for patch in patches(picture) if patch.get_hatch()] == ["////", "////"]
    assert {"failed", "online"} <= {text.get_text() for text in axes.texts}
    assert "No loss was played to its end" in picture.description


def test_where_played_and_rule_disagree_the_cell_is_framed_and_counted() -> None:
    picture = drawn(PLAYED, WRONG)
    framed = [patch for patch in patches(picture) if to_hex(patch.get_edgecolor()) == PURPLE_DARK.lower()]
    assert len(framed) == 1
    assert "1 acknowledged block was lost; 1 cell contradicts the rule" in picture.description


def test_words_say_what_is_emulated_and_bytes_are_the_same() -> None:
    assert drawn(PLAYED).description.startswith("Emulated") and "emulated" in drawn(PLAYED).alt
    assert not drawn(PLAYED, provenance="azure").description.startswith("Emulated")
    assert as_svg(drawn(PLAYED, RULED)) == as_svg(drawn(PLAYED, RULED))
    assert drawn().data.empty
