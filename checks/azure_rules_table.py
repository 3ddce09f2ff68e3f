"""Documented rules of Azure: a request that breaks each, the nearest that does not, and Azure's answer.

The rules are in `azure_rules.yaml`. `tests/checks/test_azure_rules_table.py` sends every one to the
emulated control plane, and checks its scenario against the rules that hold before a run. `azure_rules`
writes the page.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from checks import azure_requests

TABLE = Path(__file__).with_name("azure_rules.yaml")
_GIVEN: Mapping[str, tuple[azure_requests.Request, ...]] = {
    "machine": azure_requests.MACHINE,
    "second": azure_requests.SECOND,
    "five": tuple(azure_requests.disk(f"d{number}") for number in range(5)),
}


@dataclass(frozen=True)
class Rule:
    """One rule of Azure.

    - `name`: in plain words, what must hold.
    - `breaks`, `neighbour`: a request that breaks it, and the nearest one that does not.
    - `status`, `code`: of Azure's answer.
    - `source`: where the rule, and Azure's words for it, are from.
    - `given`: what must be there before.
    - `says`: what must stand in the message, where Azure's own words are known.
    - `quoted`: whether `code` was read; else it is inferred.
    - `known`, `scenario`: the rule of `reference.rules`, `scenario` or `azure.preflight` by which a run is
      refused before its first create, and the overrides of a small scenario with that mistake; empty where
      none can have it.
    - `day`: when the request is made, where that matters.
    """

    name: str
    breaks: azure_requests.Request
    neighbour: azure_requests.Request
    status: int
    code: str
    source: str
    given: tuple[azure_requests.Request, ...] = ()
    says: str = ""
    quoted: bool = False
    known: str = ""
    scenario: Mapping[str, Any] = field(default_factory=dict)
    day: str = ""


class _Loader(yaml.SafeLoader):
    """Reads YAML, and long values as `!times [x, 65]` and `!tags 51` (so many tags)."""


def _times(loader: _Loader, node: yaml.SequenceNode) -> str:
    text, count = loader.construct_sequence(node)
    return str(text * count)


def _tags(loader: _Loader, node: yaml.ScalarNode) -> dict[str, str]:
    return {f"t{number}": "" for number in range(int(node.value))}


_Loader.add_constructor("!times", _times)
_Loader.add_constructor("!tags", _tags)


def _request(call: list[Any]) -> azure_requests.Request:
    name, *arguments = call
    changes = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    made: azure_requests.Request = getattr(azure_requests, name)(*arguments, **changes)
    return made


def _given(rows: list[Any]) -> Iterator[azure_requests.Request]:
    for row in rows:
        yield from _GIVEN[row] if isinstance(row, str) else (_request(row),)


def _rule(row: dict[str, Any]) -> Rule:
    given = tuple(_given(row.pop("given", [])))
    return Rule(
        breaks=_request(row.pop("breaks")), neighbour=_request(row.pop("neighbour")), given=given, **row
    )


SECTIONS: Mapping[str, tuple[Rule, ...]] = {
    title: tuple(_rule(row) for row in rows)
    for title, rows in yaml.load(TABLE.read_text("utf-8"), _Loader).items()
}
RULES = tuple(rule for rules in SECTIONS.values() for rule in rules)
