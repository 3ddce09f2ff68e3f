"""README, docs and help keep the limits of checks/prose.toml; the measure itself is tried on small texts."""

from __future__ import annotations

import pytest

from checks import prose

SETTINGS = prose.read_settings()
ENFORCED = [document for document in prose.documents() if document.group in SETTINGS["limits"]["enforced"]]


@pytest.mark.long
@pytest.mark.parametrize("document", ENFORCED, ids=lambda document: document.name)
def test_prose_keeps_its_limits(document: prose.Prose) -> None:
    assert not list(prose.faults(document, SETTINGS)), f"python -m checks.prose {document.name}"


def test_all_groups_are_measured() -> None:
    groups = {document.group for document in prose.documents()}
    assert groups == {"README", "docs", "posts", "help", "notebooks"}


def test_code_tables_headings_and_quotations_do_not_count() -> None:
    text = "# A head\n\nOne two. `a b c d` three!\n\n| a | b |\n\n"
    text += '```sh\nls -l\n```\n\n- four "five six"\n- seven'
    counted = prose.sentences(text)
    assert counted == ("One two.", "Code three!", "four Quotation", "seven")
    assert prose.words("Names such as zrs-z1, zrs-z2, zrs-z3 and lrs count as one.") < 10


@pytest.mark.parametrize("sentence", ["The run is cut short.", "word " * 31, "Nothing of it is left."])
def test_a_fault_is_found(sentence: str) -> None:
    assert list(prose.faults(prose.Prose("docs", "a", (sentence,)), SETTINGS))


def test_an_exception_names_its_file_and_sentence() -> None:
    settings = {**SETTINGS, "exceptions": [{"file": "a", "part": "cut short", "reason": "a quotation"}]}
    sentences = ("The run is cut short.",)
    assert not list(prose.faults(prose.Prose("docs", "a", sentences), settings))
    assert list(prose.faults(prose.Prose("docs", "b", sentences), settings))
