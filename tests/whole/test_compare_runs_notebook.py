"""The notebook that holds runs against each other: it takes a list of them, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.facts import paths
from support import beside, notebooks

pytestmark = pytest.mark.whole

NOTEBOOK = paths.NOTEBOOKS / "6-compare-runs.ipynb"


def test_three_runs_are_shown_and_nothing_is_written(tmp_path: Path) -> None:
    truths = (None, None, beside.times(1.3))
    runs = [beside.measured(tmp_path / f"run-{place}", place, truth) for place, truth in enumerate(truths)]
    before = set(tmp_path.rglob("*"))
    shown = notebooks.shown(notebooks.executed(NOTEBOOK, {}, runs=[str(run.folder) for run in runs]))
    assert shown.index("EMULATED. These numbers") < shown.index("Changes, each run against run-0")
    assert "difference" in shown and "Spread between runs (emulated)" in shown and "<img" in shown
    assert set(tmp_path.rglob("*")) == before
