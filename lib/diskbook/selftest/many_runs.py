"""Folders of many runs for the site: the samples' manifests and comparisons, other names, days, numbers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diskbook.base import paths

SAMPLES = sorted(paths.RUNS.glob("sample-*"))
HOSTILE = "<b>run & 'x' \u202e%2F #1"
RATIOS = ["ratio", "ci_low", "ci_high"]
_FIRST = datetime(2026, 9, 1, 8, tzinfo=UTC)


def many(folder: Path, number: int) -> Path:
    """Write runs as finished as a site needs them, a day apart, those of a scenario about one truth."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    comparisons = [pd.read_csv(sample / "comparisons.csv", keep_default_na=False) for sample in SAMPLES]
    manifests = [json.loads((sample / "manifest.json").read_text()) for sample in SAMPLES]
    for n in range(number):
        table, manifest = comparisons[n % len(SAMPLES)].copy(), manifests[n % len(SAMPLES)]
        factor = np.exp(rng.normal(0, 0.05))
        for name in RATIOS:
            table[name] = [f"{float(value) * factor:.6g}" if value else "" for value in table[name]]
        write(folder / f"{manifest['scenario']['name']}-{n:03d}", manifest, table, n)
    return folder


def write(
    folder: Path, manifest: dict[str, Any], comparisons: pd.DataFrame | None = None, day: int = 0
) -> Path:
    """Write one run of a manifest: named after its folder, of a day, analysed or not."""
    folder.mkdir()
    created = (_FIRST + timedelta(days=day)).isoformat()
    own = {**manifest, "run": folder.name, "created_utc": created}
    (folder / "manifest.json").write_text(json.dumps(own))
    if comparisons is not None:
        comparisons.to_csv(folder / "comparisons.csv", index=False)
    return folder


def manifest_of(sample: str) -> dict[str, Any]:
    """Manifest of a committed sample."""
    read: dict[str, Any] = json.loads((paths.RUNS / sample / "manifest.json").read_text())
    return read
