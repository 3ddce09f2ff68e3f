"""The notebooks as committed: no outputs, small cells, a first sentence that says what goes in and out."""

from __future__ import annotations

import copy
import json
import re
import statistics
from pathlib import Path
from typing import Any

import nbformat
import nbstripout
import pytest

from diskbook.design import scenario_file
from diskbook.facts import paths

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
ANALYSES = {scenario_file.load(name).analysis_notebook for name in scenario_file.names()} | {
    "3-analyse-imported"
}
WANTED = {
    "0-overview",
    "1-provision",
    "2-benchmark",
    "4-teardown",
    "5-compare",
    "6-compare-runs",
    "7-real-noise",
    "8-campaign",
    "9-pool",
    *ANALYSES,
}
EXTRA_KEYS = ["metadata.papermill", "cell.metadata.papermill", "cell.metadata.execution"]


def problems(notebook: dict[str, Any], parameterised: bool = True) -> list[str]:
    """What a reader of the notebook, or papermill, would stumble over."""
    cells = notebook["cells"]
    lengths = [len(source(cell).splitlines()) for cell in cells if cell["cell_type"] == "code"]
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    sentence = first_sentence(cells)
    checks = {
        "its first sentence does not say what it reads": "reads" not in sentence,
        "its first sentence does not say what it writes": "writes" not in sentence,
        "it does not have one parameters cell": parameterised and len(tagged) != 1,
        "a code cell is over 10 lines": max(lengths, default=0) > 10,
        "the median code cell is over 6 lines": statistics.median(lengths or [0]) > 6,
        "it defines functions or classes": any(defines(cell) for cell in cells),
    }
    return [problem for problem, found in checks.items() if found]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def defines(cell: dict[str, Any]) -> bool:
    return cell["cell_type"] == "code" and re.search(r"^\s*(def|class) ", source(cell), re.M) is not None


def first_sentence(cells: list[dict[str, Any]]) -> str:
    """Text up to the first full stop that ends a sentence, titles left out."""
    text = "\n".join(source(cell) for cell in cells if cell["cell_type"] == "markdown")
    prose = " ".join(line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return re.split(r"(?<=[.!?])\s", prose, maxsplit=1)[0]


def is_stripped(path: Path) -> bool:
    """Whether `nbstripout --verify` would find nothing to take out."""
    notebook = nbformat.from_dict(json.loads(path.read_text("utf-8")))
    left = nbstripout.strip_output(
        copy.deepcopy(notebook), keep_output=False, keep_count=False, keep_id=True, extra_keys=EXTRA_KEYS
    )
    return bool(left == notebook)


def test_all_notebooks_are_there() -> None:
    assert {path.stem for path in NOTEBOOKS} >= WANTED


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_clean(path: Path) -> None:
    index_only = path.stem == "0-overview"
    assert problems(json.loads(path.read_text("utf-8")), parameterised=not index_only) == []
    assert is_stripped(path), f"{path.name} has outputs or run records; use `make format`"


def analysis_problems(notebook: dict[str, Any]) -> list[str]:
    """What keeps a reader of an analysis from following it."""
    cells = notebook["cells"]
    heads = [n for n, cell in enumerate(cells) if source(cell).startswith("## For reviewers")]
    path = cells[: heads[0]] if heads else cells
    computed = [source(cell) for cell in cells[len(path) :][:12] if cell["cell_type"] == "code"]
    code = [source(cell).strip() for cell in cells if cell["cell_type"] == "code"]
    checks = {
        "it has no section for reviewers": len(heads) != 1,
        "its main path has over 25 cells": len(path) > 25,
        "the section for reviewers does not begin with the computation": not any(
            "1e-9" in text and "assert" in text for text in computed
        ),
        "the data of the computation are not run.trials": not any("run.trials" in text for text in computed),
        "its last cell does not display the answer": code[-1] != "run.report()",
        "its first cell shown is not the answer": "show.screen(a)" not in code[:5],
    }
    return [problem for problem, found in checks.items() if found]


@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_an_analysis_answers_first_and_computes_in_the_open(name: str) -> None:
    assert analysis_problems(json.loads((paths.NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))) == []


def test_an_analysis_without_its_parts_is_noticed() -> None:
    assert len(analysis_problems(good())) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_with_parameters_checks_those_of_papermill(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    if any("parameters" in cell["metadata"].get("tags", []) for cell in cells):
        checked = (f'notebook="{path.stem}"', "show.check_parameters()")
        assert any(part in source(cell) for part in checked for cell in cells)


# --- the checks themselves


def cell(kind: str, text: str, tags: list[str] | None = None, **more: Any) -> dict[str, Any]:
    code = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": "c", "metadata": {"tags": tags or []}, "source": text, **code, **more}


def good() -> dict[str, Any]:
    title = cell("markdown", "# Title\n\nThis notebook reads a.json of the run\nand writes b.csv. Then more.")
    return {
        "cells": [title, cell("code", 'run: str = "x"', ["parameters"]), cell("code", "a = 1\na")],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def test_a_good_notebook_passes(tmp_path: Path) -> None:
    assert problems(good()) == []
    (tmp_path / "good.ipynb").write_text(json.dumps(good(), indent=1) + "\n")
    assert is_stripped(tmp_path / "good.ipynb")


@pytest.mark.parametrize(
    ("number", "bad", "problem"),
    [
        (0, cell("markdown", "# reads\n\nIt writes. It reads."), "does not say what it reads"),
        (0, cell("markdown", "It reads a.json. It writes b."), "does not say what it writes"),
        (1, cell("code", "run = 1"), "one parameters cell"),
        (2, cell("code", "a = 1\n" * 11), "over 10 lines"),
        (2, cell("code", "def f(): ...\n"), "defines functions"),
    ],
)
def test_each_problem_is_noticed(number: int, bad: dict[str, Any], problem: str) -> None:
    notebook = good()
    notebook["cells"][number] = bad
    assert any(problem in found for found in problems(notebook))


def test_long_cells_throughout_are_noticed() -> None:
    notebook = good()
    notebook["cells"] += [cell("code", "a = 1\n" * 8) for _ in range(3)]
    assert problems(notebook) == ["the median code cell is over 6 lines"]


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": [{"output_type": "stream", "name": "stdout", "text": "hello"}]},
        {"execution_count": 3},
        {"metadata": {"papermill": {"status": "completed"}}},
    ],
)
def test_traces_of_a_run_are_noticed(tmp_path: Path, change: dict[str, Any]) -> None:
    notebook = good()
    notebook["cells"][2] |= change
    (tmp_path / "bad.ipynb").write_text(json.dumps(notebook))
    assert not is_stripped(tmp_path / "bad.ipynb")
