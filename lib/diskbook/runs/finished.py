"""Whether a run has come to its end: all measured, analysed and torn down. Reads the run folder only."""

from __future__ import annotations

from diskbook.store.run import Run

RESULTS = ("comparisons.csv", "report.html")
"""What an analysis leaves in a run folder."""


def since(run: Run) -> str:
    """Time (UTC, ISO 8601) at which a run was torn down after all was measured and analysed; "" before that.

    One that was kept stands, and so is not finished; neither is one whose report is gone.
    """
    manifest = run.manifest
    stages = [event for event in run.ledger() if event["event"] == "stage"]
    measured = any(event["stage"] == "benchmark" for event in stages)
    stands = any(not row["deleted_utc"] for row in manifest["resource_groups"])
    stands |= any(not row["removed_utc"] for row in manifest.get("places", ()))
    if not measured or stands or stages[-1]["stage"] != "teardown":
        return ""
    names = (*RESULTS, f"notebooks/{run.scenario.analysis_notebook}.ipynb")
    return str(stages[-1]["time_utc"]) if all((run.folder / name).is_file() for name in names) else ""


def words(run: Run) -> str:
    """Say of a finished run that nothing is left to do, where its report is, and how it is analysed again."""
    day, _, time = since(run).partition("T")
    return (
        f"run {run.name} is finished since {day} {time[:5]} UTC: nothing is left to measure, and nothing was "
        f"touched; report: {run.folder / 'report.html'}; 'diskbook report {run.name}' analyses it again"
    )
