"""The report of a notebook that is being executed: by papermill, or by hand in JupyterLab."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from diskbook.facts import paths
from diskbook.report.analysis import companion_files, report
from diskbook.report.analysis.run import Analysis
from diskbook.report.show.html import Html, escaped

if TYPE_CHECKING:
    import nbformat


def report_of_this_notebook(a: Analysis) -> Html:
    """Write report.html from the cells that this kernel has executed, and say where it is.

    Cells are those of the notebook's file; the kernel knows what each of them, as it was executed, returned.
    """
    shell: Any = get_ipython()
    if os.environ.get(companion_files.REPORT_LATER) or shell is None:
        return Html("<p>The report is made from this notebook once it is finished.</p>")
    import nbformat

    file = os.environ.get(companion_files.VARIABLE)
    notebook = nbformat.read(companion_files.notebook(a.scenario, Path(file) if file else None), as_version=4)
    sources: list[str] = shell.history_manager.input_hist_raw
    missing = _fill(notebook, sources, shell.user_ns["Out"], shell.display_formatter.format)
    path = report.write(a.run, notebook)
    lacks = (
        f", without {missing} cell{'s' * (missing != 1)} that this kernel has not executed as they are in "
        f"{notebook_name(a)}: run all cells, or 'diskbook report {a.run.name}'"
    )
    return Html(f"<p>Report: <code>{escaped(_short(path))}</code>{escaped(lacks) if missing else ''}.</p>")


def notebook_name(a: Analysis) -> str:
    """Name of the notebook that analyses a run."""
    return f"{a.scenario.analysis_notebook}.ipynb"


def _fill(
    notebook: nbformat.NotebookNode, sources: Sequence[str], returned: Mapping[int, Any], form: Any
) -> int:
    """Give each cell what it returned when it was last executed; how many shown cells never were."""
    import nbformat

    last = {source.strip(): number for number, source in enumerate(sources)}
    missing = 0
    for cell in notebook.cells:
        if cell.cell_type != "code" or report.HIDDEN_CELLS & set(cell.metadata.get("tags", [])):
            continue
        number = last.get(cell.source.strip())
        if number is None:
            missing += 1
        elif number in returned:
            data, metadata = form(returned[number])
            cell.outputs = [nbformat.v4.new_output("execute_result", data=data, metadata=metadata)]
    return missing


def _short(path: Path) -> str:
    """A path below the workbook's folder, where it lies there."""
    return os.path.relpath(path, paths.ROOT) if path.resolve().is_relative_to(paths.ROOT) else str(path)
