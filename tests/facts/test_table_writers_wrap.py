"""Long lines, broken for a terminal: between words, with columns, numbers and commands whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from diskbook.facts.table_writers import WIDTH, terminal_width, wrapped

ROW = "  zrs-z1    " + "Premium_ZRS 1024 GiB on a machine of which there is much to tell, in zone 1"


def test_lines_that_fit_stay_as_they_are() -> None:
    text = "head:\n  a   1\n  bb  2\n\n    deep"
    assert wrapped(text) == text


def test_a_row_goes_on_below_its_text() -> None:
    assert wrapped(ROW, 60).splitlines() == [
        "  zrs-z1    Premium_ZRS 1024 GiB on a machine of which there",
        "            is much to tell, in zone 1",
    ]


def test_a_sentence_goes_on_two_columns_further_in() -> None:
    first, second = wrapped("  " + "word " * 18).splitlines()
    assert first.startswith("  word") and second.startswith("    word")


def test_a_number_keeps_its_unit_and_a_command_its_words() -> None:
    lines = wrapped("these words are here for it to be full: 5,000 IOPS, 'diskbook sweep --delete' goes", 46)
    assert lines.splitlines() == [
        "these words are here for it to be full:",
        "  5,000 IOPS, 'diskbook sweep --delete' goes",
    ]


def test_a_path_stays_whole() -> None:
    path = "/".join(["folder"] * 20)
    assert path in wrapped(f"report: {path}")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.from_regex(r"[a-z0-9,%]{1,12}", fullmatch=True), min_size=1), st.integers(0, 4))
def test_no_word_is_lost_and_no_line_is_too_long(words: list[str], indent: int) -> None:
    text = wrapped(" " * indent + " ".join(words))
    assert text.split() == words and max(map(len, text.splitlines())) <= WIDTH


def test_the_terminal_says_how_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (("100", 100), ("20", 60)):
        monkeypatch.setenv("COLUMNS", columns)
        assert terminal_width() == width
