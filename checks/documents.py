"""The keys that commands print with --json as one page, docs/reference/json.md.

`make format` writes it; a test compares.
"""

import types
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from checks import markdown, page_head
from diskbook.cli.documents import DOCUMENTS, Document, Record
from diskbook.facts import paths

PAGE = paths.ROOT / "docs" / "reference" / "json.md"
_HEAD = page_head("documents")


def page() -> str:
    return "\n".join([_HEAD, *(line for document in DOCUMENTS for line in _of(document))])


def _of(document: type[Document]) -> Iterator[str]:
    name = f"diskbook/{document.COMMAND}/{document.VERSION}"
    yield from [f"## `{name}`", "", f"{document.__doc__}", ""]
    yield from [markdown(("Key", "Value", ""), _rows(document, "")), ""]


def _rows(record: type[Record], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, field in record.model_fields.items():
        kind = field.annotation
        yield f"`{prefix}{name}`", _kind(kind), field.description or ""
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
