"""The articles in one table: scenario, notebook, sample run, and the verdicts that their claims get.

`make format` writes it into docs/reference/articles.md; a test compares.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from checks import markdown, page_head
from diskbook.clusters.analysis.nested import verdicts
from diskbook.design import scenario_file
from diskbook.design.model import Scenario
from diskbook.facts import paths
from diskbook.report.analysis import published, published_claims
from diskbook.report.analysis.published_claims import ClaimVerdict
from diskbook.report.analysis.run import Analysis
from diskbook.results import tables as store_tables
from diskbook.results.run import Run

PAGE = paths.ROOT / "docs" / "reference" / "articles.md"
HEAD = page_head("articles")
BY_RUN = page_head("articles-by-run")
_NONE = "none yet"


def rows(made: Mapping[str, Scenario], runs: Path = paths.RUNS) -> list[dict[str, str]]:
    """One row an article, in the order of `data/reference/articles.csv`."""
    judged = published_claims.judge(published.assess(published.read()))
    with (paths.REFERENCE / "articles.csv").open(encoding="utf-8", newline="") as file:
        articles = list(csv.DictReader(file))
    return [_row(article, made, judged, runs) for article in articles]


def scenarios() -> dict[str, Scenario]:
    """Scenarios of the workbook by name: one that follows an article has the article's."""
    return {name: scenario_file.load(name) for name in scenario_file.names()}


def page(runs: Path = paths.RUNS) -> str:
    return HEAD + _table(rows(scenarios(), runs)) + BY_RUN + _table([_by_run(runs)])


def _row(
    article: Mapping[str, str], made: Mapping[str, Scenario], judged: pd.DataFrame, runs: Path
) -> dict[str, str]:
    name = article["article"]
    scenario, of_article = made.get(name), judged[judged["article"] == name]
    row = {
        "article": f"[{name}]({article['url']})",
        "subject": article["subject"],
        "scenario": _NONE,
        "notebook": _NONE,
        "sample run": _NONE,
    }
    if scenario is not None:
        notebook = f"{scenario.analysis_notebook}.ipynb"
        row["scenario"] = _link(paths.SCENARIOS / f"{scenario.name}.toml", scenario.name)
        row["notebook"] = _link(paths.NOTEBOOKS / notebook, notebook)
        row["sample run"] = _link(runs / f"sample-{scenario.name}", f"sample-{scenario.name}")
    return row | {"claims": str(len(of_article))} | _counts(of_article["verdict"])


def _by_run(runs: Path) -> dict[str, str]:
    """Verdicts that the sample run gives the claims of `nested-resiliency`."""
    folder = runs / "sample-nested-resiliency"
    if not folder.is_dir():
        return {"by": _NONE, "claims": "", **_counts(())}
    run = Run(folder)
    a = Analysis(run, run.scenario, run.manifest, store_tables.read(folder))
    given = [verdict for verdict, _ in verdicts.verdicts(a).values()]
    words = f"{_link(folder, folder.name)} ({a.provenance})"
    return {"by": words, "claims": str(len(given)), **_counts(given)}


def _counts(given: Iterable[str]) -> dict[str, str]:
    counted = Counter(given)
    return {str(verdict): str(counted[verdict]) for verdict in ClaimVerdict}


def _link(path: Path, words: str) -> str:
    """A link from the page to a file of the workbook; in words that there is none yet."""
    return f"[{words}](../../{path.relative_to(paths.ROOT).as_posix()})" if path.exists() else _NONE


def _table(lines: list[dict[str, str]]) -> str:
    return markdown(list(lines[0]), [list(line.values()) for line in lines]) + "\n"
