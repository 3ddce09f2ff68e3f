"""The committed samples, analysed."""

from __future__ import annotations

import functools

from diskbook.facts import paths
from diskbook.report.analysis.run import Analysis
from diskbook.results import tables
from diskbook.results.run import open_run


@functools.cache
def analysed(name: str) -> Analysis:
    """Analysis of the sample of a scenario by its committed tables; everybody gets the same one.

    That these are the tables of its raw results is tested in tests/publish/test_samples.py.
    """
    run = open_run(paths.RUNS / f"sample-{name}")
    return Analysis(run, run.scenario, run.manifest, tables.read(run.folder))
