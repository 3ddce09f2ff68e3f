"""What a batch came to: words, JSON, and a page that links the reports."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from diskbook.batch import notebook, run_lookup
from diskbook.batch.loop import CUT, FAILED, FINISHED, RUNNING, SKIPPED, UNPAID, WAITING, Batch, Row
from diskbook.batch.matrix import Matrix
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import visible
from diskbook.facts.files import write_atomic
from diskbook.facts.units import duration
from diskbook.report.analysis import report as reports
from diskbook.report.show import html as show_html
from diskbook.results.run import Run

PAGE, DATA = "index.html", "summary.json"
SCHEMA = 1
_SOME_EMULATED = "SOME RUNS ARE EMULATED, as their rows say. Their numbers say nothing about Azure."
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)


def content(matrix: Matrix, batch: Batch, folder: Path) -> dict[str, Any]:
    """All of a batch's outcome, as its JSON has it; paths are relative to its folder."""
    return {
        "schema": SCHEMA,
        "batch": matrix.name,
        "exit_code": batch.exit_code,
        "runs": len(batch.rows),
        "finished": batch.count(FINISHED),
        "failed": batch.count(FAILED, SKIPPED),
        "left": batch.count(WAITING, CUT, UNPAID, RUNNING),
        "limit_usd": batch.purse.limit,
        "spent_usd": round(batch.purse.spent, 4),
        "notebook": _link(folder / notebook.SOURCE.name, folder),
        "rows": [_row(row, batch.shelf.run_of(row.item), folder) for row in batch.rows],
    }


def _row(row: Row, run: Run, folder: Path) -> dict[str, Any]:
    asked, done = row.item.asked, row.state == FINISHED
    if done and not row.answer:  # read once: the page is written again with each ending
        row.answer = run_lookup.answer_of(run)
    return {
        "run": row.item.name,
        "folder": os.path.relpath(run.folder, folder),
        "label": row.item.label,
        "scenario": row.item.scenario.name,
        "preset": asked.preset,
        "cloud": asked.cloud,
        "emulator_profile": asked.emulator_profile,
        "settings": dict(asked.settings),
        "region": row.item.scenario.region,
        "provenance": row.standing.provenance,
        "state": row.state,
        "reason": row.reason,
        "answer": row.answer,
        "report": _link(run_lookup.report_of(run), folder) if done else None,
        "log": _link(folder / "logs" / f"{row.item.name}.log", folder),
        "still_stands": row.standing.left,
        "expected_usd": round(row.price.expected_usd, 4),
        "estimated_usd": round(row.standing.estimated_usd, 4),
        "spent_usd": round(row.standing.spent_usd, 4),
        "seconds": round(row.seconds, 1),
    }


def _link(path: Path, folder: Path) -> str | None:
    """Address of a file from the page; None where there is none."""
    return quote(os.path.relpath(path, folder)) if path.exists() else None


def write(matrix: Matrix, batch: Batch, folder: Path) -> dict[str, Any]:
    """Write the page and its data into the batch's folder, whole or not at all; return the data."""
    data = content(matrix, batch, folder)
    write_atomic(folder / DATA, json.dumps(data, indent=1) + "\n")
    write_atomic(folder / PAGE, page(data))
    return data


def page(data: Mapping[str, Any]) -> str:
    """The summary page: self-contained, without script, linking each report."""
    kinds = {row["provenance"] for row in data["rows"]}
    return _TEMPLATES.get_template("page.html.jinja").render(
        data=data,
        counts=counts(data),
        style=reports.STYLE,
        banner=_banner(kinds - {""}),
        visible=visible,
        duration=duration,
    )


def _banner(kinds: set[str]) -> str:
    """What the page says on every screen where anything is emulated."""
    emulated = {kind for kind in kinds if Provenance.EMULATED in kind}
    if not emulated:
        return ""
    return show_html.EMULATED if emulated == kinds else _SOME_EMULATED


def counts(data: Mapping[str, Any]) -> str:
    """State of the whole in one sentence."""
    limit = "" if data["limit_usd"] is None else f" of at most {data['limit_usd']:.2f}"
    failed = f", {data['failed']} failed" if data["failed"] else ""
    left = f", {data['left']} left" if data["left"] else ""
    return (
        f"{data['finished']} of {data['runs']} runs finished{failed}{left}; "
        f"{data['spent_usd']:.2f} USD{limit} spent{_would(data['rows'])}"
    )


def _would(rows: Sequence[Mapping[str, Any]]) -> str:
    """Emulated runs cost nothing: their price is what they would cost."""
    emulated = [row for row in rows if row["cloud"] == "emulator"]
    if not emulated:
        return ""
    are_all = len(emulated) == len(rows)
    return " (what they would cost on Azure)" if are_all else " (emulated: what they would cost)"


def words(data: Mapping[str, Any], page_path: Path) -> str:
    lines = ["", counts(data)]
    for row in data["rows"]:
        if row["state"] in (FAILED, UNPAID, SKIPPED):
            lines.append(f"  {row['state']}: {row['run']}  {row['label']}: {row['reason']}")
        if row["still_stands"]:
            lines.append(f"  {row['run']} {row['still_stands']}: 'diskbook teardown {row['run']}' deletes it")
    if data["left"] or data["failed"]:
        lines.append("start the same batch again to go on: what is finished is not repeated")
    made = [f"notebook: {page_path.parent / data['notebook']}"] if data["notebook"] else []
    return "\n".join([*lines, "", f"summary: {page_path}", *made])
