"""Every element of every article's set-up stands in the scenarios' README once, with what became of it."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from diskbook.design import scenario_file
from diskbook.facts import paths

STATES = {"done", "changed", "corrected", "left out", "to come"}
Element = tuple[str, str, str]


def parts(text: str) -> list[str]:
    """Elements of a list; a semicolon in brackets belongs to its element."""
    return re.split(r";\s*(?![^(]*\))", text)


def published() -> list[Element]:
    """Article, kind and element of each row of the published set-ups."""
    with (paths.REFERENCE / "published-setups.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [(row["article"], row["element"], part) for row in rows for part in parts(row["what"])]


def rows_of(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Article, elements, state and words of each row of the README's tables."""
    article = ""
    for line in text.splitlines():
        if line.startswith("## "):
            article = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip("|").split(" |")]
        if line.startswith("|") and not line.startswith(("|---", "| element")):
            yield article, cells[0], cells[1], cells[2]


def described(text: str) -> list[Element]:
    """Article, kind and element of each row of the README."""
    split = ((article, *elements.partition(": ")) for article, elements, _, _ in rows_of(text))
    return [(article, kind, part) for article, kind, _, what in split for part in parts(what)]


@pytest.fixture(scope="module")
def readme() -> str:
    return (paths.SCENARIOS / "README.md").read_text("utf-8")


def test_every_element_stands_there_exactly_once(readme: str) -> None:
    assert Counter(described(readme)) == Counter(published())
    assert max(Counter(published()).values()) == 1 and len(published()) > 90


def test_what_became_of_it_is_one_of_five_and_has_its_reason(readme: str) -> None:
    for article, elements, state, words in rows_of(readme):
        assert state in STATES, (article, elements)
        assert words or state == "to come", (article, elements)


def test_only_articles_without_a_scenario_are_to_come(readme: str) -> None:
    open_articles = {article for article, _, state, _ in rows_of(readme) if state == "to come"}
    assert open_articles == {article for article, _, _, _ in rows_of(readme)} - set(scenario_file.names())


def test_an_element_that_is_missing_or_twice_is_noticed(readme: str) -> None:
    row = next(line for line in readme.splitlines() if line.startswith("| machines"))
    for text in (readme.replace(row, ""), readme.replace(row, f"{row}\n{row}")):
        assert Counter(described(text)) != Counter(published())
