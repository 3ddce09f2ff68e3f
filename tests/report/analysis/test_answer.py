"""What is read of a run's comparisons.csv, and what is said of one that another version wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from checks import many_runs
from diskbook.batch import run_lookup
from diskbook.batch.catalogue import entry
from diskbook.cli import document_of
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import outcome, overview
from diskbook.publish import site
from diskbook.report.show import headlines
from diskbook.results.run import Run

READERS: dict[str, Callable[[Run], object]] = {
    "answer": headlines.read_answer,
    "catalogue": entry.read,
    "ending": lambda run: document_of.report(outcome.Outcome(run, "", run.folder)),
    "site": site.read,
}
DAMAGES: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "no family": (lambda table: table.drop(columns="family"), "column 'family' is missing"),
    "no ratio": (lambda table: table.assign(ratio="fast"), "column 'ratio', row 0: 'fast' is not a number"),
    "another arm": (
        lambda table: table.assign(arm=["x", *table["arm"][1:]]),
        "column 'arm': 'x' is none of ",
    ),
    "another load": (lambda table: table.assign(workload="x"), "column 'workload': 'x' is none of"),
    "another verdict": (lambda table: table.assign(verdict="good"), "column 'verdict': 'good' is none of"),
    "another scope": (lambda table: table.assign(scope="all"), "column 'scope', row 0: 'all' is none of"),
}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(many_runs.many(tmp_path, 1) / "disk-options-000")


@pytest.mark.long
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_each_reader_says_what_is_wrong_where_and_what_to_do(run: Run, damage: str, reader: str) -> None:
    change, words = DAMAGES[damage]
    path = run.folder / headlines.COMPARISONS
    change(pd.read_csv(path, keep_default_na=False, dtype=str)).to_csv(path, index=False)
    with pytest.raises(DiskbookError) as error:
        READERS[reader](run)
    said = str(error.value)
    assert str(path) in said and words in said and said.endswith("; run the analysis again")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b'a,"b\n'])
def test_what_is_no_table_is_a_sentence(run: Run, content: bytes) -> None:
    (run.folder / headlines.COMPARISONS).write_bytes(content)
    with pytest.raises(DiskbookError, match=r"comparisons\.csv.*; run the analysis again"):
        headlines.read_answer(run)


def test_a_run_that_compares_nothing_has_an_empty_table(run: Run) -> None:
    path = run.folder / headlines.COMPARISONS
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert headlines.read_comparisons(run).empty and "no headline" in headlines.read_answer(run)


def test_a_run_with_damaged_comparisons_ends_neither_list_nor_batch(run: Run) -> None:
    (run.folder / headlines.COMPARISONS).write_text("arm\n")
    assert run_lookup.answer_of(run).startswith(
        f"no answer: {run.folder}/comparisons.csv: table comparisons: "
    )
    assert overview._answer(run) == ""


def test_texts_that_look_like_numbers_stay_texts(run: Run) -> None:
    path = run.folder / headlines.COMPARISONS
    table = pd.read_csv(path, keep_default_na=False, dtype=str)
    table.assign(warnings="1", method="NA").to_csv(path, index=False)
    read = headlines.read_comparisons(run)
    assert set(read["warnings"]) == {"1"} and set(read["method"]) == {"NA"}
