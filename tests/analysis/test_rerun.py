"""The report that a notebook makes of itself, by papermill or by hand."""

from __future__ import annotations

import shutil

import nbformat
import papermill
import pytest

from diskbook.analysis import report, rerun
from diskbook.base import paths
from diskbook.show.html import Html
from support import synthetic

NOTEBOOK = paths.NOTEBOOKS / "3-analyse-zone-disks.ipynb"


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


@pytest.mark.emulator
def test_papermill_makes_the_same_report_as_the_command(tmp_path, monkeypatch) -> None:
    """The executed notebook gives the page that its last cell wrote, byte for byte."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    run = synthetic.run_folder(tmp_path / "run", n_blocks=2)
    executed = tmp_path / "executed.ipynb"
    papermill.execute_notebook(
        str(NOTEBOOK), str(executed), {"run": str(run.folder)}, progress_bar=False, kernel_name="python3"
    )
    live = (run.folder / "report.html").read_bytes()
    assert report.build(run, executed).read_bytes() == live
    assert b"Contents" in live and b"without" not in live[-3000:]
    shutil.rmtree(run.folder)
