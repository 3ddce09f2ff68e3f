"""The analysis of a run: what follows from its scenario's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diskbook.design.model import IMPORTED
from diskbook.facts.errors import UsageError
from diskbook.report import show
from diskbook.report.analysis.run import analyse
from support import synthetic


def of_article(tmp_path: Path, article: str) -> str:
    """Make a run of another article; its folder."""
    folder = synthetic.run_folder(tmp_path / "run", n_blocks=1, draws=50).folder
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["scenario"]["scenario"]["article"] = article
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return str(folder)


@pytest.mark.long
@pytest.mark.parametrize("article", [IMPORTED, "s2d-azure"])
def test_an_article_without_figures_of_this_set_up_leaves_the_table_empty(
    tmp_path: Path, article: str
) -> None:
    analysis = analyse(of_article(tmp_path, article))
    assert len(analysis.published) == 0
    assert "Published figures beside the measured medians" in str(show.published(analysis))


def test_an_article_that_is_not_known_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"run/manifest\.json: \[scenario\]: there is no article 'zone-disc'; did"
    ):
        _ = analyse(of_article(tmp_path, "zone-disc")).published
