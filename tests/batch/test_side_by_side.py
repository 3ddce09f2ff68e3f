"""Answers of many runs side by side: grouped by what was asked, each with its own interval, none pooled."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from diskbook.batch import side_by_side
from diskbook.batch.catalogue import join, layout
from diskbook.batch.side_by_side import Answers
from diskbook.facts import paths, quantities
from diskbook.report.comparing import measured
from diskbook.report.show.html import escaped
from diskbook.report.show.tables import capital
from diskbook.results.run import Run
from support import campaigns

NULL, DEFAULT = (f"profile {name}, as in westeurope" for name in ("null", "default"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    campaigns.half_done(root)
    return root


@pytest.fixture(scope="module")
def names(root: Path) -> dict[str, str]:
    return {str(root / f"zone-disks-{number}"): f"seed {number}" for number in (1, 2, 3)}


@pytest.fixture(scope="module")
def answers(names: dict[str, str]) -> Answers:
    return side_by_side.read(names)


def changed(root: Path, name: str, change: Callable[[dict], None]) -> Path:
    """A run with its manifest changed."""
    path = campaigns.finished(root, campaigns.item(9, "null"), 9)
    folder = path.rename(root / name)
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_every_run_has_its_own_ratio_with_its_interval(answers: Answers) -> None:
    assert answers.provenance == "emulated" and answers.unread == {}
    first = answers.rows[answers.rows["question"] == answers.leading[0]]
    by_run = first.set_index("label")["ratio"]
    assert by_run["seed 2"] == pytest.approx(1.1 * by_run["seed 1"], rel=1e-4)
    assert by_run["seed 3"] == pytest.approx(1.4 * by_run["seed 1"], rel=1e-4)
    assert list(first["place"]) == [
        "profile default, as in westeurope",
        *["profile null, as in westeurope"] * 2,
    ]
    shown = side_by_side.html(answers)
    assert f"{quantities.change(by_run['seed 1'])} (95 % CI" in shown and "seed 3" in shown
    assert "zone-disks: ratios of its headline comparisons (emulated)" in shown
    assert "disks like these whose nearest zone is westeurope-az2" in shown


def test_refused_ratios_have_their_reason_and_no_number() -> None:
    read = side_by_side.read({str(paths.RUNS / "sample-disk-options"): "a sample"})
    refused = read.rows[read.rows["ratio"].isna()]
    assert 0 < len(refused) < len(read.rows)
    shown = side_by_side.html(read)
    assert shown.count(">refused [") == len(refused)
    assert all(escaped(capital(why)) in shown for why in refused["warnings"])
    assert read.leading[0] not in set(refused["question"])  # the map is of the first with a ratio


def test_cells_count_runs_and_take_the_median_of_those_in_them(answers: Answers) -> None:
    first = answers.rows[answers.rows["question"] == answers.leading[0]]
    cells = side_by_side.cells(first).set_index(["place", "hour"])
    both = cells.loc[(NULL, 9)]  # begun at 9 and at 10
    alone = cells.loc[(DEFAULT, 18)]  # at 20
    ratios = first.set_index("label")["ratio"]
    assert (both["n"], alone["n"]) == (2, 1)
    assert both["ratio"] == pytest.approx((ratios["seed 1"] + ratios["seed 2"]) / 2)
    row = first.set_index("label").loc["seed 3"]
    assert alone["half_pct"] == pytest.approx(100 * (math.sqrt(row["ci_high"] / row["ci_low"]) - 1))
    assert len(cells) == 2


@pytest.mark.long
def test_the_map_says_what_is_empty_and_that_hours_are_not_played(answers: Answers) -> None:
    shown = side_by_side.mapped(answers, "night")
    assert "in 2 of 16 cells; 14 are empty" in shown
    assert (
        "The emulator plays neither regions nor times of day" in shown and "Emulated, not measured" in shown
    )


def test_a_run_that_asked_something_else_stands_in_rows_of_its_own(
    names: dict[str, str], tmp_path: Path
) -> None:
    def larger(manifest: dict) -> None:
        for load in manifest["scenario"]["workload"]:
            load["block_size"] = "8K"

    other = changed(tmp_path, "other", larger)
    read = side_by_side.read({next(iter(names)): "first", str(other): "other"})
    assert not set(read.rows.set_index("label").loc["first", "question"]) & set(
        read.rows.set_index("label").loc["other", "question"]
    )
    assert read.rows["question"].str.contains("8K").any()


def test_what_cannot_be_read_is_named_and_stops_nothing(names: dict[str, str], tmp_path: Path) -> None:
    gone, damaged = (
        tmp_path / "gone",
        changed(tmp_path, "damaged", lambda manifest: manifest.pop("created_utc")),
    )
    read = side_by_side.read({**names, str(gone): "gone", str(damaged): "damaged"})
    assert set(read.unread) == {"gone", "damaged"} and read.rows["run"].nunique() == 3
    words = side_by_side.unread(read)
    assert ("created_utc" in words and "there is no run" in words.lower()) or "unknown run" in words.lower()


def test_nothing_to_show_is_said() -> None:
    nothing = side_by_side.read({})
    assert "No run has finished" in side_by_side.html(nothing)
    assert "There is no map" in side_by_side.mapped(nothing, "night")
    assert side_by_side.unread(nothing) == "" and nothing.provenance == "" and nothing.leading == []


def test_many_answers_are_summed_up_by_place(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "MOST_ROWS", 2)
    shown = side_by_side.html(answers)
    assert "seed 1" not in shown and "Lowest" in shown and "Median" in shown


@pytest.mark.long
def test_runs_are_read_from_the_catalogue_where_it_has_them_as_they_are(tmp_path: Path) -> None:
    campaigns.half_done(tmp_path)
    folders = [tmp_path / f"zone-disks-{number}" for number in (1, 2, 3)]
    read = side_by_side.read({str(folder): folder.name for folder in folders})
    for folder in folders[:2]:
        join.join(Run(folder))
    known = measured.catalogued([Run(folder) for folder in folders])
    assert {run.name for run in known} == {"zone-disks-1", "zone-disks-2"}
    again = side_by_side.read({str(folder): folder.name for folder in folders})
    pd.testing.assert_frame_equal(again.rows, read.rows, check_dtype=False)
    layout.folder_of(tmp_path).joinpath("comparisons").rename(tmp_path / "elsewhere")
    for path in layout.folder_of(tmp_path).rglob("*.parquet"):
        path.write_bytes(b"damaged")
    assert len(side_by_side.read({str(folder): folder.name for folder in folders}).rows) == len(read.rows)
