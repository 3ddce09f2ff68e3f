"""Runs made of a sample that a pool takes for several runs: later ones, each slower by a share of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd

from diskbook.facts import paths


def copies(folder: Path, number: int) -> list[Path]:
    """Folders of runs without raw results, each measured a day after the one before."""
    made = []
    for place in range(number):
        target = folder / f"run-{place}"
        shutil.copytree(paths.RUNS / "sample-zone-disks", target, ignore=shutil.ignore_patterns("raw"))
        trials = pd.read_parquet(target / "trials.parquet")
        trials["started_utc"] += pd.Timedelta(days=place)
        trials.loc[trials["arm"].str.startswith("zrs"), "lat_mean_ms"] *= 1 + 0.01 * place
        trials.to_parquet(target / "trials.parquet")
        manifest = json.loads((target / "manifest.json").read_text())
        manifest["created_utc"] = f"2026-11-0{place + 1}T00:00:00Z"
        (target / "manifest.json").write_text(json.dumps(manifest))
        made.append(target)
    return made
