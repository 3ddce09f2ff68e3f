"""The report of a notebook that is being executed: by papermill, or by hand in JupyterLab."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython
from IPython.core.history import HistoryOutput

from diskbook.facts import paths
from diskbook.report.analysis import companion_files, report
from diskbook.report.analysis.run import Analysis
from diskbook.report.show.html import Html, escaped

if TYPE_CHECKING:
    import nbformat

SESSION = "JPY_SESSION_NAME"
"""Environment variable in which Jupyter names the notebook of a kernel; VS Code has a variable for it."""
_VS_CODE = "__vsc_ipynb_file__"


def keep_outputs() -> None:
    """Have this kernel keep what its cells display, so that figures reach the report."""
    publisher: Any = getattr(get_ipython(), "display_pub", None)
    if hasattr(publisher, "register_hook"):
        publisher.unregister_hook(_keep)
        publisher.register_hook(_keep)


def _keep(message: dict[str, Any]) -> dict[str, Any]:
    """Add a figure to the outputs of the cell that is being executed.

    IPython would itself (`store_display_history`), but under the number of the next cell.
    """
    shell: Any = get_ipython()
    if message["header"]["msg_type"] == "display_data":
        number = len(shell.history_manager.input_hist_raw) - 1
        output = HistoryOutput("display_data", message["content"]["data"])
        # Such as the alternative text of a figure.
        vars(output)["metadata"] = message["content"].get("metadata", {})
        shell.history_manager.outputs.setdefault(number, []).append(output)
    return message


def report_of_this_notebook(a: Analysis) -> Html:
    """Write report.html from the cells that this kernel has executed, and say where it is.

    Cells come in the order of the notebook's file. Executed cells that the file lacks, since it was not saved
    or has another name, follow the cell that was executed before them.
    """
    shell: Any = get_ipython()
    if os.environ.get(companion_files.REPORT_LATER) or shell is None:
        return Html("<p>The report is made from this notebook once it is finished.</p>")
    notebook = _notebook(a, shell.user_ns)
    history = shell.history_manager
    missing = _fill(notebook, history.input_hist_raw, history.outputs)
    path = report.write(a.run, notebook)
    lacks = (
        f", without {missing} cell{'s' * (missing != 1)} that this kernel has not executed as they are in "
        f"the notebook: save it and run all cells, or 'diskbook report {a.run.name}'"
    )
    return Html(f"<p>Report: <code>{escaped(_short(path))}</code>{escaped(lacks) if missing else ''}.</p>")


def _notebook(a: Analysis, names: Mapping[str, Any]) -> nbformat.NotebookNode:
    """Read the notebook of this kernel, whatever its name, else the one that analyses the run."""
    import nbformat

    file = os.environ.get(companion_files.VARIABLE)
    usual = companion_files.notebook(a.scenario, Path(file) if file else None)
    for path in (names.get(_VS_CODE), os.environ.get(SESSION)):
        if path and Path(path).suffix == ".ipynb" and Path(path).is_file():
            usual = Path(path)
            break
    return nbformat.read(usual, as_version=4)


def _fill(
    notebook: nbformat.NotebookNode, sources: Sequence[str], outputs: Mapping[int, Sequence[Any]]
) -> int:
    """Give each cell what it showed when it was last executed, and add executed cells that are not there.

    Returns how many shown cells were never executed.
    """
    last = {source.strip(): number for number, source in enumerate(sources)}
    missing, cells = 0, []
    for cell in notebook.cells:
        number = last.pop(cell.source.strip(), None) if cell.cell_type == "code" else None
        cells.append((number, cell))
        if number is not None:
            cell.outputs = [_output(part) for part in outputs.get(number, ())]
        elif cell.cell_type == "code" and not report.HIDDEN_CELLS & set(cell.metadata.get("tags", [])):
            missing += 1
    begun = min((number for number, _ in cells if number is not None), default=0)
    for source, number in last.items():
        shown = [_output(part) for part in outputs.get(number, ())]
        if number > begun and shown:
            _insert(cells, number, source, shown)
    notebook.cells = [cell for _, cell in cells]
    return missing


def _insert(cells: list[tuple[int | None, Any]], number: int, source: str, outputs: list[Any]) -> None:
    """Put a cell behind the one that was executed before it."""
    import nbformat

    before = max((other for other, _ in cells if other is not None and other < number), default=None)
    place = next((place for place, (other, _) in enumerate(cells) if other == before), len(cells) - 1)
    cells.insert(place + 1, (number, nbformat.v4.new_code_cell(source, outputs=outputs)))


def _output(part: Any) -> nbformat.NotebookNode:
    """One output of a kernel's history as a notebook has it."""
    import nbformat

    if part.output_type in ("out_stream", "err_stream"):
        name = "stdout" if part.output_type == "out_stream" else "stderr"
        return nbformat.v4.new_output("stream", name=name, text="".join(part.bundle["stream"]))
    metadata = vars(part).get("metadata", {})
    return nbformat.v4.new_output(part.output_type, data=dict(part.bundle), metadata=metadata)


def _short(path: Path) -> str:
    """A path below the workbook's folder, where it lies there."""
    return os.path.relpath(path, paths.ROOT) if path.resolve().is_relative_to(paths.ROOT) else str(path)
