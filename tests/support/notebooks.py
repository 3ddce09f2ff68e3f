"""The cells of notebooks, executed without a kernel; those of an analysis on one that is there already."""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

import diskbook as db
from diskbook.api import results
from diskbook.facts.paths import NOTEBOOKS
from diskbook.report.analysis import write
from diskbook.report.analysis.run import Analysis
from diskbook.report.show import first_screen, headlines


def run_cells(scenario: str, a: Analysis) -> nbformat.NotebookNode:
    """Execute all code cells of a scenario's notebook here, without a kernel; return it with its outputs.

    Figures are drawn, but neither rendered nor exported: each shows its caption.
    """
    written = a.run.folder / headlines.COMPARISONS
    written.unlink(missing_ok=True)  # a sample has one
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(db, "open_run", lambda run, notebook: results.RunResults(a))
        patch.setattr(write.figures, "export_all", lambda pictures, folder, look: [])
        patch.setattr(first_screen.figures, "html", lambda picture: picture.caption)
        notebook = executed(NOTEBOOKS / f"3-analyse-{scenario}.ipynb", names)
    assert names["a"] is a and len(headlines.read_comparisons(a.run)) == len(a.comparisons)
    return notebook


def executed(path: Path, names: dict[str, Any], **parameters: Any) -> nbformat.NotebookNode:
    """Execute the code cells of a notebook here, without a kernel; return it with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = list(_outputs(cell.source, names))
            if "parameters" in cell.metadata.get("tags", []):
                names.update(parameters)
    return notebook


def shown(notebook: nbformat.NotebookNode) -> str:
    """What a notebook shows as HTML."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.get("data", {}).get("text/html", "") for output in outputs)


def _outputs(source: str, names: dict[str, Any]) -> Iterator[nbformat.NotebookNode]:
    """Execute a cell; yield what it prints, and what its last expression shows."""
    *body, last = ast.parse(source).body
    is_shown = isinstance(last, ast.Expr)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body if is_shown else [*body, last], []), "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if is_shown else None
    if text := printed.getvalue():
        yield nbformat.v4.new_output("stream", text=text)
    if value is not None:
        markup = value._repr_html_() if hasattr(value, "_repr_html_") else None
        shown = {} if markup is None else {"text/html": markup}
        yield nbformat.v4.new_output("execute_result", {"text/plain": repr(value), **shown})
