"""An analysis is saved every second, not twice a cell; what it ends with is always saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from papermill.engines import NBClientEngine, papermill_engines

from diskbook.measure.runs import sparing_engine

CELLS, CELL_S = 40, 0.1


@pytest.fixture
def saved_at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When a notebook of short cells was saved, s after its begin; its last cell fails."""
    now = [0.0]
    saved: list[float] = []

    def play(cls: type, manager: Any, kernel_name: str, **_: Any) -> None:
        for number, cell in enumerate(manager.nb.cells):
            manager.cell_start(cell)
            now[0] += CELL_S
            cell.outputs = [nbformat.v4.new_output("stream", text=str(number))]
            manager.cell_complete(cell)
        raise RuntimeError("the kernel died")

    monkeypatch.setattr(NBClientEngine, "execute_managed_notebook", classmethod(play))
    monkeypatch.setattr(sparing_engine.time, "monotonic", lambda: now[0])

    def save(notebook: Any, path: str) -> None:
        saved.append(now[0])
        nbformat.write(notebook, path)

    monkeypatch.setattr("papermill.engines.write_ipynb", save)
    return saved


def test_it_is_saved_at_its_begin_every_second_and_at_its_end(saved_at: list[float], tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(metadata={"papermill": {}})
    notebook.cells = [nbformat.v4.new_code_cell("pass") for _ in range(CELLS)]
    target = tmp_path / "executed.ipynb"
    with pytest.raises(RuntimeError, match="died"):
        papermill_engines.execute_notebook_with_engine(
            sparing_engine.NAME, notebook, kernel_name="python3", output_path=str(target), progress_bar=False
        )
    assert saved_at[0] == 0.0 and saved_at[-1] == pytest.approx(CELLS * CELL_S)
    between = saved_at[1:-1]
    assert between == pytest.approx([1.0, 2.0, 3.0], abs=2 * CELL_S)
    written = nbformat.read(target, as_version=4)
    assert [cell.outputs[0].text for cell in written.cells] == [str(number) for number in range(CELLS)]
