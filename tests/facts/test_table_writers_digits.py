"""Numbers that differ in a last digit are written alike, in CSV and in JSON."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from diskbook.facts.table_writers import csv_text, rounded

RATIO = 1.0957820353460884
NEXT = float(np.nextafter(RATIO, 2))


def test_a_csv_has_ten_digits_and_nothing_for_what_is_missing() -> None:
    table = pd.DataFrame({"arm": ["a", "b"], "ratio": [RATIO, math.nan], "n": [12345678901, 2]})
    assert csv_text(table) == "arm,ratio,n\na,1.095782035,12345678901\nb,,2\n"
    assert csv_text(table) == csv_text(table.replace(RATIO, NEXT))
    assert csv_text(table) != csv_text(table.replace(RATIO, RATIO * (1 + 1e-9)))


def test_a_json_document_has_ten_digits_wherever_a_number_stands() -> None:
    content = {"a": [RATIO, {"b": (NEXT, None, "1.23456789012345")}], "n": 12345678901, "closed": True}
    short = 1.095782035
    assert rounded(content) == {
        "a": [short, {"b": [short, None, "1.23456789012345"]}],
        "n": 12345678901,
        "closed": True,
    }
    assert rounded(5e-324) == 5e-324 and rounded(0.0) == 0.0
