"""What is wrong with a file: a sentence per mistake that names the place in the file's own terms."""

import dataclasses
import difflib
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from diskbook.facts.errors import UsageError, one_line, unknown

MOST = 20
"""Mistakes of a file that are shown."""
_PLACE = re.compile(r"\[+(?P<kind>\w+)[^\]]*\]+ ?(?P<row>[\w-]*)")
_PLAIN = "{place}: {key}: {message} (it is {value})"
_EXTRA = ("extra_forbidden", "unexpected_keyword_argument")  # of a model, of a dataclass
_UNKNOWN = "unknown_name"
_GAPS = ("missing", "too_short")

Place = tuple[int | str, ...]


@dataclass(frozen=True)
class Wording:
    """How what is wrong with one kind of file is worded.

    - `row`: template of a row's place: `kind` (its key), `number` (from 1) and `name` (its own, else the
      number).
    - `sentences`: templates by pydantic's type of error, or by type and key ("missing latency"): `place`,
      `key`, `at` (place and key), `value`, `message`, and what pydantic adds for the type, e.g. `ge`.
    """

    row: str = "[[{kind}]] {name}"
    sentences: Mapping[str, str] = dataclasses.field(default_factory=dict)


def known_name(kind: str, known: Iterable[str] | Callable[[], Iterable[str]]) -> BeforeValidator:
    """Make the validator of a name that must be one of those known; its message has the nearest.

    - `kind`: what it names, e.g. "home zone".
    - `known`: the names that exist, or what reads them when they are first needed.
    """

    def check(value: object) -> str:
        names = tuple(known() if callable(known) else known)
        if str(value) not in names:
            raise PydanticCustomError(_UNKNOWN, "this is unknown", {"kind": kind, "known": names})
        return str(value)

    return BeforeValidator(check)


@dataclass(frozen=True)
class Mistake:
    """One mistake of a file.

    - `text`: a sentence that begins with the place.
    - `loc`: steps that lead to it.
    - `is_gap`: something is missing.
    """

    text: str
    loc: Place = ()
    is_gap: bool = False


class MistakesError(UsageError):
    """All mistakes of a file, a line each."""


def refusal(where: str, texts: Iterable[str], raw: Mapping[str, Any]) -> MistakesError:
    """Build the error for the mistakes of a file, in the order of the file.

    - `where`: the file, put in front of each line.
    - `texts`: a sentence each. The same one is shown once; after `MOST` of them only their number.
    - `raw`: what the file holds, for the order.
    """
    order = list(raw)

    def position(text: str) -> tuple[int, int]:
        place = _PLACE.match(text)
        if place is None or place["kind"] not in order:
            return -1, 0
        rows = raw[place["kind"]]
        names = [str(row.get("name")) if isinstance(row, Mapping) else "" for row in rows]
        return order.index(place["kind"]), names.index(place["row"]) if place["row"] in names else 0

    lines = [one_line(f"{where}: {text}") for text in sorted(dict.fromkeys(texts), key=position)]
    return MistakesError(shortened(lines))


def shortened(lines: Sequence[str]) -> str:
    """Join lines, of which more than `MOST` are counted only."""
    more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
    return "\n".join([*lines[:MOST], *more])


def mistakes(
    error: ValidationError, record: type[BaseModel], raw: Mapping[str, Any], wording: Wording
) -> list[Mistake]:
    """Say each of pydantic's findings in one sentence.

    - `record`: what the file was to be.
    - `wording`: the words of this kind of file.
    """
    rows = error.errors()
    return [
        Mistake(_sentence(row, record, raw, wording), _steps(row), row["type"] in _GAPS)
        for row in rows
        if not any(_explains(other, row) for other in rows)
    ]


def _explains(mistake: ErrorDetails, gap: ErrorDetails) -> bool:
    """Whether something is missing only since its key is misspelt, or since no row of a list is right."""
    if gap["type"] == "too_short":
        return len(mistake["loc"]) > len(gap["loc"]) and mistake["loc"][: len(gap["loc"])] == gap["loc"]
    return (
        gap["type"] == "missing"
        and mistake["type"] in _EXTRA
        and mistake["loc"][:-1] == gap["loc"][:-1]
        and bool(difflib.get_close_matches(str(mistake["loc"][-1]), [str(gap["loc"][-1])], cutoff=0.5))
    )


def _steps(row: ErrorDetails) -> Place:
    return tuple(step for step in row["loc"] if step != "[key]")


def _sentence(
    finding: ErrorDetails, record: type[BaseModel], raw: Mapping[str, Any], wording: Wording
) -> str:
    loc = _steps(finding)
    place = _place(loc, raw, wording.row)
    if finding["type"] == "value_error" and (not loc or isinstance(loc[-1], int)):
        return f"{place}: {finding['ctx']['error']}" if loc else str(finding["ctx"]["error"])
    key = next((step for step in reversed(loc) if isinstance(step, str)), "")
    if finding["type"] in _EXTRA:
        return str(unknown("key", key, _keys(record, loc[:-1]), place))
    if finding["type"] == _UNKNOWN:
        return str(unknown(finding["ctx"]["kind"], str(finding["input"]), finding["ctx"]["known"], place))
    message = finding["msg"].removeprefix("Value error, ")
    words = wording.sentences
    template = words.get(f"{finding['type']} {key}", words.get(finding["type"], _PLAIN))
    return template.format(
        **finding.get("ctx", {}),
        place=place,
        key=key,
        at=_at(loc, place, key),
        value=reprlib.repr(finding["input"]),  # a file may hold anything, of any depth
        message=f"{message[0].lower()}{message[1:]}",
    )


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
