"""A scenario over all its runs: the same spread as between named runs, and nothing mixed that differs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from diskbook.design.vocabulary import Scope
from diskbook.report.comparing import compared, over_runs
from diskbook.report.comparing.over_runs import OfRuns, OverRuns
from diskbook.results.run import Run

pytestmark = pytest.mark.long

WRITE = ("zrs-z1", "lrs-z1", "randwrite-qd1", "write", "lat_mean_ms")


@pytest.fixture(scope="module")
def folder(runs: dict[str, Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of several replicates and one of one."""
    place = tmp_path_factory.mktemp("over")
    for name in ("default", "again", "slower", "null-1", "single"):
        shutil.copytree(runs[name].folder, place / name, ignore=shutil.ignore_patterns("raw"))
    return place


@pytest.fixture(scope="module")
def over(folder: Path) -> OverRuns:
    """All of them compared."""
    return over_runs.compare(Run(folder / "default").scenario.name, str(folder))


def rows(over: OverRuns, scope: Scope) -> list[OfRuns]:
    return [row for row in over.rows if row.key == WRITE and row.scope is scope]


def test_the_spread_is_that_of_the_same_runs_named(folder: Path, over: OverRuns) -> None:
    named = compared.compare([str(folder / name) for name in ("default", "again", "slower")])
    row, alike = rows(over, Scope.LIKE_THESE)
    (item,) = [item for item in named.spreads if item.key == WRITE]
    assert row.between is not None and row.between.spread == pytest.approx(item.spread)
    assert row.words == named.words(WRITE) and row.n_runs == 3 and row.stratum
    ratios = [
        rows["ratio"] for rows in (named.pairs[0].ratios[0], *(pair.ratios[1] for pair in named.pairs[:2]))
    ]
    assert row.range is not None and (row.range.smallest, row.range.largest) == (min(ratios), max(ratios))
    assert row.range.largest_run == "slower"
    assert alike.range is not None and alike.range.largest_run == "null-1" and alike.stratum == ""


def test_one_replicate_stands_apart(over: OverRuns) -> None:
    (row,) = rows(over, Scope.THESE)
    assert row.n_runs == 1 and row.between is None and over.n_runs == 5


def test_another_question_is_counted_and_named(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "runs"
    shutil.copytree(folder, place)
    path = place / "again" / "manifest.json"
    content = json.loads(path.read_text())
    for load in content["scenario"]["workload"]:
        load["queue_depth"] = load.get("queue_depth", 1) * 2
    path.write_text(json.dumps(content))
    other = over_runs.compare(content["scenario"]["name"], str(place))
    assert [row.n_runs for row in rows(other, Scope.LIKE_THESE)] == [2, 1]
    assert {item.n_runs for item in other.left_out} == {1}
    assert "another question: workload: queue_depth is 2, not 1" in " ".join(over_runs.text(other).split())


def test_it_is_printed_in_80_columns_and_counted_in_csv(over: OverRuns) -> None:
    shown = over_runs.text(over)
    assert max(map(len, shown.splitlines())) <= 80 and "s.d. between 3 runs" in shown
    assert len(over_runs.csv(over).splitlines()) == len(over.rows) + 1
    assert over_runs.markdown(over).count("\n| ") == len(over.rows) + 2
