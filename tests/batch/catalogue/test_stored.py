"""The catalogue of a store: what a pushed run brings, what readers see of it, and what is never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from diskbook import cli
from diskbook.batch.catalogue import read, stored
from diskbook.batch.stores import address, lease, push
from diskbook.batch.stores.address import Address
from diskbook.batch.stores.objects import open_objects
from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from diskbook.results.run import Run
from support.few_runs import NAMES


@pytest.fixture
def store(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Address:
    """A store with two of three runs in its catalogue."""
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    place = address.parse(f"file://{tmp_path}/lab")
    for name in NAMES:
        push.push(folder / name, place)
    assert [stored.join(place, Run(folder / name)) for name in NAMES[:2]] == ["", ""]
    return place


def over(where: object) -> str:
    done = CliRunner().invoke(cli.cli, ["compare", "--scenario", "shared-zrs", "--runs", str(where)])
    assert done.exit_code == 0, done.exception
    return done.stdout


def changed(run: Path) -> None:
    path = run / "comparisons.csv"
    path.write_text(path.read_text().replace(",difference,", ",equivalent within 5 %,"))


@pytest.mark.long
def test_a_store_is_read_as_its_folder_is(store: Address, folder: Path) -> None:
    assert sorted(read.view(str(store)).entries) == list(NAMES[:2])
    assert over(store) == over(folder)
    assert set(read.runs(str(store))["run"]) == set(NAMES)
    with pytest.raises(UsageError, match="'diskbook fetch'"):
        read.view(str(store)).frame("bins")


@pytest.mark.long
def test_a_newer_state_is_read_from_the_run_until_it_joins(store: Address, folder: Path) -> None:
    changed(folder / NAMES[0])
    push.push(folder / NAMES[0], store)
    seen = read.view(str(store))
    assert seen.others == [NAMES[0], NAMES[2]] and over(store) == over(folder)
    assert stored.join(store, Run(folder / NAMES[0])) == ""
    assert read.view(str(store)).others == [NAMES[2]] and over(store) == over(folder)


def test_a_folder_that_is_not_what_is_stored_does_not_join(store: Address, folder: Path) -> None:
    changed(folder / NAMES[2])
    assert stored.join(store, Run(folder / NAMES[2])) == ""
    assert read.view(str(store)).others == [NAMES[2]]


@pytest.mark.long
def test_a_run_that_is_worked_on_is_read_as_it_was_whole(store: Address, folder: Path) -> None:
    lease.claim(open_objects(store / NAMES[1]), 60.0)
    assert NAMES[1] in read.view(str(store)).others and over(store) == over(folder)


@pytest.mark.long
def test_catalog_brings_all_whole_runs_in_and_mends(store: Address, folder: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "lab" / ".catalogue").rglob("*.parquet"):
        path.write_bytes(b"nothing")
    assert "is damaged" in read.view(str(store)).note and over(store) == over(folder)
    done = CliRunner().invoke(cli.cli, ["catalog", str(store), "--json"], catch_exceptions=False)
    made = json.loads(done.stdout)
    assert (made["n_runs"], made["left_out"]) == (3, [])
    assert read.view(str(store)).note == "" and read.view(str(store)).others == []
