"""The committed sample runs, one a scenario, and the exported figures made from them."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diskbook.analysis import write
from diskbook.analysis.run import analyse
from diskbook.base import paths
from diskbook.base.errors import Stopped
from diskbook.runs import pipeline, stages
from diskbook.store import run as runs
from diskbook.store.run import Run

# Longer and more often than the quick preset, so that the sample's intervals are worth reading.
OVERRIDES: dict[str, dict[str, Any]] = {
    "zone-disks": {
        "all_workloads.runtime_s": 2.0,
        "all_workloads.blocks": 6,
        "workload.randread-qd256.runtime_s": 3.0,
        "workload.randread-qd256.blocks": 2,
        "workload.randwrite-qd256.runtime_s": 3.0,
        "workload.randwrite-qd256.blocks": 2,
    },
    "shared-zrs": {"all_workloads.blocks": 6, "all_workloads.runtime_s": 2.0, "workload.article.blocks": 3},
    "disk-options": {"workload.access-time.blocks": 4, "workload.access-time.runtime_s": 4.0},
}


def make(scenario: str) -> pipeline.Outcome:
    """Run a scenario's sample on the emulator again, in place of the old one, and export its figures.

    The old sample comes back when the new run fails.
    """
    target = runs.folder_of(f"sample-{scenario}")
    with _set_aside(target):
        folder = stages.begin(target.name, scenario, "emulator", "quick", OVERRIDES[scenario])
        outcome = pipeline.execute(folder)
    export_figures(folder, paths.FIGURES / scenario)
    return outcome


@contextlib.contextmanager
def _set_aside(target: Path) -> Iterator[None]:
    """Keep an old folder until its successor is there."""
    old = target.with_name(f".{target.name}.old")
    if target.exists():
        target.rename(old)
    try:
        yield
    except BaseException as error:
        if isinstance(error, Stopped):
            error.hint = "; the earlier sample is back in its place" if old.exists() else ""
        shutil.rmtree(target, ignore_errors=True)
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def export_figures(folder: Run, target: Path) -> list[Path]:
    """Write the figures of a run's analysis into a folder: SVG, PNG at twice the size, and words."""
    return write.export_figures(analyse(folder), target)
