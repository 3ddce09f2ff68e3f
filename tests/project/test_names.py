"""Names say what they hold, and a function is read without scrolling."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import pytest

from diskbook.facts import paths

FOLDERS = ("lib/diskbook", "lib/diskbook_emulator", "checks")
MODULES = sorted(path for folder in FOLDERS for path in (paths.ROOT / folder).rglob("*.py"))
EMPTY = {"found", "told", "said", "one", "mine", "wanted"}
LONGEST = 30
"""Lines of a function, without its head and docstring; a longer one says why in a comment "# Long: ..."."""


def empty_names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Variables and parameters whose name says nothing, and runs that are called folders."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in EMPTY:
            yield f"{node.id}, line {node.lineno}"
        if isinstance(node, ast.arg):
            kind = ast.unparse(node.annotation) if node.annotation else ""
            if node.arg in EMPTY or (node.arg == "folder" and kind == "Run"):
                yield f"{node.arg}: {kind}, line {node.lineno}"


def long_functions(nodes: Sequence[ast.AST], lines: list[str]) -> Iterator[str]:
    """Functions that are longer than may be and do not say why."""
    for node in nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body
        first, last = body[0].lineno, body[-1].end_lineno or 0
        if last - first + 1 > LONGEST and not any("# Long: " in line for line in lines[node.lineno : first]):
            yield f"{node.name}, {last - first + 1} lines"


def problems(text: str) -> list[str]:
    """Say what is wrong with a module's names and functions."""
    nodes = list(ast.walk(ast.parse(text)))
    return [*empty_names(nodes), *long_functions(nodes, text.splitlines())]


@pytest.mark.long
def test_names_say_something_and_functions_are_short() -> None:
    by_module = {str(path.relative_to(paths.ROOT)): problems(path.read_text("utf-8")) for path in MODULES}
    assert len(by_module) > 500
    assert {module: lines for module, lines in by_module.items() if lines} == {}


def test_what_is_forbidden_is_noticed() -> None:
    names = problems("def f(folder: Run, told):\n    found = 1\n")
    assert [name.split(",")[0] for name in names] == ["folder: Run", "told: ", "found"]
    long = "def f():\n" + "    x = 1\n" * (LONGEST + 1)
    assert problems(long) == [f"f, {LONGEST + 1} lines"]
    assert problems(long.replace("f():\n", "f():\n    # Long: a table.\n")) == []
