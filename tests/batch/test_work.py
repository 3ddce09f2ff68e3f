"""One item in a process: how it begins, and what it takes over from one that was killed."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from diskbook.base.errors import DiskbookError
from diskbook.batch import work
from diskbook.runs import begin
from diskbook.store import run as runs, session
from support.batches import TINY


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
    with pytest.raises(DiskbookError, match=r"is no run, and holds thesis\.docx; move it away"):
        work._drop_unbegun(other)


def test_it_waits_for_a_process_that_tears_the_run_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_POLL_S", 0.01)
    run, ended = begin.begin("busy", TINY), []

    def tear_down() -> None:
        with session.session(run):
            time.sleep(0.2)
            ended.append(True)

    thread = threading.Thread(target=tear_down)
    thread.start()
    while not session.is_worked_on(run):
        time.sleep(0.01)
    work._wait_for_others(run)
    assert ended
    thread.join()
    monkeypatch.setattr(work, "PATIENCE_S", 0.0)
    with session.session(run), pytest.raises(DiskbookError, match="worked on by another process"):
        work._wait_for_others(run)
