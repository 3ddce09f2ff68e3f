"""A short run for tests of sharing: the first block of a sample, with what a user's own run would know."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from diskbook.facts import paths
from diskbook.results.run import Run

TRIALS = 4
SECRETS = {
    "subscription": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "tenant": "b6f1c2d4-9a3e-4f57-8e21-0d9c5a7b3e64",
    "subscription_name": "Contoso Payments",
    "ssh_source": "203.0.113.77",
    "resource_group": "rg-northwind-prod",
}
"""What the manifest of a run on Azure knows of its user."""


def short_run(folder: Path, trials: int = TRIALS, of: str = "zone-disks", **manifest: Any) -> Run:
    """Write a run of so many trials of a sample, whose manifest names `SECRETS`."""
    sample = paths.RUNS / f"sample-{of}"
    (folder / "raw").mkdir(parents=True)
    kept = json.loads((sample / "manifest.json").read_text())
    kept["azure"] = {key: value for key, value in SECRETS.items() if key != "resource_group"}
    kept["resource_groups"] = [{"name": SECRETS["resource_group"], "deleted_utc": None}]
    (folder / "manifest.json").write_text(json.dumps({**kept, "run": folder.name, **manifest}))
    shutil.copy(sample / "plan.json", folder)
    lines, left = [], trials
    for line in (sample / "ledger.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "trial":
            left -= 1
            for entry in event["files"].values() if left >= 0 else ():
                shutil.copy(sample / entry["path"], folder / entry["path"])
        if left >= 0 or event["event"] != "trial":
            lines.append(line)
    (folder / "ledger.jsonl").write_text("\n".join([*lines, ""]))
    return Run(folder)
