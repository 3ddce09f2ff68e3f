"""What is wrong with a file, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, with_config

from diskbook.facts.errors import LONGEST, one_line
from diskbook.facts.validation import MOST, Wording, known_name, mistakes, refusal

FIXED = ConfigDict(extra="forbid")


@with_config(FIXED)
@dataclass(frozen=True)
class Design:
    seed: Annotated[int, Field(ge=1)] = 1


class Deep(BaseModel):
    model_config = FIXED

    delays: dict[Annotated[str, known_name("operation", lambda: ("create", "delete"))], float] = {}


class Row(BaseModel):
    model_config = FIXED

    name: str
    colour: Annotated[str, known_name("colour", ("red", "green"))] = "red"
    parts: tuple[int, ...] = ()


class Document(BaseModel):
    model_config = FIXED

    design: Design = Design()
    row: Annotated[tuple[Row, ...], Field(min_length=1)]
    deep: Deep = Deep()


WORDING = Wording(
    sentences={
        "missing": "{place}: '{key}' is missing",
        "missing row": "write a [[row]]",
        "greater_than_equal": "{at} is at least {ge}, not {value}",
    }
)
ROWS = [{"name": "first"}]


def message_of(raw: dict[str, Any], wording: Wording = WORDING) -> str:
    with pytest.raises(ValidationError) as caught:
        Document.model_validate(raw)
    return mistakes(caught.value, Document, raw, wording)[0].text


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "write a [[row]]"),
        ({"rows": ROWS}, "top level: there is no key 'rows'; did you mean 'row'?"),
        ({"row": ROWS, "desing": {}}, "top level: there is no key 'desing'; did you mean 'design'?"),
        ({"row": ROWS, "design": {"sed": 1}}, "[design]: there is no key 'sed'; did you mean 'seed'?"),
        ({"row": ROWS, "design": {"seed": 0}}, "[design] seed is at least 1, not 0"),
        ({"row": [{}]}, "[[row]] 1: 'name' is missing"),
        ({"row": [{"nam": "x"}]}, "[[row]] 1: there is no key 'nam'; did you mean 'name'?"),
        (
            {"row": [*ROWS, {"name": "b", "parts": 3}]},
            "[[row]] b: parts: input should be a valid tuple (it is 3)",
        ),
        (
            {"row": [{"name": "b", "colour": "rad"}]},
            "[[row]] b: there is no colour 'rad'; did you mean 'red'?",
        ),
        (
            {"row": ROWS, "deep": {"delays": {"creat": 1}}},
            "[deep.delays]: there is no operation 'creat'; did you mean 'create'?",
        ),
    ],
)
def test_a_sentence_names_place_and_remedy(raw: dict[str, Any], message: str) -> None:
    assert message_of(raw) == message


def test_an_entry_of_a_list_is_told_by_the_name_of_the_list() -> None:
    words = message_of({"row": [{"name": "b", "parts": [1, "x"]}]})
    assert words.startswith("[[row]] b: parts: input should be a valid integer")
    assert message_of({"row": [5]}).startswith("[[row]] 1: row: input should be a valid dictionary")


def test_rows_are_named_as_the_file_names_them() -> None:
    assert (
        message_of({"row": [{}]}, Wording("{kind} row {number}", WORDING.sentences))
        == "row row 1: 'name' is missing"
    )


def test_what_a_file_holds_is_no_template() -> None:
    assert message_of({"row": ROWS, "design": {"seed": "{at}"}}).endswith("(it is '{at}')")


def test_many_mistakes_are_counted_and_none_is_said_twice() -> None:
    texts = [f"[[row]] r{number}: this is wrong" for number in range(MOST + 3)]
    raw = {"row": [{"name": f"r{number}"} for number in reversed(range(MOST + 3))]}
    lines = str(refusal("a.toml", [*texts, texts[0]], raw)).splitlines()
    assert lines[0] == f"a.toml: [[row]] r{MOST + 2}: this is wrong" and lines[-1] == "and 3 more"
    assert len(lines) == MOST + 1


def test_a_message_is_one_line_of_printable_text_and_ends() -> None:
    assert one_line("a\n b\tc\x00") == "a b c\N{REPLACEMENT CHARACTER}"
    assert len(one_line("x" * 10_000)) <= LONGEST + 5
