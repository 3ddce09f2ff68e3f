"""The budget of lines holds, and what a package weighs is counted as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import weight


def module(name: str, text: str = "", file: str = "x.py") -> weight.Module:
    return weight.Module(name, Path(file), text)


@pytest.mark.long
def test_every_package_keeps_to_its_budget() -> None:
    known = weight.modules()
    assert weight.exceeded(weight.lines_by_package(known), weight.limits()) == []
    assert weight.too_long(known) == ""


def test_a_package_over_its_limit_without_one_or_gone_is_named() -> None:
    over, unlimited, gone = weight.exceeded({"a": 11, "b": 1}, {"a": 10, "c": 5})
    assert over == "a has 11 lines, its limit is 10: delete what it no longer needs"
    assert unlimited == "b has no limit in checks/budget.toml"
    assert gone == "checks/budget.toml limits c, which does not exist"


@pytest.mark.parametrize(
    ("name", "file", "package", "is_core"),
    [
        ("diskbook.stats.gates.data", "data.py", "diskbook.stats", True),
        ("diskbook.stats", "__init__.py", "diskbook.stats", True),
        ("diskbook.alone", "alone.py", "diskbook", True),
        ("diskbook.batch.matrix", "matrix.py", "diskbook.batch", False),
        ("diskbook_emulator.arm.disks", "disks.py", "diskbook_emulator", False),
    ],
)
def test_a_module_belongs_to_its_room(name: str, file: str, package: str, is_core: bool) -> None:
    made = module(name, file=file)
    assert (made.package, made.is_core) == (package, is_core)


def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings() -> None:
    text = '"""Doc."""\n\n# Why.\nx = (\n    1\n)\n\ndef f():\n    """Two\n    lines."""\n    return x\n'
    made = module("diskbook.a", text)
    assert (made.lines, made.code_lines(), made.functions()) == (11, 5, 1)


def test_imports_are_those_of_the_project_wherever_they_stand() -> None:
    known = ("diskbook.a", "diskbook.b", "diskbook.c.d", "diskbook.e")
    text = "import os\nfrom diskbook import b\nfrom diskbook.c.d import f\ndef g():\n    import diskbook.e\n"
    assert weight.imports(module("diskbook.a", text), known) == {"diskbook.b", "diskbook.c.d", "diskbook.e"}


def test_the_longest_chain_counts_its_modules() -> None:
    assert weight.longest_chain({"a": ["b", "c"], "b": ["c"], "c": [], "d": []}) == 3
    assert weight.longest_chain({}) == 0
