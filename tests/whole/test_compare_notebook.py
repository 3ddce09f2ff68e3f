"""The notebook of published claims: runs as it stands, says where its numbers come from, writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.facts import paths
from diskbook.report.analysis.run import analyse
from support import notebooks, synthetic

pytestmark = pytest.mark.whole

NOTEBOOK = paths.NOTEBOOKS / "5-compare.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, set[Path]]:
    """What the notebook shows, the folder of the run that it was given, and its files before."""
    folder = tmp_path_factory.mktemp("compare")
    found = synthetic.run_folder(folder / "synthetic", n_blocks=2)
    analyse(found).comparisons.to_csv(found.folder / "comparisons.csv", index=False)
    before = set(folder.rglob("*"))
    shown = notebooks.shown(notebooks.executed(NOTEBOOK, {}, run=str(found.folder)))
    return shown, folder, before


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
