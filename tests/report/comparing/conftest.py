"""Runs that the tests of comparing share, in all their processes; none of them is changed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from diskbook.results.run import Run
from support import beside

RUNS: Mapping[str, tuple[int, dict[str, Any]]] = {
    "null-1": (1, {"latency_ms": beside.NULL}),
    "null-2": (2, {"latency_ms": beside.NULL}),
    "default": (3, {}),
    "again": (4, {}),
    "slower": (5, {"latency_ms": beside.times(1.2)}),
    "single": (6, {"n_replicates": 1, "n_blocks": 4}),
}


@pytest.fixture(scope="session")
def runs() -> dict[str, Run]:
    """Two in which all arms are alike, two of the default truth, a slower one, and one of one replicate."""
    folder = Path(os.environ["DISKBOOK_TESTS_FOLDER"], "comparing")
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first process makes them
        for name, (seed, options) in RUNS.items():
            if not (folder / name).exists():
                beside.measured(folder / name, seed, **options)
    return {name: Run(folder / name) for name in RUNS}
