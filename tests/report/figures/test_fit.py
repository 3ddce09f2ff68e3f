"""Text fitted into its room: every line fits, nothing is lost, and what is cut says so."""

from __future__ import annotations

import pytest

from diskbook.report.figures import fit

NAMES = (
    "4K random write-through, depth 8 x 8, 1,000/s\nshared ZRS, zone 2 / LRS, zone 1",
    "W" * 60,
    "i" * 300,
    "",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("room_pt", [30.0, 150.0])
def test_every_line_fits_and_no_letter_is_lost(name: str, room_pt: float) -> None:
    lines = fit.fitted(name, room_pt).split("\n")
    assert all(fit.width_pt(line) <= room_pt for line in lines)
    assert "".join("".join(lines).split()) == "".join(name.split())


def test_what_fits_stays_as_it_is_and_what_is_cut_says_so() -> None:
    assert fit.fitted("a  b\nc", 100) == "a  b\nc" and fit.cut("short", 100) == "short"
    cut = fit.cut("W" * 60, 100)
    assert cut.endswith("W…") and fit.width_pt(cut) <= 100
