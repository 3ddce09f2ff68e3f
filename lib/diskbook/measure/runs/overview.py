"""What there is in the clone: scenarios and runs, for the overview notebook and `diskbook list`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.cloud.azure import expiry
from diskbook.design import scenario_file
from diskbook.facts import neighbours, paths
from diskbook.facts.errors import DiskbookError
from diskbook.facts.visible import visible
from diskbook.hosts import stage as own_hosts
from diskbook.report.analysis import report as reports
from diskbook.report.show.documents import Overview, RunRow, ScenarioRow
from diskbook.results import run as runs
from diskbook.results.run import Run

_COLUMNS = ("run", "scenario", "preset", "provenance", "state", "answer", "report")


def scenarios() -> pd.DataFrame:
    """Scenarios that come with the workbook: question, arms, workloads and region."""
    rows = []
    for name in scenario_file.names():
        scenario = scenario_file.load(name)
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
    """Runs in the run folder: what they are of, whether all is measured, the answer, what still stands."""
    rows = [row.model_dump() for row in run_rows()[0]]
    return pd.DataFrame(rows, columns=list(RunRow.model_fields)).set_index("run")


def run_rows() -> tuple[list[RunRow], list[str]]:
    """Runs in the run folder, by name, and a sentence for each that cannot be read."""
    folder, rows, unreadable = runs.runs_root(), [], []
    known = _catalogued(folder)
    for path in sorted(folder.glob("*/manifest.json")):
        name = path.parent.name
        try:
            rows.append(_joined_row(folder, known[name]) if name in known else _run_row(Run(path.parent)))
        except DiskbookError as error:
            unreadable.append(f"{name}: {error}")
    return rows, unreadable


def _catalogued(folder: Path) -> dict[str, dict[str, Any]]:
    """Rows of runs that the catalogue has as they are; not of those that stand, whose words hold for now."""
    if not folder.is_dir():
        return {}
    seen = neighbours.catalogue.view(folder).tell()
    rows = seen.joined("runs", None, [*_COLUMNS, "manifest_json", "stands"]).to_pylist()
    return {row["run"]: row for row in rows if not row["stands"]}


def _joined_row(folder: Path, row: dict[str, Any]) -> RunRow:
    begun, report = json.loads(row["manifest_json"])["created_utc"], row["report"]
    return RunRow(
        **{name: row[name] for name in _COLUMNS if name not in ("answer", "report")},
        begun_utc=begun,
        answer=row["answer"] or "",
        report=_place(folder / report) if report else "",
        standing="",
    )


def document() -> Overview:
    """What there is, for programs."""
    rows = [
        ScenarioRow(
            scenario=str(name),
            question=row["question"],
            n_arms=row["arms"],
            n_workloads=row["workloads"],
            region=row["region"],
        )
        for name, row in scenarios().to_dict("index").items()
    ]
    listed, unreadable = run_rows()
    return Overview(scenarios=rows, profiles=profiles(), runs=listed, unreadable=unreadable)


def text() -> str:
    """What there is: scenarios, profiles, and each run with its date, answer and report."""
    rows, unreadable = run_rows()
    return "\n".join(
        [
            f"scenarios: {', '.join(scenario_file.names())}",
            f"emulator profiles: {', '.join(profiles())}",
            "runs:" if rows else "runs: none",
            *(line for row in rows for line in _lines(row)),
            *(f"left out: {visible(line)}" for line in unreadable),
        ]
    )


def profiles() -> list[str]:
    """Names of the emulator's profiles."""
    return sorted(path.stem for path in paths.PROFILES.glob("*.toml"))


def _lines(row: RunRow) -> list[str]:
    first = f"  {row.run}  {row.provenance}  {row.state}  {row.begun_utc[:10]}"
    return [
        f"{first}  {row.standing}" if row.standing else first,
        *([f"    {row.answer}"] if row.answer else []),
        *([f"    report: {row.report}"] if row.report else []),
    ]


def _run_row(run: Run) -> RunRow:
    manifest, report = run.manifest, run.folder / "report.html"
    return RunRow(
        run=run.name,
        scenario=manifest["scenario"]["name"],
        preset=manifest["preset"],
        provenance=manifest["provenance"],
        state="measured" if run.done("benchmark") else "unfinished",
        begun_utc=manifest["created_utc"],
        answer=_answer(run),
        report=_place(report) if report.is_file() else "",
        standing=expiry.uptime_text(manifest) or own_hosts.standing_text(manifest),
    )


def _place(path: Path) -> str:
    """A path as short as it can be copied from the folder one is in."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _answer(run: Run) -> str:
    """Answer of a run; "" where it has not been analysed, or what that left is damaged."""
    try:
        return reports.headline(run)
    except DiskbookError:
        return ""
