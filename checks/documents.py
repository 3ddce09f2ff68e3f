"""The keys that commands print with --json as one page, docs/reference/json.md.

`make format` writes it; a test compares.
"""

import types
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from diskbook.cli.documents import DOCUMENTS, Document, Record
from diskbook.facts import paths

PAGE = paths.ROOT / "docs" / "reference" / "json.md"
_HEAD = """# What `--json` prints

With `--json` a command prints one JSON document on standard output and nothing else. Errors stay one
sentence on standard error, with the same exit code. The first key, `schema`, names command and version
(`diskbook/why/1`). A version may gain keys. It never loses one or changes its meaning. Units are part of
the names, times are ISO 8601 in UTC, and `null` is a missing number. Numbers are rounded to ten
significant digits. `make format` writes this page from the records that the commands print.
`zone-affinity --json` prints one object on one line, with the verdict and the exit code.
"""


def page() -> str:
    return "\n".join([_HEAD, *(line for document in DOCUMENTS for line in _of(document))])


def _of(document: type[Document]) -> Iterator[str]:
    name = f"diskbook/{document.COMMAND}/{document.VERSION}"
    yield from [f"## `{name}`", "", f"{document.__doc__}", "", "| Key | Value | |", "|---|---|---|"]
    yield from _rows(document, "")
    yield ""


def _rows(record: type[Record], prefix: str) -> Iterator[str]:
    for name, field in record.model_fields.items():
        kind = field.annotation
        yield f"| `{prefix}{name}` | {_kind(kind)} | {field.description or ''} |"
        inner = [item for item in get_args(kind) if isinstance(item, type) and issubclass(item, Record)]
        if inner:
            yield from _rows(inner[0], f"{prefix}{name}{'[]' * (get_origin(kind) is list)}.")


def _kind(kind: Any) -> str:
    """A type in words of JSON."""
    if get_origin(kind) is list:
        return f"list of {_kind(get_args(kind)[0])}s"
    if get_origin(kind) is dict:
        return f"object of {_kind(get_args(kind)[1])}s"
    if isinstance(kind, types.UnionType):
        return f"{_kind(get_args(kind)[0])} or null"
    if kind is Any:
        return "value"
    if issubclass(kind, Record):
        return "object"
    return {str: "text", bool: "true or false", int: "whole number", float: "number"}[kind]
