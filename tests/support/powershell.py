"""A reader of PowerShell scripts: what does not parse, and calls that the table of cmdlets does not allow.

Nothing is run. A call is held against every parameter set of its cmdlet, as PowerShell itself chooses one;
what a parameter is given is not looked at. Shortened names and splatting are refused: they cannot be checked.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tree_sitter_powershell
from tree_sitter import Language, Node, Parser

TABLE = Path(__file__).parents[1] / "machines" / "cluster" / "cmdlets.csv"
# about_CommonParameters of Windows PowerShell 5.1.
COMMON = frozenset(
    f"{prefix}{name}".lower()
    for prefix, names in {
        "": ("Debug", "OutVariable", "OutBuffer", "PipelineVariable", "Verbose"),
        "Error": ("Action", "Variable"),
        "Information": ("Action", "Variable"),
        "Warning": ("Action", "Variable"),
    }.items()
    for name in names
)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a set: `position` is None where it must be named."""

    name: str
    mandatory: bool
    position: int | None
    piped: bool


@dataclass(frozen=True)
class ParameterSet:
    """The parameters that may be given together."""

    name: str
    parameters: tuple[Parameter, ...]

    def names(self) -> set[str]:
        return {parameter.name.lower() for parameter in self.parameters}


@dataclass(frozen=True)
class Call:
    """One call in a script; `piped` where something is sent to it."""

    name: str
    line: int
    named: tuple[str, ...]
    positional: int
    piped: bool
    splatted: bool


def mistakes(text: str) -> list[str]:
    """Return what is wrong with a script, each as line and sentence; empty when nothing is."""
    root = _parse(text)
    sentences = [f"line {node.start_point[0] + 1}: does not parse" for node in _broken(root)]
    functions = dict(_functions(root))
    for call in calls(text):
        sentences += [f"line {call.line}: {problem}" for problem in _problems(call, functions)]
    return sentences


def calls(text: str) -> list[Call]:
    """Return the calls of cmdlets and functions, without programs and script blocks."""
    return [call for node in _walk(_parse(text)) if node.type == "command" and (call := _call(node))]


@cache
def table() -> dict[str, list[ParameterSet]]:
    """Return the parameter sets of each cmdlet, by its name in lower case."""
    sets: dict[str, list[ParameterSet]] = {}
    with TABLE.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            parameters = [_parameter(word, True) for word in row["mandatory"].split()]
            parameters += [_parameter(word, False) for word in row["optional"].split()]
            sets.setdefault(row["cmdlet"].lower(), []).append(ParameterSet(row["set"], tuple(parameters)))
    return sets


def _parameter(word: str, mandatory: bool) -> Parameter:
    place, _, name = word.rpartition(":")
    return Parameter(name.rstrip("<"), mandatory, int(place) if place else None, name.endswith("<"))


def _problems(call: Call, functions: dict[str, ParameterSet]) -> list[str]:
    own = functions.get(call.name.lower())
    sets = [own] if own else table().get(call.name.lower())
    if sets is None:
        return [f"{call.name} is in no row of the table"]
    if call.splatted:
        return [f"{call.name} is splatted; its parameters cannot be checked"]
    known = set().union(*(each.names() for each in sets)) | COMMON
    unknown = [f"{call.name} has no parameter -{name}" for name in call.named if name.lower() not in known]
    if unknown:
        return unknown
    named = {name.lower() for name in call.named} - COMMON
    fitting = [each for each in sets if named <= each.names()]
    if not fitting:
        return [
            f"{call.name}: no parameter set takes {', '.join('-' + name for name in call.named)} together"
        ]
    lacks = [_lacking(call, named, each) for each in fitting]
    return [] if "" in lacks else [f"{call.name} {min(lacks, key=len)}"]


def _lacking(call: Call, named: set[str], chosen: ParameterSet) -> str:
    """Return what a call lacks of a set; empty where it is whole."""
    places = [
        item for item in chosen.parameters if item.position is not None and item.name.lower() not in named
    ]
    places.sort(key=lambda item: item.position or 0)
    if call.positional > len(places):
        return f"takes no {call.positional} values without names"
    given = named | {item.name.lower() for item in places[: call.positional]}
    missing = [item for item in chosen.parameters if item.mandatory and item.name.lower() not in given]
    if call.piped:
        # What is sent becomes one parameter, the first that may take it.
        taker = next((item for item in missing if item.piped), None)
        missing = [item for item in missing if item is not taker]
    return f"lacks {', '.join('-' + item.name for item in missing)}" if missing else ""


def _call(node: Node) -> Call | None:
    name = node.child_by_field_name("command_name")
    if name is None or name.type != "command_name" or _text(name).lower().endswith(".exe"):
        return None
    named: list[str] = []
    positional, splatted, takes = 0, False, False
    elements = node.child_by_field_name("command_elements")
    for element in elements.children if elements else []:
        if element.type == "command_parameter":
            named.append(_text(element).strip("-:"))
            takes = True
        elif element.type not in ("command_argument_sep", "redirection"):
            splatted = splatted or (_text(element).startswith("@") and _text(element)[1:2].isalpha())
            positional += 0 if takes else 1
            takes = False
    chain = node.parent
    piped = chain is not None and chain.type == "pipeline_chain" and chain.named_children[0] != node
    return Call(_text(name), node.start_point[0] + 1, tuple(named), positional, piped, splatted)


def _functions(root: Node) -> Iterator[tuple[str, ParameterSet]]:
    for node in _walk(root):
        if node.type == "function_statement":
            name = next(_text(child) for child in node.children if child.type == "function_name")
            declared = [part for part in _walk(node) if part.type == "script_parameter"]
            variables = [part for one in declared for part in _walk(one) if part.type == "variable"]
            names = [_text(variable).lstrip("$") for variable in variables]
            parameters = tuple(Parameter(each, False, at, False) for at, each in enumerate(names))
            yield name.lower(), ParameterSet("", parameters)


def _broken(root: Node) -> Iterator[Node]:
    yield from (node for node in _walk(root) if node.type == "ERROR" or node.is_missing)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _parse(text: str) -> Node:
    return Parser(Language(tree_sitter_powershell.language())).parse(text.encode()).root_node
