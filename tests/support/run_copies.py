"""Copies of a sample run that a pool takes for several runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from diskbook.facts import paths


def copies(folder: Path, number: int) -> list[Path]:
    """Folders of runs that differ in nothing but when they began."""
    made = []
    for place in range(number):
        target = folder / f"run-{place}"
        shutil.copytree(paths.RUNS / "sample-zone-disks", target)
        manifest = json.loads((target / "manifest.json").read_text())
        manifest["created_utc"] = f"2026-11-0{place + 1}T00:00:00Z"
        (target / "manifest.json").write_text(json.dumps(manifest))
        made.append(target)
    return made
