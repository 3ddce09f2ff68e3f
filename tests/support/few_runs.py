"""A folder of three analysed runs, two of them of one scenario, for tests of the catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from checks import many_runs
from diskbook.facts import paths

HOSTILE = "<b>run & 'x' \u202e%2F #1"
NAMES = ("shared-zrs-0", "shared-zrs-1", "zone-disks-2")


def made(folder: Path) -> Path:
    """Write three analysed runs, two of them of one scenario; none has joined."""
    folder.mkdir()
    for day, name in enumerate(NAMES):
        sample = f"sample-{name[:-2]}"
        table = pd.read_csv(paths.RUNS / sample / "comparisons.csv", keep_default_na=False)
        many_runs.write(folder / name, manifest_of(sample), table, day)
    return folder


def manifest_of(sample: str) -> dict[str, Any]:
    """Manifest of a committed sample."""
    return json.loads((paths.RUNS / sample / "manifest.json").read_text())
