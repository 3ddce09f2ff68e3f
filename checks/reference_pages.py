"""Tables of the reference pages of scenario keys, table columns and emulator profiles.

They come from the models that read scenarios, from the tables' schema, and from the profiles.

Meanings are in checks/meanings.toml.
"""

import tomllib
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from checks import markdown
from diskbook.design import schema
from diskbook.design.model import Scenario
from diskbook.facts import paths

FOLDER = paths.ROOT / "docs" / "reference"
MEANINGS = paths.ROOT / "checks" / "meanings.toml"
_KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below", "multiple_of": "multiple of"}
_UNITS = {"": "", "1/s": "per second", "10^6 bytes/s": "MB/s"}


def meanings() -> dict[str, Any]:
    return tomllib.loads(MEANINGS.read_text("utf-8"))


def scenario_keys() -> str:
    """One table per table of a scenario file."""
    return "\n".join(line for name, record in records().items() for line in _keys(name, record))


def records() -> dict[str, tuple[type[BaseModel], bool]]:
    """Tables of a scenario file: the record of each, and whether there may be several."""
    listed = {}
    for name, field in Scenario.model_fields.items():
        for record in (field.annotation, *get_args(field.annotation)):
            if isinstance(record, type) and issubclass(record, BaseModel):
                listed[name] = record, get_origin(field.annotation) is tuple
    return listed


def _keys(name: str, listed: tuple[type[BaseModel], bool]) -> Iterator[str]:
    record, several = listed
    head = f"[[{name}]]" if several else f"[{name}]"
    texts = meanings()["keys"][name]
    rows = [
        (f"`{key}`", _value(field), _default(field), texts[key]) for key, field in record.model_fields.items()
    ]
    yield from (f"## `{head}`", "", markdown(("Key", "Value", "Default", "Meaning"), rows), "")


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required():
        return "required"
    if value is None or value in ((), "", {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _value(field: FieldInfo) -> str:
    limits = ", ".join(_limits(field.metadata))
    return f"{_kind(field.annotation)}{f', {limits}' if limits else ''}"


def _limits(metadata: list[Any]) -> Iterator[str]:
    for limit in metadata:
        for name, word in _LIMITS.items():
            if getattr(limit, name, None) is not None:
                yield f"{word} {getattr(limit, name):,}"


def _kind(kind: Any) -> str:
    """Name a type for readers."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in args)
    if origin in (types.UnionType, Union):
        return ", ".join(dict.fromkeys(_kind(arg) for arg in args if arg is not type(None)))
    if origin is tuple:
        return f"list of {_kind(args[0])}"
    if origin is dict:
        return "table of texts"
    if origin is not None:
        return _kind(args[0])
    return _KINDS[kind]


def columns() -> str:
    """One table per table of a run."""
    return "\n".join(line for table in tables() for line in _columns(table))


def tables() -> list[schema.Table]:
    """Tables of a run, in the order of the schema."""
    return [table for table in vars(schema).values() if isinstance(table, schema.Table)]


def _columns(table: schema.Table) -> Iterator[str]:
    texts = meanings()
    yield from (f"### `{table.name}`", "", texts["tables"][table.name], "")
    if table.name == schema.EVIDENCE.name:
        return
    heads = ("Column", "Type", "Unit", "May be empty", "Meaning")
    yield from (markdown(heads, [_column(item, texts["columns"][item.name]) for item in table.columns]), "")


def _column(column: schema.Column, meaning: str) -> tuple[str, ...]:
    values = ", ".join(f"`{value}`" for value in column.values if value)
    kind = column.dtype.partition("[")[0].replace("str", "text")
    empty = "yes" if column.nullable or column.default is not None else ""
    meaning += f" One of: {values}." if values else ""
    return f"`{column.name}`", kind, _UNITS.get(column.unit, column.unit), empty, meaning


def profiles() -> str:
    """One row per profile of the emulator."""
    played = {path: tomllib.loads(path.read_text("utf-8")) for path in sorted(paths.PROFILES.glob("*.toml"))}
    rows = [(f"`{path.stem}`", profile["description"]) for path, profile in played.items()]
    return markdown(("Profile", "What it plays"), rows)


PAGES = {
    FOLDER / "scenario-keys.md": scenario_keys,
    FOLDER / "run-folder.md": columns,
    FOLDER / "profiles.md": profiles,
}
