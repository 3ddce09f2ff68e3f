"""The answer of an analysed run, read from its files: what `list`, `run` and the report say of it."""

import pandas as pd

from diskbook.design import schema
from diskbook.design.vocabulary import Verdict
from diskbook.facts.errors import DiskbookError, visible
from diskbook.report.show import headlines
from diskbook.results.run import HEADLINE_FILE, Run
from diskbook.results.tables import read_csv

COMPARISONS = "comparisons.csv"


def of_run(run: Run) -> str:
    """Answer of an analysed run in one sentence, as its analysis wrote it, else from its comparisons.csv.

    Raises DiskbookError when the run has not been analysed, or what the analysis wrote is damaged.
    """
    table = comparisons(run)
    own = run.folder / HEADLINE_FILE
    if own.exists():
        return visible(own.read_text("utf-8", errors="replace").strip())
    return headlines.headline(table, run.scenario)


def comparisons(run: Run) -> pd.DataFrame:
    """Read comparisons.csv of an analysed run, and check that it is about the run's scenario.

    Returns `schema.COMPARISONS`.

    Raises DiskbookError when it is missing or damaged, or names what the scenario or this version does not
    have.
    """
    path = run.folder / COMPARISONS
    if not path.exists():
        raise DiskbookError(f"{path} is missing; run the analysis notebook on {run.name}")
    table, scenario = read_csv(schema.COMPARISONS, path), run.scenario
    arms, loads = {item.name for item in scenario.arm}, {item.name for item in scenario.workload}
    kinds = table["verdict"].str.split(" within ").str[0]
    named = {"arm": (table["arm"], arms), "base_arm": (table["base_arm"], arms)}
    named |= {"workload": (table["workload"], loads), "verdict": (kinds, set(Verdict))}
    for column, (values, known) in named.items():
        if foreign := sorted(set(values) - known):
            raise DiskbookError(
                f"{path}, column '{column}': {foreign[0]!r} is none of {', '.join(sorted(known))}; "
                f"{schema.COMPARISONS.remedy}"
            )
    return table
