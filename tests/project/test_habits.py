"""What a stranger expects of a project: a changelog, examples that run, a wheel of the library alone."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import diskbook
from diskbook.facts import paths

PURE = ("stats", "design", "facts")
WITH_EXAMPLES = sorted(
    path
    for room in PURE
    for path in (paths.ROOT / "lib/diskbook" / room).rglob("*.py")
    if ">>> " in path.read_text("utf-8")
)


def test_the_changelog_begins_with_the_version() -> None:
    versions = re.findall(
        r"^## \[(\d\S*)\] - \d{4}-\d\d-\d\d$", (paths.ROOT / "CHANGELOG.md").read_text(), re.M
    )
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text())
    assert {versions[0], project["version"], citation["version"]} == {diskbook.__version__}


def test_pure_packages_have_examples() -> None:
    assert {path.relative_to(paths.ROOT).parts[2] for path in WITH_EXAMPLES} == set(PURE)


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_in_docstrings_are_true(path: Path) -> None:
    name = ".".join(path.relative_to(paths.ROOT / "lib").with_suffix("").parts)
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted and not outcome.failed


def test_hooks_run_tools_of_the_environment_without_a_network() -> None:
    repos = yaml.safe_load((paths.ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = [hook for repo in repos for hook in repo["hooks"]]
    assert {(repo["repo"], hook["language"]) for repo in repos for hook in repo["hooks"]} == {
        ("local", "system")
    }
    programs = [paths.ROOT / hook["entry"].split()[0] for hook in hooks]
    assert [program for program in programs if not program.exists()] == []


@pytest.mark.emulator
def test_the_wheel_has_types_and_the_library_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=paths.ROOT, capture_output=True, check=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"diskbook", "diskbook_emulator", f"diskbook-{diskbook.__version__}.dist-info"}
    assert {
        "diskbook/py.typed",
        "diskbook_emulator/py.typed",
        "diskbook/clusters/powershell/common.ps1",
    } <= set(names)
