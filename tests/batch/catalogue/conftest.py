"""Runs that the tests of the catalogue share."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import few_runs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three runs, for this test alone."""
    return few_runs.made(tmp_path / "runs")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs that no test changes; their catalogue is whatever the last one left."""
    return few_runs.made(tmp_path_factory.mktemp("shared") / "runs")
