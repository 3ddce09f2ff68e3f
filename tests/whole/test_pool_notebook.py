"""The notebook of pooled runs, executed: its own numbers are those of the workbook, which it asserts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from diskbook.facts import paths
from support import notebooks
from support.run_copies import copies

pytestmark = pytest.mark.whole


def test_the_notebook_computes_what_the_workbook_does(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    runs = [str(folder) for folder in copies(tmp_path, 4)]
    cells = notebooks.executed(paths.NOTEBOOKS / "9-pool.ipynb", names, runs=runs).cells
    assert len(cells) <= 25
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    shown = "".join(str(output.get("text", "")) + str(output.get("data", "")) for output in outputs)
    assert "EMULATED" in shown and isinstance(names["axes"], Axes) and "runs like these" in shown.lower()
    assert "No single run decides" in shown and "all runs have one region" in shown
