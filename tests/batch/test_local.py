"""Processes of a batch on this machine: how many at once, how they end, and what the batch itself takes.

That none outlives a batch which is killed is shown by `tests/whole/test_batch.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from diskbook.batch.local import LocalEngine, LocalTask
from diskbook.batch.loop import Batch
from diskbook.batch.stores import address, fetch
from support import played_run
from support.batches import an_item, items, priced
from support.emulated import soon
from support.stores import contents

pytestmark = pytest.mark.emulator

WAITS = ("-c", "import time; print('waiting', flush=True); time.sleep(600)")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalEngine]:
    monkeypatch.setattr(LocalEngine, "program", WAITS)
    engine = LocalEngine(tmp_path, jobs=3, cores=4)
    yield engine
    for task in engine._tasks:
        task.stop()
        assert soon(lambda task=task: task.ending() is not None)


def test_emulated_runs_share_the_cores_and_runs_on_azure_take_none(engine: LocalEngine) -> None:
    emulated, on_azure = items(3), items(3, cloud="azure")
    engine.start(emulated[0], None)
    assert engine.has_room(emulated[1])
    engine.start(emulated[1], None)
    assert not engine.has_room(emulated[2]) and engine.has_room(on_azure[0])
    third = engine.start(on_azure[0], None)
    assert not engine.has_room(on_azure[1])  # jobs
    third.stop()
    assert soon(lambda: third.ending() is not None)
    assert engine.has_room(on_azure[1])


def test_a_run_on_own_hosts_is_alone_with_the_cores(engine: LocalEngine) -> None:
    own = an_item(cloud="inventory", scenario="local-disk")
    engine.start(own, None)
    assert not engine.has_room(an_item()) and engine.has_room(an_item(cloud="azure"))


def ended(engine: LocalEngine, program: str) -> tuple[int, str]:
    engine.program = ("-c", program)  # type: ignore[misc]
    task = engine.start(an_item(), 2.5)
    assert soon(lambda: task.ending() is not None)
    ending = task.ending()
    assert ending is not None
    return ending.status, ending.words


def test_an_ending_has_the_status_and_the_last_words(engine: LocalEngine) -> None:
    assert ended(engine, "import sys; print('1'); print('no room'); sys.exit(1)") == (1, "no room")
    program = "import json, sys; print(json.loads(sys.argv[1])['limit_usd'])"
    assert ended(engine, program) == (0, "2.5")


def test_a_task_that_has_ended_can_be_stopped(engine: LocalEngine) -> None:
    engine.program = ("-c", "")  # type: ignore[misc]
    task: LocalTask = engine.start(an_item(), None)
    assert soon(lambda: task.ending() is not None)
    task.stop()


def test_a_run_that_is_ended_during_its_upload_goes_on(
    tmp_path: Path, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    store, item = address.parse(f"file://{tmp_path}/store"), an_item()
    engine = LocalEngine(tmp_path, store=str(store))
    engine.program = ("-P", played_run.__file__)  # type: ignore[misc]
    batch, events = Batch([item], engine, None, priced()), list[str]()
    batch.run(lambda event, row: events.append(f"{event}: {row.reason}") if event else None)
    end = "it was ended by SIGTERM"
    assert events == ["starts: ", f"killed: {end}", f"goes on: {end}", "finished: "]
    stored = fetch.cached(store / item.name)
    assert contents(stored) == contents(tmp_path / item.name)
