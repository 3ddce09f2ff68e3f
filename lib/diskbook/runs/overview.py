"""What there is in the clone: scenarios and runs, for the overview notebook and `diskbook list`."""

from __future__ import annotations

import pandas as pd

from diskbook import load
from diskbook.azure import expiry
from diskbook.own_hosts import stage as own_hosts
from diskbook.store import run as runs


def scenarios() -> pd.DataFrame:
    """Scenarios that come with the workbook: question, arms, workloads and region."""
    rows = []
    for name in load.names():
        scenario = load.load(name)
        rows.append(
            {
                "scenario": name,
                "question": scenario.scenario.question,
                "arms": len(scenario.arm),
                "workloads": len(scenario.workload),
                "region": scenario.region,
            }
        )
    return pd.DataFrame(rows, columns=["scenario", "question", "arms", "workloads", "region"]).set_index(
        "scenario"
    )


def runs_table() -> pd.DataFrame:
    """Runs in the run folder: scenario, preset, provenance, whether all is measured, what still stands."""
    rows = []
    for path in sorted(runs.runs_root().glob("*/manifest.json")):
        run = runs.Run(path.parent)
        manifest = run.manifest
        rows.append(
            {
                "run": run.name,
                "scenario": manifest["scenario"]["name"],
                "preset": manifest["preset"],
                "provenance": manifest["provenance"],
                "state": "measured" if run.done("benchmark") else "unfinished",
                "standing": expiry.uptime_text(manifest) or own_hosts.standing_text(manifest),
            }
        )
    columns = ["run", "scenario", "preset", "provenance", "state", "standing"]
    return pd.DataFrame(rows, columns=columns).set_index("run")
