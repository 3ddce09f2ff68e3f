"""What there is in the clone: scenarios and runs, for the overview notebook and `diskbook list`."""

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.cloud.azure import expiry
from diskbook.design import scenario_file
from diskbook.design.vocabulary import Verdict
from diskbook.facts import neighbours, paths
from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.table_writers import terminal_width
from diskbook.hosts import stage
from diskbook.report.analysis import report as reports
from diskbook.results import run as runs

_CHANGE = re.compile(r"[+-][\d.,]+ %")


@dataclass(frozen=True)
class ListedRun:
    """A run in the run folder; see `documents.RunRow`."""

    run: str
    scenario: str
    preset: str
    provenance: str
    state: str
    begun_utc: str
    answer: str
    report: str
    standing: str


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
    names = [field.name for field in fields(ListedRun)]
    return pd.DataFrame([asdict(row) for row in run_rows()[0]], columns=names).set_index("run")


def run_rows() -> tuple[list[ListedRun], list[str]]:
    """Runs in the run folder, by name, and a sentence for each that cannot be read."""
    folder, rows, unreadable = runs.runs_root(), [], []
    known = _catalogued(folder)
    for path in sorted(folder.glob("*/manifest.json")):
        name = path.parent.name
        try:
            rows.append(_joined_row(folder, known[name]) if name in known else listed(runs.Run(path.parent)))
        except DiskbookError as error:
            unreadable.append(f"{name}: {error}")
    return rows, unreadable


def _catalogued(folder: Path) -> dict[str, dict[str, Any]]:
    """Rows of runs by name, from the catalogue; without runs whose resources exist."""
    if not folder.is_dir():
        return {}
    seen = neighbours.catalogue.view(folder).tell()
    rows = seen.joined("runs", None, [*_COLUMNS, "manifest_json", "stands"]).to_pylist()
    return {row["run"]: row for row in rows if not row["stands"]}


def _joined_row(folder: Path, row: dict[str, Any]) -> ListedRun:
    begun, report = json.loads(row["manifest_json"])["created_utc"], row["report"]
    return ListedRun(
        **{name: row[name] for name in _COLUMNS if name not in ("answer", "report")},
        begun_utc=begun,
        answer=row["answer"] or "",
        report=_place(folder / report) if report else "",
        standing="",
    )


def text(*, verbose: bool = False) -> str:
    """What there is: scenarios, profiles, and one line per run; verbosely the whole answers and reports."""
    rows, unreadable = run_rows()
    width = max((len(row.run) for row in rows), default=0)
    return "\n".join(
        [
            f"scenarios: {', '.join(scenario_file.names())}",
            f"emulator profiles: {', '.join(profiles())}",
            "runs:" if rows else "runs: none",
            *(line for row in rows for line in (_lines(row) if verbose else _brief(row, width))),
            *(f"left out: {visible(line)}" for line in unreadable),
        ]
    )


def profiles() -> list[str]:
    """Names of the emulator's profiles."""
    return sorted(path.stem for path in paths.PROFILES.glob("*.toml"))


def _brief(row: ListedRun, width: int) -> list[str]:
    """One line: name, day, change of the answer, and as much of it as the line holds; what still stands."""
    change = None if str(Verdict.INCONCLUSIVE) in row.answer else _CHANGE.search(row.answer)
    answer = row.answer or f"{row.provenance}, {'not analysed' if row.state == 'measured' else row.state}"
    line = f"  {row.run:<{width}}  {row.begun_utc[:10]}  {change[0] if change else '':>8}  {visible(answer)}"
    most = terminal_width()
    lines = [line if len(line) <= most else f"{line[: most - 1].rstrip()}…"]
    return [*lines, f"    {row.standing}"] if row.standing else lines


def _lines(row: ListedRun) -> list[str]:
    first = f"  {row.run}  {row.provenance}  {row.state}  {row.begun_utc[:10]}"
    return [
        f"{first}  {row.standing}" if row.standing else first,
        *([f"    {row.answer}"] if row.answer else []),
        *([f"    report: {row.report}"] if row.report else []),
    ]


def listed(run: runs.Run) -> ListedRun:
    """Describe one run, from its folder."""
    manifest, report = run.manifest, run.folder / "report.html"
    return ListedRun(
        run=run.name,
        scenario=manifest["scenario"]["name"],
        preset=manifest["preset"],
        provenance=manifest["provenance"],
        state="measured" if run.done("benchmark") else "unfinished",
        begun_utc=manifest["created_utc"],
        answer=_answer(run),
        report=_place(report) if report.is_file() else "",
        standing=expiry.uptime_text(manifest) or stage.standing_text(manifest),
    )


def _place(path: Path) -> str:
    """A path as short as it can be copied from the folder one is in."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _answer(run: runs.Run) -> str:
    """Answer of a run; "" where it has not been analysed, or what that left is damaged."""
    try:
        return reports.headline(run)
    except DiskbookError:
        return ""
