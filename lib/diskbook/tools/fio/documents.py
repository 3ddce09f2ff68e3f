"""Finder of fio's JSON documents in a file: text around them, several of them, a truncated last one.

Compute only, no I/O.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from diskbook.tools.record import UnusableError

_START = re.compile(r'\{\s*"fio version"')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]')
# fio prints what C prints for a division by zero, which is not JSON.
_NOT_A_NUMBER = re.compile(r"(?<=[:\s,\[])-?(?:nan|inf)(?=[\s,}\]])", re.IGNORECASE)
_MAX_DEPTH = 64
_MOST_FAILURES = 8  # in one file; a damaged one is not tried for ever
_EMPTY_PERCENTILE = "0.00"  # fio before 3 pads its percentiles with these


@dataclass(frozen=True)
class Document:
    """One document: its content, the line (from 1) it begins at, and what was found on the way.

    `cut` says that its end is missing, `damaged_line` where it first is not JSON; None when all of it is.
    """

    content: dict[str, Any]
    line: int
    flags: tuple[str, ...]
    cut: bool
    damaged_line: int | None = None


def documents(text: str, source: str, *, all_whole: bool = False) -> list[Document]:
    """Find all documents of fio.

    - `text`: with whatever stands before, between and after them.
    - `source`: its name, for messages.
    - `all_whole`: refuse the text when one of its documents is damaged.

    Raises UnusableError when there is none, or none that can be read; names the line where it can.
    """
    pieces: list[Document] = []
    failures: list[UnusableError] = []
    position, line, counted = 0, 1, 0
    while len(failures) < _MOST_FAILURES and (start := _START.search(text, position)):
        line += text.count("\n", counted, start.start())
        counted = start.start()
        try:
            document, position = _document(text, start.start(), line, source)
            pieces.append(document)
        except UnusableError as error:
            failures.append(error)
            position = start.end()
    pieces = pieces or _whole(text)
    if all_whole:
        failures += [_damaged(source, item.damaged_line) for item in pieces if item.damaged_line]
    if pieces and not (all_whole and failures):
        return pieces
    raise failures[0] if failures else UnusableError(source, "there is no JSON of fio in it")


def _damaged(source: str, line: int) -> UnusableError:
    return UnusableError(source, "fio's JSON is damaged", line)


def _document(text: str, start: int, line: int, source: str) -> tuple[Document, int]:
    """Read the document that begins there; return where it ends, too."""
    pairs = _Pairs()
    try:
        content, end = pairs.decoder.raw_decode(text, start)
        return Document(content, line, pairs.flags(), False), end
    except (ValueError, RecursionError) as error:
        end = getattr(error, "pos", len(text))
        why = str(error).split(":")[0]
    later = _START.search(text, start + 1)
    limit = later.start() if later else len(text)
    return _mended(text[start:limit], end - start, line, why, source), max(end, start + 1)


def _mended(text: str, broken: int, line: int, why: str, source: str) -> Document:
    """Read a document that is not JSON: with words for numbers, or broken off."""
    pairs = _Pairs()
    numbers = _NOT_A_NUMBER.sub("null", text)
    try:
        content, _ = pairs.decoder.raw_decode(numbers)
        flags = (*pairs.flags(), "values that are not numbers (nan, inf) are left out")
        return Document(content, line, flags, False, line + text.count("\n", 0, broken))
    except (ValueError, RecursionError) as error:
        broken = getattr(error, "pos", broken)
    pairs = _Pairs()
    where = line + numbers.count("\n", 0, broken)
    try:
        content, _ = pairs.decoder.raw_decode(_closed(numbers[:broken]))
    except (ValueError, RecursionError):
        raise UnusableError(source, f"fio's JSON is damaged ({why})", where) from None
    flag = f"cut or damaged at line {where}: what came before is used"
    return Document(content, line, (*pairs.flags(), flag), True, where)


def _closed(text: str) -> str:
    """Cut back to the last complete member, and close what is open."""
    open_brackets: list[str] = []
    end, closers = 0, ""
    for token in _TOKEN.finditer(text):
        sign = token.group()
        if sign in "{[":
            open_brackets.append("}" if sign == "{" else "]")
            if len(open_brackets) > _MAX_DEPTH:
                raise ValueError("nested too deeply")
        elif sign in "}]":
            if not open_brackets:
                break
            open_brackets.pop()
        elif sign == ",":
            end, closers = token.start(), "".join(reversed(open_brackets))
    return text[:end] + closers


def _whole(text: str) -> list[Document]:
    """Look for documents anywhere in a file that is JSON as a whole, with their keys in another order."""
    try:
        return [Document(item, 1, (), False) for item in inside(json.loads(text))]
    except (ValueError, RecursionError):
        return []


def inside(content: object) -> Iterator[dict[str, Any]]:
    """Documents of fio in lists and members of what was read as JSON."""
    if isinstance(content, dict) and "fio version" in content:
        yield content
    elif isinstance(content, dict | list):
        for item in content.values() if isinstance(content, dict) else content:
            yield from inside(item)


class _Pairs:
    """A decoder that notices keys that an object has twice, with different values."""

    def __init__(self) -> None:
        self._twice: set[str] = set()
        self.decoder = json.JSONDecoder(object_pairs_hook=self._object, parse_constant=_no_constant)

    def flags(self) -> tuple[str, ...]:
        """Say which keys were there twice."""
        if not self._twice:
            return ()
        names = ", ".join(f"'{name}'" for name in sorted(self._twice)[:3])
        return (f"keys that are there twice with different values: {names}; the last counts",)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            self._twice.update(_differing(pairs, made))
        return made


def _differing(pairs: list[tuple[str, Any]], made: dict[str, Any]) -> Iterator[str]:
    return (name[:40] for name, value in pairs if made[name] != value and name != _EMPTY_PERCENTILE)


def _no_constant(_: str) -> None:
    """Take NaN and Infinity for a missing value."""
