"""A scenario that a user wrote, in the user's folder: TOML, notebook, and a module."""

from __future__ import annotations

from pathlib import Path

import nbformat

from support import SCENARIOS

TOML = (SCENARIOS / "tiny.toml").read_text("utf-8").replace('analysis = "zone-disks"\n', "")
SETUP = """from diskbook.report import show
from diskbook.report.analysis import write
from diskbook.report.analysis.run import analyse

a = analyse(run)"""
MODULE = '''"""Figures and sentences of the toy."""

from dataclasses import dataclass

from diskbook.report.figures import strip


@dataclass
class Fastest:
    arm: str


def fastest(a):
    return Fastest(a.cells.sort_values("lat_mean_ms")["arm"].iloc[0])


def pictures(a):
    names = [item.name for item in a.scenario.workload]
    return (strip(a.trials, a.looks, a.words, names, "A picture of the toy", a.run.name),)
'''


def notebook(*cells: str) -> nbformat.NotebookNode:
    made = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    made.cells = [
        nbformat.v4.new_markdown_cell("# Toy\n\nThis notebook reads a run and writes `comparisons.csv`."),
        nbformat.v4.new_code_cell(
            '# Papermill sets it.\nrun: str = "toy"', metadata={"tags": ["parameters"]}
        ),
        *(nbformat.v4.new_code_cell(text) for text in (SETUP, *cells, "write.results(a)")),
    ]
    return made


def made(folder: Path) -> Path:
    """Make the folder, with a notebook and no module; return the path of its toy.toml."""
    folder.mkdir()
    (folder / "toy.toml").write_text(TOML, "utf-8")
    nbformat.write(notebook("show.cells(a)"), folder / "3-analyse-toy.ipynb")
    return folder / "toy.toml"
