"""Runs next to runs: the table of all, and a comparison of some."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from diskbook.api import comparison
from diskbook.api.results import RunResults
from diskbook.facts import paths
from diskbook.measure.runs import overview
from diskbook.report.comparing import compared, tables
from diskbook.report.show.html import Html, escaped
from diskbook.results.run import Run, folder_of


@dataclass(frozen=True, repr=False)
class RunsComparison:
    """Runs of one question beside each other. Made by `compare_runs`.

    Attributes
    ----------
    table
        One row a comparison and run: the first run's ratio, the other's, the ratio of both, the verdict.
    """

    table: pd.DataFrame = field(compare=False)
    _beside: compared.Beside = field(repr=False)

    def __repr__(self) -> str:
        return tables.text(self._beside)

    def _repr_html_(self) -> str:
        return tables.html(self._beside)._repr_html_()


def compare_runs(*runs: RunResults | str | Path) -> RunsComparison:
    """Compare runs, each with the first.

    Parameters
    ----------
    runs
        Opened runs, or names or folders of runs; two or more.

    Raises
    ------
    DiskbookError
        When there are fewer than two, one is not there, or they asked different things.
    """
    folders = [str(run.folder if isinstance(run, RunResults) else run) for run in runs]
    beside = compared.compare(folders)
    return RunsComparison(pd.DataFrame(tables.records(beside)), beside)


def runs() -> pd.DataFrame:
    """Runs in the run folder, a row each: what they are of, their state and their answer."""
    return overview.runs_table()


def cards() -> Html:
    """Show a card per run: question and answer in full, with links to its notebook and its report."""
    rows, _ = overview.run_rows()
    return Html("".join(map(_card, rows)) or "<p>No run yet: start one with 'diskbook run zone-disks'.</p>")


def _card(row: overview.ListedRun) -> str:
    run = Run(folder_of(row.run))
    facts = {"Answer": row.answer or "not analysed yet", "Run": f"{row.run}, {row.state}"}
    facts["Date"] = row.begun_utc[:10]
    notebook = f"{run.scenario.analysis_notebook}.ipynb"
    links = [f'<a href="{escaped(notebook)}">{escaped(notebook)}</a>']
    if row.report:
        report = os.path.relpath(run.folder / "report.html", paths.NOTEBOOKS)
        links.append(f'<a href="{escaped(report)}">report</a>')
    below = f'<p style="margin:.2em 0 1em">{", ".join(links)}</p>'
    return (
        comparison.box(run.scenario.scenario.question, facts, comparison.source_words(row.provenance)) + below
    )
