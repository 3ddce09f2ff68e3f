"""The notebook of pooled runs, executed: its own numbers are those of the workbook, which it asserts."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest

from diskbook.facts import paths
from support.run_copies import copies

pytestmark = pytest.mark.whole


def test_the_notebook_computes_what_the_workbook_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    source, target = paths.NOTEBOOKS / "9-pool.ipynb", tmp_path / "9-pool.ipynb"
    asked = {"runs": [str(folder) for folder in copies(tmp_path, 5)]}
    papermill.execute_notebook(str(source), str(target), asked, progress_bar=False, kernel_name="python3")
    cells = nbformat.read(target, as_version=4).cells
    assert len(cells) <= 26  # papermill adds one
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    shown = "".join(str(output.get("text", "")) + str(output.get("data", "")) for output in outputs)
    assert "EMULATED" in shown and "image/png" in shown and "runs like these" in shown.lower()
    assert "No single run decides" in shown and "all runs have one region" in shown
