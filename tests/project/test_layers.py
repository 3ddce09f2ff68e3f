"""The layers of the package hold, and an import stands where it is seen."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from diskbook import cli
from diskbook.facts import paths

PACKAGES = ("diskbook", "diskbook_emulator", "checks")
FOLDERS = ("lib/diskbook", "lib/diskbook_emulator", "checks")
COMMANDS = {where.partition(":")[0].replace(".", "/") + ".py" for where in cli.COMMANDS.values()}
MODULES = sorted(
    path
    for folder in FOLDERS
    for path in (paths.ROOT / folder).rglob("*.py")
    if path.parent != paths.ROOT / "lib/diskbook/cli"
    and str(path.relative_to(paths.ROOT / folder.split("/")[0])) not in COMMANDS
)
"""All but the command line, whose commands are loaded when they are called."""
LOADED_LATER = {
    "lib/diskbook/importing/preview.py",
    "lib/diskbook/importing/run.py",
    "lib/diskbook/importing/terminal.py",
    "lib/diskbook/report/analysis/run.py",
}
"""Modules that import what draws, prices or reports when it is asked for; an import needs none of it."""


NOT_AT_THE_TOP = re.compile(r"^(?!from |import ).*\bimport\b", re.MULTILINE)


def lazy_imports(text: str) -> Iterator[str]:
    """Names of the workbook's own modules that functions import when they are called."""
    if not NOT_AT_THE_TOP.search(text):
        return
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                yield from (name for name in names if name.split(".")[0] in PACKAGES)


@pytest.mark.emulator
def test_every_contract_is_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.long
def test_modules_are_imported_at_the_top() -> None:
    by_module = {
        str(path.relative_to(paths.ROOT)): list(lazy_imports(path.read_text("utf-8"))) for path in MODULES
    }
    assert len(by_module) > 500
    assert {module for module, names in by_module.items() if names} == LOADED_LATER


def test_a_lazy_import_is_noticed() -> None:
    assert list(lazy_imports("def f():\n    from diskbook.stats import view\n")) == ["diskbook.stats"]
    assert list(lazy_imports("def f():\n    import numpy\nfrom diskbook import stats\n")) == []
