"""The report that a notebook makes of itself; test_report.py has one that papermill executed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from IPython.core.history import HistoryOutput

from diskbook.report.analysis import report


def notebook(*cells: str) -> nbformat.NotebookNode:
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    made.cells[0].metadata["tags"] = ["remove-cell"]
    return made


def returned(text: str) -> HistoryOutput:
    return HistoryOutput("execute_result", {"text/html": text})


PRINTED = HistoryOutput("out_stream", {"stream": ["a print\n"]})
FIGURE = HistoryOutput("display_data", {"image/png": "iVBORw0KGgo="})


def test_each_cell_gets_what_it_showed_last() -> None:
    made = notebook("import os", "show.screen(a)", "show.figure(a)", "show.gates(a)")
    sources = ["", "import os", "show.screen(a)\n", "show.screen(a)", "show.gates(a)"]
    outputs = {2: [returned("first")], 3: [returned("last")], 4: []}
    assert report._fill(made, sources, outputs) == 1
    shown = [[output.data["text/html"] for output in cell.outputs] for cell in made.cells]
    assert shown == [[], ["last"], [], []]


def test_an_analysts_cells_follow_those_before_them() -> None:
    made = notebook("import os", "show.screen(a)", "show.gates(a)")
    sources = [
        "old",
        "import os",
        "show.screen(a)",
        "print(1); plot()",
        "silent = 1",
        "show.gates(a)",
        "table",
    ]
    outputs = {0: [PRINTED], 2: [returned("x")], 3: [PRINTED, FIGURE], 5: [returned("y")], 6: [returned("t")]}
    assert report._fill(made, sources, outputs) == 0
    assert [cell.source for cell in made.cells] == [
        "import os", "show.screen(a)", "print(1); plot()", "show.gates(a)", "table",
    ]  # fmt: skip
    own = made.cells[2].outputs
    assert own[0].text == "a print\n" and "image/png" in own[1].data


def test_the_notebook_may_have_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat.write(notebook("mine"), tmp_path / "my copy.ipynb")
    monkeypatch.setattr(report.companion_files, "notebook", lambda *_: tmp_path / "usual.ipynb")
    nbformat.write(notebook("usual"), tmp_path / "usual.ipynb")
    a: Any = SimpleNamespace(scenario=None)
    monkeypatch.setenv(report.SESSION, str(tmp_path / "my copy.ipynb"))
    assert report._notebook_of_kernel(a, {}).cells[0].source == "mine"
    monkeypatch.setenv(report.SESSION, str(tmp_path / "renamed since.ipynb"))
    assert report._notebook_of_kernel(a, {}).cells[0].source == "usual"
    assert (
        report._notebook_of_kernel(a, {"__vsc_ipynb_file__": str(tmp_path / "my copy.ipynb")}).cells[0].source
        == "mine"
    )
