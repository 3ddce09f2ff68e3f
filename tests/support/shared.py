"""Short runs, cut from samples: of a few trials and a user's secrets, and of the events that a test names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from diskbook.facts import paths
from diskbook.results import tables
from diskbook.results.run import Run

TRIALS = 4
ENDING = ("metrics", "deletion", "stage")
"""Events of a run's end, which stand after its last trial."""
SECRETS = {
    "subscription": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "tenant": "b6f1c2d4-9a3e-4f57-8e21-0d9c5a7b3e64",
    "subscription_name": "Contoso Payments",
    "ssh_source": "203.0.113.77",
    "resource_group": "rg-northwind-prod",
}
"""What the manifest of a run on Azure knows of its user."""


def short_run(
    folder: Path, trials: int = TRIALS, of: str = "zone-disks", load: str = "", **manifest: Any
) -> Run:
    """Write a run of the first trials of a sample, of one load if named; its manifest names `SECRETS`."""
    sample = paths.RUNS / f"sample-{of}"
    (folder / "raw").mkdir(parents=True)
    lines, replicates = [], 1
    for line in (sample / "ledger.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "trial":
            if not trials or load not in ("", event["workload"]):
                continue
            trials, replicates = trials - 1, event["replicate"]
            for entry in event["files"].values():
                shutil.copy(sample / entry["path"], folder / entry["path"])
            lines.append(line)
        elif trials or event["event"] in ENDING:
            lines.append(line)
    (folder / "ledger.jsonl").write_text("\n".join([*lines, ""]))
    kept = json.loads((sample / "manifest.json").read_text())
    kept["azure"] = {key: value for key, value in SECRETS.items() if key != "resource_group"}
    kept["resource_groups"] = [{"name": SECRETS["resource_group"], "deleted_utc": None}]
    kept["replicates"] = kept["replicates"][:replicates]
    (folder / "manifest.json").write_text(json.dumps({**kept, "run": folder.name, **manifest}))
    shutil.copy(sample / "plan.json", folder)
    return Run(folder)


def one_replicate(folder: Path, number: int = 1, load: str = "") -> Run:
    """Copy of the sample of zone-disks only a replicate, and of that one load if named."""

    def keep(event: Mapping[str, Any]) -> bool:
        return event.get("replicate", number) == number and load in ("", event.get("workload", load))

    return few_trials(folder, keep)


def few_trials(folder: Path, keep: Callable[[Mapping[str, Any]], bool], of: str = "zone-disks") -> Run:
    """Copy a sample with all its reports, but of its ledger only the events that `keep` wants."""
    sample = paths.RUNS / f"sample-{of}"
    shutil.copytree(sample, folder, ignore=shutil.ignore_patterns("raw", "ledger.jsonl", "manifest.json"))
    (folder / "raw").mkdir()
    lines = []
    for line in (sample / "ledger.jsonl").read_text().splitlines():
        event = json.loads(line)
        if keep(event):
            lines.append(line)
            entries = event.get("files") or {}
            for entry in entries.values() if isinstance(entries, dict) else entries:
                shutil.copy(sample / entry["path"], folder / entry["path"])
    (folder / "ledger.jsonl").write_text("\n".join([*lines, ""]))
    run = Run(folder)
    run.write_manifest({**json.loads((sample / "manifest.json").read_text()), "run": folder.name})
    tables.write(tables.build(run), folder)
    return run
