"""One item in a process: how it begins, and what it takes over from one that was killed."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from diskbook.batch import stored, work
from diskbook.batch.batch_run import Asked
from diskbook.batch.order import Order
from diskbook.batch.process import HELD, LOST
from diskbook.batch.stores import address, lease, push
from diskbook.batch.stores.contents import Folder
from diskbook.batch.stores.objects import open_objects
from diskbook.batch.stores.sync import Keeper
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import begin
from diskbook.results import run as runs, session
from diskbook.results.run import Run
from support.batches import TINY

LEASE_S = 3.0
"""Short, and long enough for a busy machine to show a sign of life."""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))


def test_a_folder_of_a_run_that_was_killed_while_it_began_is_made_anew() -> None:
    empty = runs.create("empty").folder
    (empty / ".manifest.json.x1").write_text("{")
    work._drop_unbegun(empty)
    assert not empty.exists()
    unplanned = begin.begin("unplanned", TINY)
    (unplanned.folder / "ledger.jsonl").write_text("")
    work._drop_unbegun(unplanned.folder)
    assert not unplanned.folder.exists()
    work._drop_unbegun(unplanned.folder)


def test_a_run_that_has_begun_or_anything_else_stays() -> None:
    run = begin.begin("begun", TINY)
    work._drop_unbegun(run.folder)
    assert run.folder.exists()
    other = runs.folder_of("other")
    other.mkdir()
    (other / "thesis.docx").write_text("mine")
    with pytest.raises(DiskbookError, match=r"is not a run, and holds thesis\.docx; move it away"):
        work._drop_unbegun(other)


def test_it_waits_for_a_process_that_tears_the_run_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_POLL_S", 0.01)
    run, began, looked, looks = begin.begin("busy", TINY), threading.Event(), threading.Event(), []
    is_worked_on = session.is_worked_on

    def tear_down() -> None:
        with session.session(run):
            began.set()
            looked.wait(60)

    def look(run: Run) -> bool:
        looks.append(is_worked_on(run))
        looked.set()
        return looks[-1]

    monkeypatch.setattr(session, "is_worked_on", look)
    thread = threading.Thread(target=tear_down)
    thread.start()
    assert began.wait(60)
    work._wait_for_others(run)
    assert looks[0] and not looks[-1]
    thread.join()
    monkeypatch.setattr(work, "PATIENCE_S", 0.0)
    with session.session(run), pytest.raises(DiskbookError, match="worked on by another process"):
        work._wait_for_others(run)


def test_a_start_that_was_begun_before_ends_at_once_and_a_run_of_another_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    store = address.parse(f"file://{tmp_path}/store")
    run = begin.begin("mine", TINY)
    run.append(work.START, start="one")
    hold = lease.claim(open_objects(store / "mine"), LEASE_S)
    push.store_all(hold, Folder(run.folder))
    order = Order("mine", Asked(TINY), None, "one", str(store), True, LEASE_S)
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "b"))
    assert work.main(order.text) == LOST
    assert "its place was lost in the middle" in capfd.readouterr().out

    keeper = Keeper(hold, Folder(run.folder), lambda error: None)
    thread = threading.Thread(target=keeper.loop)
    thread.start()
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "c"))
    assert work.main(replace(order, start="two").text) == HELD
    assert "is being worked on by" in capfd.readouterr().out
    keeper.stop()
    thread.join()


def test_a_folder_kept_for_a_store_is_brought_as_far_as_the_store_and_never_back(tmp_path: Path) -> None:
    place = address.parse(f"file://{tmp_path}/store") / "mine"
    run = begin.begin("mine", TINY)
    assert not stored.bring(place, run.folder).number
    push.push(run.folder, place.parent, whole=False)
    run.update_manifest(kept=False)  # not stored yet
    stored.bring(place, run.folder)
    assert run.manifest["kept"] is False
    other = Run(tmp_path / "b" / "mine")
    stored.bring(place, other.folder)
    other.append("batch", start="two")
    push.push(other.folder, place.parent, whole=False)
    run.append("batch", start="one")  # nobody will ever store this
    stored.bring(place, run.folder)
    assert run.ledger() == other.ledger()
