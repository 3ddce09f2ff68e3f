"""One table, written five ways: what each does with numbers, gaps, notes and text that may be anybody's."""

from __future__ import annotations

import math

import pandas as pd

from diskbook.facts import table_writers
from diskbook.facts.table_writers import Notes, Table


def made() -> Table:
    notes = Notes()
    rows = [
        {"Arm": "a|b <i>", "IOPS": 5000, "ms": 1.23456, "took": "9 min", "empty": ""},
        {
            "Arm": f"c {notes.mark('since it is deep')}",
            "IOPS": 12,
            "ms": math.nan,
            "took": "46 min",
            "empty": "",
        },
    ]
    return Table.of(rows, "Rates", notes, optional=["empty"], right=["took"])


def test_a_note_is_numbered_once() -> None:
    notes = Notes()
    assert [notes.mark("a"), notes.mark("b"), notes.mark("a"), notes.mark("")] == ["[1]", "[2]", "[1]", ""]


def test_text_has_numbers_to_the_right_and_breaks_a_long_first_cell() -> None:
    lines = table_writers.text(made(), indent=2).splitlines()
    assert lines == [
        "  Arm       IOPS     ms    took",
        "  a|b <i>  5,000  1.235   9 min",
        "  c [1]       12      –  46 min",
        "  [1] since it is deep",
    ]
    assert "a|b  5,000  1.235   9 min\n  <i>\n" in table_writers.text(made(), first_width=4)


def test_markdown_has_no_markup_of_texts() -> None:
    shown = table_writers.markdown(made())
    assert shown.startswith("*Rates*\n\n| Arm | IOPS | ms | took |\n| --- | ---: | ---: | ---: |\n")
    assert r"| a\|b \<i\> | 5,000 | 1.235 | 9 min |" in shown and shown.endswith("1. since it is deep")
    assert table_writers.markdown(Table.of([])) == ""


def test_html_is_escaped_and_has_its_notes() -> None:
    shown = table_writers.html(made())
    assert "a|b &lt;i&gt;" in shown and '<td class="number">&ndash;</td>' in shown
    assert shown.endswith('<ol class="notes"><li>Since it is deep.</li></ol>')


def test_programs_get_numbers_and_no_nan() -> None:
    assert table_writers.as_csv(made()).splitlines()[1:] == ["a|b <i>,5000,1.23456,9 min", "c [1],12,,46 min"]
    first, second = table_writers.as_json(made())
    assert first == {"Arm": "a|b <i>", "IOPS": 5000, "ms": 1.23456, "took": "9 min"} and second["ms"] is None


def test_csv_is_that_of_pandas() -> None:
    frame = pd.DataFrame({"a": [1.0 / 3, math.nan], "b": ['x "y"', "p, q"], "c": [True, False]})
    written = frame.to_csv(index=False, lineterminator="\n", float_format="%.10g")
    assert table_writers.as_csv(Table.of(frame)) == written


def test_rows_may_lack_cells() -> None:
    table = Table.of([{"a": 1}, {"b": 2.5}])
    assert (
        table.heads == ("a", "b") and table.rows == [(1, None), (None, 2.5)] and table.numeric == [True, True]
    )
