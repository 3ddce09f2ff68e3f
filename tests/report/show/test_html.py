"""Tables as HTML: what a telephone, paper and a screen reader need of them."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pandas as pd

from diskbook.report.show import html, tables
from diskbook.stats.diagnosis import Diagnosis, Finding


def test_each_cell_of_a_card_names_its_column_and_the_table_has_a_name() -> None:
    assert "data-label" not in html.table(pd.DataFrame({"a": [1.5]}))  # fits on a telephone as it is
    shown = html.table(pd.DataFrame({"a & b": [1.5], "Arm": ["<i>"], "Why": ["since " * 9]}), "Rates")
    assert 'role="group" aria-label="Rates" tabindex="0"' in shown
    assert '<td class="number" data-label="a &amp; b">1.500</td>' in shown
    assert '<td class="short" data-label="Arm">&lt;i&gt;</td>' in shown


def test_no_line_breaks_inside_a_number_or_an_interval() -> None:
    page = '<head>5 ms</head><p>-29.6 % (95 % CI -33 to -26 %), 3 ms</p><img alt="+3 %"><pre>3 ms</pre>'
    whole = re.findall(r'<span class="whole">(.*?)</span>', html.unbroken(page))
    assert whole == ["-29.6 %", "95 % CI -33 to -26 %", "3 ms"]
    assert html.Html(html.unbroken(page)).__repr__() == html.Html(page).__repr__()


def test_rows_are_cards_on_a_phone_unless_they_fit() -> None:
    kind = lambda frame: html.table(frame).split('"')[1]  # noqa: E731
    assert kind(pd.DataFrame({"Gate": ["cap"], "passed": [3]})) == "table"
    words = {"Load": "4K random write, depth 1", "Arms": "ZRS, zone 1 / LRS, zone 1"}
    assert kind(pd.DataFrame([words] * 3)) == "table cards"
    assert kind(pd.DataFrame([words] * 30)) == "table cards"
    assert kind(pd.DataFrame([{**words, "Why": "long " * 40}] * 30)) == "table cards"
    assert kind(pd.DataFrame([{f"column {n}": 1.0 for n in range(9)}])) == "table cards wide"


def test_throttling_is_a_table_with_names_of_arms() -> None:
    cell = Finding(
        "zrs", "write", Diagnosis.THROTTLED, "5,000 IOPS, 100 % of the disk limit", "a larger disk"
    )
    shown = tables.throttled(
        SimpleNamespace(labels={"zrs": "ZRS, zone 1"}, words={"write": "4K write"}), [cell]
    )
    assert "Of 1 cell: 1 throttled." in shown and "<pre" not in shown
    for words in ("ZRS, zone 1", "4K write", "5,000 IOPS, 100 % of the disk limit", "A larger disk"):
        assert words.lower() in shown.lower()
    assert "Nothing was measured" in tables.throttled(SimpleNamespace(), [])


def test_a_notebook_gets_the_style_of_reports_and_each_output_its_class() -> None:
    assert html.STYLE in html.banner("azure") and "http" not in html.STYLE
    assert html.Html("<p>x</p>")._repr_html_() == '<div class="diskbook"><p>x</p></div>'
