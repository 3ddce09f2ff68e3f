"""Where the workbook keeps things, relative to the clone."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
SCENARIOS = DATA / "scenarios"
PROFILES = DATA / "profiles"
REFERENCE = DATA / "reference"
RUNS = DATA / "runs"
FIGURES = ROOT / "figures"
POSTS = ROOT / "docs" / "posts"
CACHE = ROOT / ".tools" / "cache"  # what can be made again: the compiled plugin, matplotlib's list of fonts


def runs_root() -> Path:
    """Folder that holds the runs: $DISKBOOK_RUNS, else data/runs of the clone."""
    return Path(os.environ.get("DISKBOOK_RUNS", RUNS))
