"""The cells of an analysis notebook, executed on an analysis that is there already."""

from __future__ import annotations

import json
from typing import Any

import pytest

import diskbook as db
from diskbook.api import results
from diskbook.facts.paths import NOTEBOOKS
from diskbook.report.analysis import write
from diskbook.report.analysis.run import Analysis
from diskbook.report.show import first_screen, headlines


def run_cells(scenario: str, a: Analysis) -> None:
    """Execute all code cells of a scenario's notebook here, without a kernel.

    Figures are drawn, but neither rendered nor exported.
    """
    written = a.run.folder / headlines.COMPARISONS
    written.unlink(missing_ok=True)  # a sample has one
    cells = json.loads((NOTEBOOKS / f"3-analyse-{scenario}.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(db, "open_run", lambda run, notebook: results.RunResults(a))
        patch.setattr(write.figures, "export_all", lambda pictures, folder, look: [])
        patch.setattr(first_screen.figures, "html", lambda picture: picture.caption)
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    assert names["a"] is a and len(headlines.read_comparisons(a.run)) == len(a.comparisons)
