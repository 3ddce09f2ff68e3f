"""Runs of a batch that are in a store, as the batch sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.batch import run_lookup
from diskbook.batch.batch_run import Item
from diskbook.batch.run_lookup import Stored
from diskbook.batch.status import State
from diskbook.batch.stores import address, push
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import begin
from diskbook.results.run import Run
from support.batches import TINY, an_item


@pytest.fixture
def item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Item:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    return an_item()


@pytest.fixture
def shelf(tmp_path: Path) -> Stored:
    return Stored(address.parse(f"file://{tmp_path}/store"), tmp_path / "batch-x" / "runs")


def measured(item: Item) -> Run:
    """A run of which all is measured."""
    run = begin.begin(item.name, TINY)
    run.write_raw("r1-b01.json", b"{}")
    run.append("stage", stage="benchmark")
    run.write("report.html", "<p>")
    return run


def test_a_run_is_new_then_cut_short_then_finished_by_what_is_stored(item: Item, shelf: Stored) -> None:
    assert shelf.look(item).state == State.NEW and not shelf.folder.exists()
    run = measured(item)
    push.push(run.folder, shelf.store, whole=False)
    assert shelf.look(item).state == State.CUT  # nobody has said that it is whole
    push.push(run.folder, shelf.store)
    assert shelf.look(item).state == State.FINISHED
    here = shelf.run_of(item).folder
    assert run_lookup.report_of(shelf.run_of(item)).read_text() == "<p>" and not (here / "raw").exists()
    run.update_manifest(resource_groups=[{"name": "g", "deleted_utc": None, "expires_utc": None}])
    push.push(run.folder, shelf.store)
    assert shelf.look(item).left == "not torn down"


def test_what_is_damaged_is_that_runs_failure_alone(item: Item, shelf: Stored) -> None:
    push.push(measured(item).folder, shelf.store)
    other = an_item(design__seed=2)
    Path(shelf.store.path, other.name, "log").mkdir(parents=True)
    Path(shelf.store.path, other.name, "log", "00000001.json").write_text("{}")
    good, bad = run_lookup.looks(shelf, [item, other])
    assert not isinstance(good, DiskbookError) and good.state == State.FINISHED
    assert isinstance(bad, DiskbookError) and "is damaged" in str(bad)
