"""A reader of PowerShell scripts: what does not parse, and calls that the table of cmdlets does not allow.

Nothing is run. A call is compared with every parameter set of its cmdlet, as PowerShell itself chooses one;
of what a parameter is given, only words without quotes are looked at. Shortened names and splatting are
refused: they cannot be checked.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tree_sitter_powershell
from tree_sitter import Language, Node, Parser

TABLE = Path(__file__).parents[1] / "clusters" / "powershell" / "cmdlets.csv"
VALUES = TABLE.with_name("values.csv")
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
    words: tuple[tuple[str, str], ...]  # parameter and the word without quotes that it is given
    positional: int
    piped: bool
    splatted: bool


def mistakes(text: str) -> list[str]:
    """Return what is wrong with a script, each as line and sentence; empty when nothing is."""
    sentences = syntax_errors(text)
    functions = dict(_functions(_nodes(text)))
    for call in calls(text):
        sentences += [f"line {call.line}: {problem}" for problem in _problems(call, functions)]
    return sentences


def syntax_errors(text: str) -> list[str]:
    """Return where a script does not parse, each as line and sentence."""
    broken = [node for node in _nodes(text) if node.type == "ERROR" or node.is_missing]
    return [f"line {node.start_point[0] + 1}: does not parse" for node in broken]


def calls(text: str) -> list[Call]:
    """Return the calls of cmdlets and functions, without programs and script blocks."""
    return [call for node in _nodes(text) if node.type == "command" and (call := _call(node))]


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


@cache
def values() -> dict[tuple[str, str], set[str]]:
    """Return the words that a parameter accepts, by cmdlet and parameter in lower case."""
    with VALUES.open(encoding="utf-8", newline="") as rows:
        return {
            (row["cmdlet"].lower(), row["parameter"].lower()): set(row["values"].lower().split())
            for row in csv.DictReader(rows)
        }


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
    return _refused(call) if "" in lacks else [f"{call.name} {min(lacks, key=len)}"]


def _refused(call: Call) -> list[str]:
    """Return the words that a parameter does not accept."""
    return [
        f"{call.name} -{parameter} takes no {word}"
        for parameter, word in call.words
        if parameter.lower() not in COMMON
        and word.lower() not in values().get((call.name.lower(), parameter.lower()), set())
    ]


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
    words: list[tuple[str, str]] = []
    positional, splatted, takes = 0, False, False
    elements = node.child_by_field_name("command_elements")
    for element in elements.children if elements else []:
        if element.type == "command_parameter":
            named.append(_text(element).strip("-:"))
            takes = True
        elif element.type not in ("command_argument_sep", "redirection"):
            splatted = splatted or (_text(element).startswith("@") and _text(element)[1:2].isalpha())
            positional += 0 if takes else 1
            if takes and element.type == "generic_token":
                words.append((named[-1], _text(element)))
            takes = False
    chain = node.parent
    piped = chain is not None and chain.type == "pipeline_chain" and chain.named_children[0] != node
    return Call(_text(name), node.start_point[0] + 1, tuple(named), tuple(words), positional, piped, splatted)


def _functions(nodes: Sequence[Node]) -> Iterator[tuple[str, ParameterSet]]:
    for node in nodes:
        if node.type == "function_statement":
            name = next(_text(child) for child in node.children if child.type == "function_name")
            listed = [part for part in node.children if part.type == "function_parameter_declaration"]
            declared = [part for item in listed for part in _walk(item) if part.type == "script_parameter"]
            variables = [part for item in declared for part in _walk(item) if part.type == "variable"]
            names = [_text(variable).lstrip("$") for variable in variables]
            parameters = tuple(Parameter(each, False, at, False) for at, each in enumerate(names))
            yield name.lower(), ParameterSet("", parameters)


def _walk(node: Node) -> Iterator[Node]:
    ahead = [node]
    while ahead:
        node = ahead.pop()
        yield node
        ahead += reversed(node.children)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


@cache
def _nodes(text: str) -> list[Node]:
    parser = Parser(Language(tree_sitter_powershell.language()))
    return list(_walk(parser.parse(text.encode()).root_node))
