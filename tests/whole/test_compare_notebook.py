"""The notebook of published claims: runs as it stands, says where its numbers come from, writes nothing."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest

from diskbook.facts import paths
from diskbook.report.analysis.run import analyse
from support import synthetic

pytestmark = pytest.mark.whole

NOTEBOOK = paths.NOTEBOOKS / "5-compare.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, set[Path]]:
    """What the notebook shows, the run it was given, and that run's files before."""
    folder = tmp_path_factory.mktemp("compare")
    found = synthetic.run_folder(folder / "synthetic", n_blocks=2)
    analyse(found).comparisons.to_csv(found.folder / "comparisons.csv", index=False)
    before, target = set(found.folder.rglob("*")), folder / NOTEBOOK.name
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        papermill.execute_notebook(
            str(NOTEBOOK), str(target), {"run": str(found.folder)}, progress_bar=False, kernel_name="python3"
        )
    outputs = [
        output.get("data", {}).get("text/html", "")
        for cell in nbformat.read(target, as_version=4).cells
        for output in cell.get("outputs", [])
    ]
    return "".join(outputs), found.folder, before


def test_every_article_and_its_claims_are_shown(executed: tuple[str, Path, set[Path]]) -> None:
    shown = executed[0]
    for article in paths.article_names():
        assert f"Claims of {article} (published)" in shown and f"figures of {article} (published)" in shown


def test_provenance_is_said(executed: tuple[str, Path, set[Path]]) -> None:
    shown = executed[0]
    assert "Provenance: published." in shown
    assert shown.index("EMULATED. These numbers") < shown.index("On the emulator, ")


def test_nothing_is_written(executed: tuple[str, Path, set[Path]]) -> None:
    _, folder, before = executed
    assert set(folder.rglob("*")) == before
