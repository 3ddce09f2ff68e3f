"""The pages that are made from code are what the code says now."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import articles, campaign, pages
from diskbook.facts import paths

LONG = {articles.PAGE, campaign.PAGE}


def _page(path: Path) -> object:
    return pytest.param(path, id=path.name, marks=[pytest.mark.long] if path in LONG else [])


@pytest.mark.parametrize("path", map(_page, (*pages.WHOLE, *pages.PARTS)))
def test_a_page_is_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == pages.made(path), "make format writes it again"


def test_every_page_with_marks_is_made_and_has_them_once() -> None:
    there = [paths.ROOT / "CONTRIBUTING.md", *(paths.ROOT / "docs").glob("*/*.md")]
    marked = {path for path in there if pages.BEGIN in path.read_text("utf-8")}
    assert marked == set(pages.PARTS)
    for path in marked:
        text = path.read_text("utf-8")
        assert text.count(pages.BEGIN) == text.count(pages.END) == 1, path
