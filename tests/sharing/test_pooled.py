"""Runs taken together: these runs, and runs like these."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import diskbook as db
from diskbook.sharing import pooled
from support.run_copies import copies

KEY = ("zrs-z1", "lrs-z1")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> list[db.RunResults]:
    """Three runs, whose folders no test changes."""
    return [db.open_run(folder) for folder in copies(tmp_path_factory.mktemp("runs"), 3)]


@pytest.mark.long
def test_runs_are_pooled_and_one_that_is_there_twice_counts_once(opened: list[db.RunResults]) -> None:
    two = opened[:2]
    runs = db.pool([*two, two[0].folder])
    result = runs.compare(*KEY, workload="randwrite-qd1")
    alone = [run.compare(*KEY, workload="randwrite-qd1").scope.ratio for run in two]
    assert runs.names == ["run-0", "run-1"] and list(result.runs["n_replicates"]) == [3, 3]
    assert result.these_runs.ratio == pytest.approx(np.sqrt(alone[0] * alone[1]))
    assert "fewer than 3 runs" in result.runs_like_these.reason and not result.exploratory
    assert result.plot().get_xlabel() == "change, %" and "emulator" in repr(result)
    with pytest.raises(db.UsageError, match="fewer than two runs have a number"):
        runs.compare(*KEY, workload="randwrite-qd256")


def test_runs_that_asked_different_things_are_refused(tmp_path: Path) -> None:
    first, other = copies(tmp_path, 2)
    manifest = json.loads((other / "manifest.json").read_text())
    for disk in manifest["scenario"]["disk"]:
        disk["sku"] = disk["sku"].replace("Premium", "StandardSSD")
    (other / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(db.UsageError, match="asked something else"):
        db.pool([first, other])


def coverage(rng: np.random.Generator, between: float, replicates: Sequence[int]) -> tuple[float, float]:
    """How often each interval holds its truth: the mean of these runs, and that of all runs (0)."""
    held = np.zeros(2)
    for _ in range(2000):
        truths = rng.normal(0, between, len(replicates))
        means = [rng.normal(truth, 0.05, n) for truth, n in zip(truths, replicates, strict=True)]
        scopes = pooled.these_runs(means), pooled.runs_like_these(means)
        for place, (estimate, truth) in enumerate(zip(scopes, (truths.mean(), 0.0), strict=True)):
            held[place] += estimate.low <= np.exp(truth) <= estimate.high
    return tuple(held / 2000)  # type: ignore[return-value]


@pytest.mark.long
@pytest.mark.parametrize(
    ("between", "replicates"),
    [(0.0, (3, 3, 3)), (0.01, (3,) * 5), (0.03, (2, 5, 3, 3, 4))],
)
def test_both_intervals_hold_their_truth(between: float, replicates: tuple[int, ...]) -> None:
    these, like_these = coverage(np.random.default_rng(20261124), between, replicates)
    assert these == pytest.approx(0.95, abs=0.015)
    if between:
        assert like_these == pytest.approx(0.95, abs=0.02)
    else:
        assert like_these > 0.92


@pytest.mark.long
def test_a_copy_under_another_name_counts_once(opened: list[db.RunResults], tmp_path: Path) -> None:
    first, other = opened[0].folder, opened[1]
    renamed = tmp_path / "renamed"
    shutil.copytree(first, renamed)
    manifest = json.loads((renamed / "manifest.json").read_text())
    (renamed / "manifest.json").write_text(
        json.dumps(manifest | {"run": "renamed", "created_utc": "2030-01-01T00:00:00Z"})
    )
    assert db.pool([first, renamed, other]).names == ["run-0", "run-1"]
    with pytest.raises(db.UsageError, match="a run that is there twice counts once"):
        db.pool([first, renamed])


@pytest.mark.long
def test_a_pool_shows_its_runs_components_and_what_would_change_it(opened: list[db.RunResults]) -> None:
    result = db.pool(opened).compare(*KEY, workload="randwrite-qd1")
    why = result.components.set_index("component")["why"]
    assert why["region"] == "all runs have one region" and not why["day"] and not why["block"]
    assert "each day has one run, so that its spread is part of that" in why["run"]
    assert list(result.leave_one_out["left_out"]) == list(result.runs["run"])
    assert set(result.leave_one_out["verdict"]) == {"no interval"}  # two runs are left
    assert any("without run-0 it is: no interval" in words for words in result.would_change)
    lines = result.plot().get_lines()
    assert sum(len(line.get_xdata()) == 2 and line.get_color() == "grey" for line in lines) >= 3


@pytest.mark.long
def test_runs_of_one_name_and_day_are_told_apart(tmp_path: Path) -> None:
    first, second = copies(tmp_path, 2)
    trials = pd.read_parquet(second / "trials.parquet")
    trials["started_utc"] -= pd.Timedelta(hours=23)
    trials.to_parquet(second / "trials.parquet")
    (tmp_path / "other").mkdir()
    again = second.rename(tmp_path / "other" / first.name)
    table = db.pool([first, again]).compare(*KEY, workload="randwrite-qd1").components
    assert table.set_index("component")["n"]["run"] == 2


def planted(rng: np.random.Generator, runs: int) -> pd.DataFrame:
    """Blocks of runs in one region: s.d. of 3 % between runs, 5 % between disk pairs, 2 % between blocks."""
    rows = []
    for run in range(runs):
        of_run = rng.normal(0, 0.03)
        for pair in range(4):
            of_pair = of_run + rng.normal(0, 0.05)
            place = {"region": "a", "day": str(run // 4), "run": str(run), "machine": f"{run}-{pair}"}
            place["disk pair"] = place["machine"]
            values = of_pair + rng.normal(0, 0.02, 3)
            rows += [{**place, "block": block, "log_ratio": value} for block, value in enumerate(values)]
    return pd.DataFrame(rows)


def test_components_are_those_that_were_planted() -> None:
    table = pooled.components(planted(np.random.default_rng(3), 800)).set_index("component")
    assert table.loc["block", "sd_pct"] == pytest.approx(2.0, rel=0.05)
    assert table.loc["machine", "sd_pct"] == pytest.approx(5.1, rel=0.05)
    assert table.loc["run", "sd_pct"] == pytest.approx(3.0, rel=0.1)
    assert table.loc["day", "sd_pct"] < 1
    assert table.loc["disk pair", "why"].startswith("each machine has one disk pair")
    assert table.loc["region", "why"] == "all runs have one region"


def test_what_would_change_the_answer_does() -> None:
    means = [np.array([0.05 + 0.01 * run, 0.05 + 0.011 * run]) for run in range(5)]
    general = pooled.runs_like_these(means)
    left_out = pooled.leave_one_out(list("abcde"), means, pooled.runs_like_these)
    assert general.verdict == "difference" and set(left_out["verdict"]) == {"difference"}
    same, more = pooled.would_change(general, means, left_out)
    assert same.startswith("no single run decides")
    new = np.log1p(float(more.split("of ")[1].split(" %")[0]) / 100)
    assert pooled.runs_like_these([*means, np.array([new - 0.002])]).verdict == "inconclusive"
    assert pooled.runs_like_these([*means, np.array([new + 0.006])]).verdict == "difference"
