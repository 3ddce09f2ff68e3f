"""Made-up runs to hold beside each other: written as real ones are, with planted truths."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from diskbook.design import schema
from diskbook.report.analysis.run import analyse
from diskbook.results.run import Run
from support import synthetic

NULL = {arm: {"read": 2.0, "write": 3.0, "commit": 3.1} for arm in synthetic.Truth().latency_ms}
"""Latencies of the emulator's profile null: all arms are alike."""


def measured(
    folder: Path, seed: int, latency_ms: dict[str, dict[str, float]] | None = None, **options: Any
) -> Run:
    """A run with its analysis, as `diskbook report` leaves it."""
    truth = synthetic.Truth(latency_ms or synthetic.Truth().latency_ms, disk=0.01)
    options = {"n_replicates": 3, "n_blocks": 2, "draws": 50, **options}
    run = synthetic.run_folder(folder, seed=seed, truth=truth, **options)
    table = schema.validate(schema.COMPARISONS, analyse(run).comparisons)
    table.to_csv(run.folder / "comparisons.csv", index=False, float_format="%.10g")
    return run


def times(factor: float) -> dict[str, dict[str, float]]:
    """Latencies of the default truth with those of zone-redundant disks multiplied."""
    default = synthetic.Truth().latency_ms
    return {
        arm: {direction: ms * (factor if arm.startswith("zrs") else 1) for direction, ms in of_arm.items()}
        for arm, of_arm in default.items()
    }


def copied(run: Run, folder: Path, **manifest: Any) -> Run:
    """A copy of a run under another name, with keys of its manifest changed."""
    shutil.copytree(run.folder, folder)
    content = json.loads((folder / "manifest.json").read_text()) | {"run": folder.name} | manifest
    (folder / "manifest.json").write_text(json.dumps(content))
    return Run(folder)
