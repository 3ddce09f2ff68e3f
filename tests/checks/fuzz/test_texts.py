"""Names and payloads on their whole way, and that a page or a terminal that they reach is told."""

from __future__ import annotations

import html
import os
from collections.abc import Callable

import pytest

from checks.fuzz import texts
from checks.fuzz.payloads import HTML, NAMES
from checks.fuzz.targets import BrokenPromise
from diskbook.facts import errors, table_writers
from diskbook.report.show import html as show_html

SHARE = 96
"""One in so many here; `make fuzz` takes them all."""
AT_ONCE = 4
"""Names of a run. All runs have as many, so the harmless run that they are compared with is made once."""


def test_there_are_two_hundred_payloads_and_names_of_any_bytes() -> None:
    assert len(HTML) == len(set(HTML)) == 200
    assert len(NAMES) == len(set(NAMES)) > 80
    used = set(b"".join(NAMES))
    assert not used & {0, ord("/")}  # which no file's name holds
    assert {0x1B, 0x80, 0xFF, 0x0A, ord("$"), ord("&"), ord("<")} <= used


@pytest.mark.long
def test_every_text_is_shown_on_a_page_and_obeyed_by_none() -> None:
    harmless, broken = texts.fragments(texts.HARMLESS), []
    for text in texts.TEXTS:
        try:
            texts.check(texts.fragments(text), harmless, text)
        except BrokenPromise as error:
            broken.append(f"{text!r}: {error}")
    assert broken == []


@pytest.mark.long
def test_names_and_payloads_are_imported_drawn_reported_and_printed() -> None:
    not_utf8 = [os.fsdecode(name) for name in NAMES if not _is_utf8(name)]
    chosen = [*texts.TEXTS[::SHARE], *not_utf8[:1]]
    assert len(chosen) == AT_ONCE and texts.failures(chosen) == []


def _is_utf8(name: bytes) -> bool:
    try:
        return bool(name.decode())
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize(
    ("text", "page", "message"),
    [
        ("<b>", lambda text: f"<p>{text}</p>", "the page has"),
        ('" onload="x', lambda text: f'<p title="{text}"></p>', "the page has"),
        ("--><i>", lambda text: f"<!-- {text} --><p></p>", "the page has"),
        ("\x1b[2J", lambda text: f"<p>{html.escape(text)}</p>", "steer"),
        ("name of it", lambda text: "<p>name</p>", "does not show"),
    ],
)
def test_a_page_that_obeys_a_text_is_found(text: str, page: Callable[[str], str], message: str) -> None:
    with pytest.raises(BrokenPromise, match=message):
        texts.check(page(text), page(texts.HARMLESS), text)


@pytest.mark.long
def test_a_table_without_escaping_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (show_html, table_writers):
        monkeypatch.setattr(module, "escaped", str)
    found = texts.failures([f"<img src=x onerror=alert({number})>" for number in range(AT_ONCE)])
    assert len(found) == AT_ONCE + 1
    assert all("the page has ('img', 'src', 'onerror')" in line for line in found)


@pytest.mark.long
def test_a_report_that_steers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_STEERING", frozenset())
    found = texts.failures([f"\x1b[{number}J" for number in range(AT_ONCE)])
    assert found and all("BrokenPromise" in line or "Error" in line for line in found)
