"""The house in one picture: the layers of pyproject.toml, and what each package is for.

`make format` writes it into CONTRIBUTING.md; a test compares both.
"""

import ast
import tomllib
from pathlib import Path

from diskbook.facts import paths

PACKAGE = paths.ROOT / "lib/diskbook"
GUIDE = paths.ROOT / "CONTRIBUTING.md"


def layers() -> list[list[str]]:
    """Packages of each layer, top first, from the contract that import-linter enforces."""
    pyproject = (paths.ROOT / "pyproject.toml").read_text("utf-8")
    contracts = tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"]
    stair = next(contract for contract in contracts if contract["type"] == "layers")
    return [layer.replace(":", "|").replace(" ", "").split("|") for layer in stair["layers"]]


def purpose(package: Path, name: str) -> str:
    """First sentence of a package's or module's docstring."""
    inside, alone = package / name / "__init__.py", package / f"{name}.py"
    text = ast.get_docstring(ast.parse((inside if inside.exists() else alone).read_text("utf-8"))) or ""
    return text.split("\n")[0]


def picture(stair: list[list[str]]) -> str:
    """Draw the layers as a text block, a step each; siblings on one step do not import each other."""
    width = max(len(name) for layer in stair for name in layer)
    step = "+-" + "-" * width + "-+\n"
    rows = ("".join(f"| {name:<{width}} | {purpose(PACKAGE, name)}\n" for name in layer) for layer in stair)
    return f"```text\n{step}{step.join(rows)}{step}```"
