"""The report that a notebook makes of itself; test_report.py has one that papermill executed."""

from __future__ import annotations

import nbformat

from diskbook.report.analysis import rerun
from diskbook.report.show.html import Html


def notebook(*cells: str) -> nbformat.NotebookNode:
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    made.cells[0].metadata["tags"] = ["remove-cell"]
    return made


def formatted(value: object) -> tuple[dict[str, str], dict[str, str]]:
    return {"text/html": str(value)}, {}


def test_each_cell_gets_what_it_returned_last() -> None:
    made = notebook("import os", "show.answer(a)", "show.figure(a)", "show.gates(a)")
    sources = ["", "import os", "show.answer(a)\n", "edited", "show.answer(a)", "show.gates(a)"]
    assert rerun._fill(made, sources, {2: Html("first"), 4: Html("last")}, formatted) == 1
    outputs = [[output.data["text/html"] for output in cell.outputs] for cell in made.cells]
    assert outputs == [[], ["last"], [], []]
