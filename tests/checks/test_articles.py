"""The page of the articles is what code, tables and samples say, and every article has what it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import articles
from diskbook.facts import paths


@pytest.mark.long
def test_every_article_has_a_scenario_and_a_notebook() -> None:
    scenarios = articles.scenarios()
    rows = articles.rows(scenarios)
    assert len(rows) == 5
    for row in rows:
        name = row["article"].partition("]")[0].removeprefix("[")
        assert scenarios[name].scenario.article == name
        assert "none yet" not in (row["scenario"], row["notebook"])
        counts = [int(row[str(verdict)]) for verdict in articles.ClaimVerdict]
        assert sum(counts) == int(row["claims"]) > 0


def test_links_lead_somewhere() -> None:
    for line in articles.PAGE.read_text("utf-8").splitlines():
        for part in line.split("](../../")[1:]:
            assert (paths.ROOT / part.partition(")")[0]).exists(), part


@pytest.mark.long
def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = articles.rows({})
    assert {row["notebook"] for row in rows} == {"none yet"}
    assert "| none yet |  | 0 |" in articles.page(tmp_path)
