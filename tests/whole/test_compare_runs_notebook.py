"""The notebook that holds runs against each other: it takes a list of them, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest

from diskbook.facts import paths
from support import beside

pytestmark = pytest.mark.whole

NOTEBOOK = paths.NOTEBOOKS / "6-compare-runs.ipynb"


def test_three_runs_are_shown_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    truths = (None, None, beside.times(1.3))
    runs = [beside.measured(tmp_path / f"run-{place}", place, truth) for place, truth in enumerate(truths)]
    before = {path for run in runs for path in run.folder.rglob("*")}
    target = tmp_path / NOTEBOOK.name
    papermill.execute_notebook(
        str(NOTEBOOK),
        str(target),
        {"runs": [str(run.folder) for run in runs]},
        progress_bar=False,
        kernel_name="python3",
    )
    shown = "".join(
        output.get("data", {}).get("text/html", "")
        for cell in nbformat.read(target, as_version=4).cells
        for output in cell.get("outputs", [])
    )
    assert shown.index("EMULATED. These numbers") < shown.index("Changes, each run against run-0")
    assert "difference" in shown and "Spread between runs (emulated)" in shown and "<img" in shown
    assert {path for run in runs for path in run.folder.rglob("*")} == before
