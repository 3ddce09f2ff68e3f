"""A notebook of the workbook analyses runs of its own scenarios, and refuses others in one sentence."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import cast

import pytest

from diskbook.design import scenario_file
from diskbook.design.vocabulary import Provenance
from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from diskbook.report.analysis import companion_files
from diskbook.report.analysis.run import analyse
from diskbook.results.run import Run

NOTEBOOKS = sorted(path.stem for path in paths.NOTEBOOKS.glob("3-analyse-*.ipynb"))


def run_of(analysis: str, name: str = "x", provenance: str = "emulated") -> Run:
    """A run as far as a notebook asks for it."""
    scenario = SimpleNamespace(name=name, analysis_notebook=f"3-analyse-{analysis}")
    return cast(Run, SimpleNamespace(name="r", scenario=scenario, manifest={"provenance": provenance}))


def test_a_run_of_another_scenario_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        analyse("sample-shared-zrs", notebook="3-analyse-zone-disks")
    assert str(refused.value) == (
        "run sample-shared-zrs is of scenario shared-zrs, which 3-analyse-zone-disks.ipynb does not analyse: "
        "open notebooks/3-analyse-shared-zrs.ipynb"
    )


@pytest.mark.parametrize("name", scenario_file.names())
def test_every_scenario_has_one_notebook(name: str) -> None:
    own = scenario_file.load(name).analysis_notebook
    for notebook in NOTEBOOKS:
        if notebook == own:
            companion_files.check_notebook(run_of(own.removeprefix("3-analyse-"), name), notebook)
        else:
            with pytest.raises(UsageError, match=f"open notebooks/{own}"):
                companion_files.check_notebook(run_of(own.removeprefix("3-analyse-"), name), notebook)


def test_imports_are_read_by_the_notebook_they_name_and_by_that_of_imports() -> None:
    taken = run_of("zone-disks", provenance=Provenance.IMPORTED)
    companion_files.check_notebook(taken, "3-analyse-zone-disks")
    companion_files.check_notebook(taken, "3-analyse-imported")
    with pytest.raises(UsageError, match="import it again with --analysis shared-zrs"):
        companion_files.check_notebook(taken, "3-analyse-shared-zrs")


def test_a_scenario_of_ones_own_may_have_a_copied_notebook() -> None:
    companion_files.check_notebook(run_of("my-own"), "3-analyse-zone-disks")


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_every_notebook_says_which_it_is(notebook: str) -> None:
    cells = json.loads((paths.NOTEBOOKS / f"{notebook}.ipynb").read_text())["cells"]
    source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert f'open_run(run, notebook="{notebook}")' in source
