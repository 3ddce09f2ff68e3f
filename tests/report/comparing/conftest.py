"""Runs that the tests of comparing share; none of them is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.results.run import Run
from support import beside


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Two in which all arms are alike, two of the default truth, a slower one, and one of one replicate."""
    folder: Path = tmp_path_factory.mktemp("runs")
    return {
        "null-1": beside.measured(folder / "null-1", 1, beside.NULL),
        "null-2": beside.measured(folder / "null-2", 2, beside.NULL),
        "default": beside.measured(folder / "default", 3),
        "again": beside.measured(folder / "again", 4),
        "slower": beside.measured(folder / "slower", 5, beside.times(1.2)),
        "single": beside.measured(folder / "single", 6, n_replicates=1, n_blocks=4),
    }
