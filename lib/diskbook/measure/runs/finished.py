"""Whether a run has come to its end: all measured, analysed and torn down.

Reads manifest and ledger as they are and does not import the scenario, so that it is known at once. What it
cannot read, or somebody else wrote, it calls unfinished: whoever resumes the run then says why not.
"""

import json
import os
from pathlib import Path
from typing import Any

from diskbook.facts import client, paths
from diskbook.facts.errors import DiskbookError

RESULTS = ("comparisons.csv", "report.html")
"""What an analysis leaves in a run folder."""
BESIDE = "beside_scenario"
"""Key of the manifest: what lay beside the scenario's file (`analysis.beside`), which is named then."""


def folder_of(name: str) -> Path:
    """Folder of a run given by name or path, as `store.run.folder_of` has it."""
    return Path(name) if os.sep in name else paths.runs_root() / name


def since(folder: Path, *, file_named: bool = False) -> str:
    """Time (UTC, ISO 8601) at which a run was torn down after all was measured and analysed; "" before that.

    One that was kept stands, and so is not finished; neither is one whose report is gone, nor one that is
    analysed by files beside its scenario's file unless that is named.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        lines = (folder / "ledger.jsonl").read_text("utf-8").splitlines()
        stages = [event for event in map(json.loads, lines) if event["event"] == "stage"]
        is_own = client.is_signed_manifest(manifest, folder.name)
        has_link = any(path.is_symlink() for path in folder.rglob("*"))
        if not is_own or has_link or (manifest.get(BESIDE) and not file_named):
            return ""
        return _since(folder, manifest, stages)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, DiskbookError):
        return ""


def _since(folder: Path, manifest: dict[str, Any], stages: list[dict[str, Any]]) -> str:
    measured = any(event["stage"] == "benchmark" for event in stages)
    stands = any(not row["deleted_utc"] for row in manifest["resource_groups"])
    stands |= any(not row["removed_utc"] for row in manifest.get("places", ()))
    if not measured or stands or stages[-1]["stage"] != "teardown":
        return ""
    scenario = manifest["scenario"]
    analysis = scenario["scenario"].get("analysis") or scenario["name"]
    names = (*RESULTS, f"notebooks/3-analyse-{analysis}.ipynb")
    return str(stages[-1]["time_utc"]) if all((folder / name).is_file() for name in names) else ""


def words(folder: Path, when: str) -> str:
    """Say of a finished run that nothing is left to do, where its report is, and how it is analysed again."""
    day, _, time = when.partition("T")
    return (
        f"run {folder.name} is finished since {day} {time[:5]} UTC: nothing is left to measure, and nothing "
        f"was touched; report: {folder / 'report.html'}; 'diskbook report {folder.name}' analyses it again"
    )
