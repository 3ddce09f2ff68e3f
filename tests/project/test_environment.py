"""environment.yml and pyproject.toml ask for the same packages."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from diskbook.facts import paths

# conda's own needs: pip, to install what conda-forge lacks, and this package itself.
CONDA_ONLY = {"pip", "--editable ."}


def of_pyproject() -> dict[str, Any]:
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
    extras = [item for extra in project["optional-dependencies"].values() for item in extra]
    return specifiers([f"python{project['requires-python']}", *project["dependencies"], *extras])


def of_conda() -> dict[str, Any]:
    listed = yaml.safe_load((paths.ROOT / "environment.yml").read_text())["dependencies"]
    by_pip = next(item for item in listed if isinstance(item, dict))["pip"]
    plain = [item for item in listed if isinstance(item, str)]
    return specifiers([item for item in [*plain, *by_pip] if item not in CONDA_ONLY])


def specifiers(lines: list[str]) -> dict[str, Any]:
    """Name to version specifier; each may be named once."""
    parsed = [Requirement(line) for line in lines]
    found = {canonicalize_name(item.name): item.specifier for item in parsed}
    assert len(found) == len(parsed)
    return found


def test_both_name_the_same_packages_and_versions() -> None:
    assert of_conda() == of_pyproject()


def test_the_channels_leave_the_defaults_out() -> None:
    environment = yaml.safe_load((paths.ROOT / "environment.yml").read_text())
    assert (environment["name"], environment["channels"]) == ("diskbook", ["conda-forge", "nodefaults"])


def test_types_are_checked_for_the_python_that_runs() -> None:
    """The lock has another numpy for each; the stubs of one cannot be read as those of another."""
    tools = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["tool"]
    assert "python_version" not in tools["mypy"]


@pytest.mark.parametrize("lines", [["numpy>=2", "numpy>=1"], ["PyYAML>=6", "pyyaml>=6"]])
def test_a_package_named_twice_is_noticed(lines: list[str]) -> None:
    with pytest.raises(AssertionError):
        specifiers(lines)
