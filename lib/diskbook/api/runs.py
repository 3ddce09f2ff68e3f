"""Runs beside runs: the table of all, and a comparison of some."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from diskbook.api.results import RunResults
from diskbook.measure.runs import overview
from diskbook.report.comparing import compared, tables, terminal
from diskbook.report.comparing.compared import Beside


@dataclass(frozen=True, repr=False)
class RunsComparison:
    """Runs of one question beside each other. Made by `compare_runs`.

    Attributes
    ----------
    table
        One row a comparison and run: the first run's ratio, the other's, the ratio of both, the verdict.
    """

    table: pd.DataFrame = field(compare=False)
    _beside: Beside = field(repr=False)

    def __repr__(self) -> str:
        return terminal.text(self._beside)

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
