"""Names from files on terminals and pages: nothing in them steers, everything else is as it was."""

from __future__ import annotations

import io
import os

import pytest
from hypothesis import given, strategies as st

from diskbook.facts.errors import LINES, DiskbookError, guard, is_visible, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;owned\x07", "<U+001B>]0;owned<U+0007>"),
        ("\x9b31m", "<U+009B>31m"),  # C1: as good as ESC [ on many terminals
        ("\u202egnp.exe", "<U+202E>gnp.exe"),
        ("\u2066a\u2069\u200b\u2028", "<U+2066>a<U+2069><U+200B><U+2028>"),
        ("a\r\nb\t\x7f\x00", "a<U+000D><U+000A>b<U+0009><U+007F><U+0000>"),
        (os.fsdecode(b"\xff\x80.json"), "<FF><80>.json"),
        ("\ud800", "<U+D800>"),
        ("\U000e0041", "<U+E0041>"),
        (
            "C:\\тест 磁盘 é ² × – \N{NO-BREAK SPACE}µ $x$ <b>",
            "C:\\тест 磁盘 é ² × – \N{NO-BREAK SPACE}µ $x$ <b>",
        ),
    ],
)
def test_what_steers_is_shown_and_the_rest_is_left(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert is_visible(text) == (text == shown)


@given(st.text(st.characters()))
def test_any_text_becomes_one_that_is_visible_and_can_be_encoded(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert is_visible(shown) and visible(shown) == shown
    assert is_visible(visible(text, LINES), LINES)


def test_a_message_that_quotes_a_file_steers_nothing() -> None:
    assert str(DiskbookError("a\x1b[2Jb: two\nlines")) == "a<U+001B>[2Jb: two\nlines"


def test_a_guarded_stream_writes_what_is_visible() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    guard(stream)
    print("run \x1b[31m", os.fsdecode(b"\xff"), "é", sep="\t", file=stream, flush=True)
    assert stream.buffer.getvalue().decode() == "run <U+001B>[31m\t<FF>\té\n"
