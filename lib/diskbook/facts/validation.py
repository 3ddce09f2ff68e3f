"""What pydantic finds wrong with a file, in one sentence that names the place in the file's own terms."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from diskbook.facts.errors import unknown

LONGEST = 500
"""Characters of a message; what a file holds may be longer."""
_PLAIN = "{place}: {key}: {message} (it is {value})"
_EXTRA = ("extra_forbidden", "unexpected_keyword_argument")  # of a model, of a dataclass
_UNKNOWN = "unknown_name"

Place = tuple[int | str, ...]


@dataclass(frozen=True)
class Wording:
    """How what is wrong with one kind of file is worded.

    Attributes
    ----------
    row
        Template of a row's place: `kind` (its key), `number` (from 1) and `name` (its own, else the number).
    sentences
        Templates by pydantic's type of error, or by type and key ("missing latency"): `place`, `key`, `at`
        (place and key), `value`, `message`, and what pydantic adds for the type, e.g. `ge`.
    """

    row: str = "[[{kind}]] {name}"
    sentences: Mapping[str, str] = dataclasses.field(default_factory=dict)


def known_name(kind: str, known: Iterable[str] | Callable[[], Iterable[str]]) -> BeforeValidator:
    """Make the validator of a name that must be one of those known; its message has the nearest.

    Parameters
    ----------
    kind
        What it names, e.g. "home zone".
    known
        The names that exist, or what reads them when they are first needed.
    """

    def check(value: object) -> str:
        names = tuple(known() if callable(known) else known)
        if str(value) not in names:
            raise PydanticCustomError(_UNKNOWN, "this is unknown", {"kind": kind, "known": names})
        return str(value)

    return BeforeValidator(check)


def sentence(
    error: ValidationError, record: type[BaseModel], raw: Mapping[str, Any], wording: Wording
) -> str:
    """Say the first of pydantic's findings in one sentence.

    Parameters
    ----------
    error
        What pydantic raised.
    record
        What the file was to be.
    raw
        What the file holds.
    wording
        The words of this kind of file.
    """
    first = _first(error)
    loc = tuple(step for step in first["loc"] if step != "[key]")
    place = _place(loc, raw, wording.row)
    if first["type"] == "value_error" and (not loc or isinstance(loc[-1], int)):
        return f"{place}: {first['ctx']['error']}" if loc else str(first["ctx"]["error"])
    key = next((step for step in reversed(loc) if isinstance(step, str)), "")
    if first["type"] in _EXTRA:
        return str(unknown("key", key, _keys(record, loc[:-1]), place))
    if first["type"] == _UNKNOWN:
        return str(unknown(first["ctx"]["kind"], str(first["input"]), first["ctx"]["known"], place))
    message = first["msg"].removeprefix("Value error, ")
    words = wording.sentences
    template = words.get(f"{first['type']} {key}", words.get(first["type"], _PLAIN))
    return template.format(
        **first.get("ctx", {}),
        place=place,
        key=key,
        at=_at(loc, place, key),
        value=reprlib.repr(first["input"]),  # a file may hold anything, of any depth
        message=f"{message[0].lower()}{message[1:]}",
    )


def one_line(text: str) -> str:
    """A message with whatever a file holds in it: without control characters, and not endless."""
    words = " ".join(text.split())
    printable = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in words)
    half = LONGEST // 2
    return printable if len(printable) <= LONGEST else f"{printable[:half]} ... {printable[-half:]}"


def _first(error: ValidationError) -> ErrorDetails:
    """The first finding; where a key is missing, one in its place that does not exist: it is a slip."""
    rows = error.errors()
    if rows[0]["type"] != "missing":
        return rows[0]
    inside = rows[0]["loc"][:-1]
    return next((row for row in rows if row["type"] in _EXTRA and row["loc"][:-1] == inside), rows[0])


def _place(loc: Place, raw: Mapping[str, Any], row: str) -> str:
    """The row or table that a finding is in."""
    if len(loc) > 1 and isinstance(loc[1], int):
        entry, number = raw[str(loc[0])][loc[1]], loc[1] + 1
        name = entry.get("name", number) if isinstance(entry, Mapping) else number
        return row.format(kind=loc[0], number=number, name=name)
    tables: list[str] = []
    inside: Any = raw
    for step in loc[:-1]:
        inside = inside.get(step) if isinstance(inside, Mapping) else None
        if not isinstance(inside, Mapping):
            break
        tables.append(str(step))
    return f"[{'.'.join(tables)}]" if tables else "top level"


def _at(loc: Place, place: str, key: str) -> str:
    """Place and key as the subject of a sentence."""
    if len(loc) < 2:
        return key
    if isinstance(loc[1], int):
        return f"{place}: {key}" if len(loc) > 2 else place
    return f"{place} {key}"


def _keys(record: Any, steps: Place) -> list[str]:
    """Keys of the record that some steps lead to."""
    for step in steps:
        record = get_type_hints(record)[step] if isinstance(step, str) else get_args(record)[0]
    if issubclass(record, BaseModel):
        return list(record.model_fields)
    return [field.name for field in dataclasses.fields(record)]
