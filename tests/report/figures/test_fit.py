"""Text fitted into its room: every line fits, nothing is lost, and what is cut says so."""

from __future__ import annotations

import pytest

from diskbook.report.figures import style

NAMES = (
    "4K random write-through, depth 8 x 8, 1,000/s\nshared ZRS, zone 2 / LRS, zone 1",
    "W" * 60,
    "i" * 300,
    "",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("room_pt", [30.0, 150.0])
def test_every_line_fits_and_no_letter_is_lost(name: str, room_pt: float) -> None:
    lines = style.fitted(name, room_pt).split("\n")
    assert all(style.width_pt(line) <= room_pt for line in lines)
    assert "".join("".join(lines).split()) == "".join(name.split())


def test_what_fits_stays_as_it_is_and_what_is_cut_says_so() -> None:
    assert style.fitted("a  b\nc", 100) == "a  b\nc" and style.cut("short", 100) == "short"
    cut = style.cut("W" * 60, 100)
    assert cut.endswith("W…") and style.width_pt(cut) <= 100
