"""Making a scenario's committed sample run again (`diskbook sample`)."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from diskbook.design import scenario_file
from diskbook.facts.errors import Stopped
from diskbook.measure.runs import pipeline, stages
from diskbook.publish import post
from diskbook.report.analysis import write
from diskbook.report.analysis.run import analyse
from diskbook.results import run as runs


def make(scenario: str) -> pipeline.Outcome:
    """Run a scenario's sample on the emulator again, in place of the old one, with figures and post.

    The old sample comes back when the new run fails.
    """
    target = runs.folder_of(f"sample-{scenario}")
    with _set_aside(target):
        run = stages.begin(target.name, scenario, "emulator", scenario_file.SAMPLE)
        outcome = pipeline.execute(run)
    analysis = analyse(run)
    write.export_figures(analysis, write.folder_of_figures(run))
    post.write(analysis)
    return outcome


@contextlib.contextmanager
def _set_aside(target: Path) -> Iterator[None]:
    """Keep an old folder until its successor is there."""
    old = target.with_name(f".{target.name}.old")
    if target.exists():
        target.rename(old)
    try:
        yield
    except BaseException as error:
        if isinstance(error, Stopped):
            error.hint = "; the earlier sample is back in its place" if old.exists() else ""
        shutil.rmtree(target, ignore_errors=True)
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
