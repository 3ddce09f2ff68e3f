"""What `diskbook import` says: the results first, then which files they are of, and what was left out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from diskbook.design import schema
from diskbook.design.vocabulary import Verdict
from diskbook.facts import paths, table_writers
from diskbook.facts.errors import DiskbookError
from diskbook.facts.table_writers import Table, csv_text
from diskbook.importing import names, repeats, run as importer
from diskbook.importing.preview import listed
from diskbook.report.analysis import companion_files, protocol
from diskbook.report.analysis.run import Analysis
from diskbook.report.show import caveats, conformance, sentences, tables
from diskbook.results.run import Run

if TYPE_CHECKING:  # what draws and makes pages is imported by those that do
    from diskbook.report.figures import Picture

_MOST_LINES = 40
_MOST_VERDICTS = 5
_LONGEST = {"arm": 24, "workload": 34}
_NUMBER = re.compile(r"\d[\d.,]*")
_MOST_PANELS = 4


def report(run: Run) -> Path:
    """Execute the analysis notebook of an imported run, and make its report.

    Raises DiskbookError when the notebook fails; its last line says why.
    """
    from diskbook.report.analysis import report as reports

    name = _notebook(run.manifest)
    executed = run.folder / "notebooks" / name
    executed.parent.mkdir(exist_ok=True)
    parameters = json.dumps({"run": str(run.folder.resolve())})
    command = [
        sys.executable,
        "-m",
        "diskbook.measure.runs.execute_notebook",
        str(paths.NOTEBOOKS / name),
        str(executed.resolve()),
    ]
    done = subprocess.run(
        [*command, parameters],
        check=False,
        capture_output=True,
        text=True,
        cwd=paths.ROOT,
        env={**os.environ, companion_files.REPORT_LATER: "1"},
    )
    if done.returncode:
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        raise DiskbookError(f"{name} stopped: {lines[-1].strip() if lines else 'without a word'}")
    return reports.build(run)


def text(made: importer.Imported) -> str:
    """Say what was imported."""
    run = made.run
    a = Analysis(run, run.scenario, run.manifest, made.tables)
    arms = ", ".join(f"{name} ({count})" for name, count in made.arms.items())
    unlike = [flag for flag in made.flags if repeats.is_first(flag)]
    lines = [
        f"run {run.name} (imported), folder {run.folder}",
        *listed(
            caveats.HEAD,
            [*caveats.sentences(a.compared.doubts, made.n_trials), *unlike],
            _MOST_LINES + len(made.flags),
        ),
        *_verdicts(a),
        *listed("cells (medians)", _cells(a.cells), _MOST_LINES),
        conformance.summary(a.protocol),
        *listed("know of them", _alike([flag for flag in made.flags if flag not in unlike]), _MOST_LINES),
        f"{made.n_trials} measurements of {len(made.arms)} arms: {arms}",
        *listed("not used", _alike(made.refused), _MOST_LINES),
        f"next: 'diskbook why {run.name}', or notebooks/{_notebook(a.manifest)} (--report runs it)",
    ]
    return "\n".join(lines)


def _verdicts(a: Analysis) -> list[str]:
    """The first comparisons in a sentence each; decided ones before others."""
    rows = sentences.chosen(a.comparisons).to_dict("records") if len(a.comparisons) else []
    rows.sort(key=lambda row: Verdict.of(row["verdict"]) not in (Verdict.DIFFERENCE, Verdict.EQUIVALENT))
    more = len(rows) - _MOST_VERDICTS
    told_first = [f"imported: {sentences.sentence(row, a.scenario)}" for row in rows[:_MOST_VERDICTS]]
    return told_first + ([f"and {more} comparisons more"] if more > 0 else [])


def _cells(cells: pd.DataFrame) -> list[str]:
    """Every cell in a line: what was measured, how often, and what it is worth."""
    arms, loads = (
        names.labels({name: name for name in cells[column]}, _LONGEST[column])
        for column in ("arm", "workload")
    )
    rows = [
        {
            "arm": arms[row["arm"]],
            "load": loads[row["workload"]],
            "n": row["n_trials"],
            "IOPS": row["iops"],
            "MB/s": row["mb_s"],
            "mean, ms": row["lat_mean_ms"],
            "label": tables.label_words(row),
        }
        for row in cells.to_dict("records")
    ]
    return table_writers.text(Table.of(rows)).splitlines()


def _alike(notes: Sequence[str]) -> list[str]:
    """Sentences that differ in their numbers alone, once with how many there are."""
    kinds: dict[str, list[str]] = {}
    for note in notes:
        kinds.setdefault(_NUMBER.sub("#", note), []).append(note)
    return [
        same[0] + (f"; and {len(same) - 1} more like it" if len(same) > 1 else "") for same in kinds.values()
    ]


def _notebook(manifest: Mapping[str, Any]) -> str:
    return f"3-analyse-{manifest['scenario']['scenario']['analysis']}.ipynb"


def files_read(manifest: Mapping[str, Any]) -> pd.DataFrame:
    """Files that an imported run was made of, one a row."""
    columns = {"file": "File", "tool": "Tool", "tool_version": "Version", "measurements": "Measurements"}
    rows = pd.DataFrame(manifest["imported"]["files"], columns=[*columns, "sha256"])
    return rows.assign(sha256=rows["sha256"].str[:12]).rename(columns={**columns, "sha256": "SHA-256 begins"})


def refused(manifest: Mapping[str, Any]) -> pd.DataFrame:
    """What was not used, a row and sentence a file."""
    return pd.DataFrame({"Not used, and why": manifest["imported"]["refused"] or ["every file was used"]})


def flags(ledger: Iterable[Mapping[str, Any]]) -> list[str]:
    """What must be known of the measurements, each with their number."""
    counts = Counter(flag for event in ledger if event["event"] == "trial" for flag in event.get("flags", ()))
    kinds: dict[str, list[str]] = {}
    for flag in counts:
        kinds.setdefault(_NUMBER.sub("#", flag), []).append(flag)
    totals = [(same[0], len(same) - 1, sum(counts[flag] for flag in same)) for same in kinds.values()]
    return [
        f"{flag}{f', and {more} like it' * bool(more)} ({n} measurement{'s' * (n != 1)})"
        for flag, more, n in totals
    ] or ["nothing"]


def tail(analysis: Analysis) -> Picture | None:
    """Figure of the slow I/Os, at most four loads; None where no file tells percentiles."""
    from diskbook.report import figures

    names = list(dict.fromkeys(analysis.percentiles["workload"]))[:_MOST_PANELS]
    if not names:
        return None
    drawn = (analysis.tables.bins, analysis.trials, analysis.looks, analysis.words, names)
    picture = figures.tail(*drawn, analysis.source)
    for axes in picture.figure.axes:
        # Of the completion or the total latency: that differs from file to file, and the flags say it.
        axes.set_ylabel(axes.get_ylabel().replace("Total latency", "Latency"))
    return picture


def write(analysis: Analysis) -> list[Path]:
    """Write comparisons.csv, protocol.csv, and figures of what there is; return their paths.

    The run of a public data set that answers a question has its headline and figures as well.
    """
    from diskbook.report import figures
    from diskbook.report.analysis import write as analysis_write

    if analysis.own_headline:
        return analysis_write.results(analysis)
    path = analysis.run.folder / "comparisons.csv"
    checked = schema.validate(schema.COMPARISONS, analysis.comparisons)
    analysis.run.write(path.name, csv_text(checked))
    pictures = [picture for picture in (tail(analysis), analysis.load_curve) if picture]
    return [
        path,
        protocol.write(analysis),
        *(path for picture in pictures for path in figures.export(picture, analysis.run.folder / "figures")),
    ]
