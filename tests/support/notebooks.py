"""The cells of an analysis notebook, executed on an analysis that is there already."""

from __future__ import annotations

import json
from typing import Any

from diskbook.analysis.run import Analysis
from diskbook.base.paths import NOTEBOOKS


def run_cells(scenario: str, module: str, a: Analysis) -> None:
    """Execute all code cells of a scenario's notebook but those with its parameters and its imports."""
    cells = json.loads((NOTEBOOKS / f"3-analyse-{scenario}.ipynb").read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][2:]
    names: dict[str, Any] = {"a": a}
    exec(f"from diskbook import show\nfrom diskbook.analysis import {module}, rerun, write", names)
    for source in sources:
        exec(source, names)
