"""The loop: what starts when, what ends it, and what it ends with; runs are played."""

from __future__ import annotations

import os
import signal
import time

import pytest

from diskbook.batch import loop
from diskbook.batch.batch_run import Item
from diskbook.batch.dask_engine import DaskEngine
from diskbook.batch.engine import Ending, EngineLostError
from diskbook.batch.local import LocalEngine
from diskbook.batch.loop import Batch, Row
from diskbook.batch.process import HELD, LOST
from diskbook.batch.status import Standing, State
from diskbook.facts.errors import DiskbookError
from support.batches import Looks, Played, an_item, items, priced


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "POLL_S", 0.0)


def play(
    engine: Played, asked: list[Item], limit: float | None = None, price: object = None
) -> tuple[Batch, list[str]]:
    batch = Batch(asked, engine, limit, price or priced(), engine)  # type: ignore[arg-type]
    events: list[str] = []
    batch.run(lambda event, row: events.append(f"{event} {asked.index(row.item)}") if event else None)
    return batch, events


def states(batch: Batch) -> list[str]:
    return [row.state for row in batch.rows]


def test_all_runs_are_run_as_many_at_once_as_there_is_room() -> None:
    engine = Played(room=2)
    batch, events = play(engine, items(4))
    assert batch.exit_code == 0 and states(batch) == ["finished"] * 4
    assert engine.most == 2
    assert events[:4] == ["starts 0", "starts 1", "finished 0", "finished 1"]
    assert engine.starts[0][1] is None  # no limit, so none for a run


def test_what_is_finished_is_not_repeated_and_what_was_cut_is_gone_on_with() -> None:
    engine, asked = Played(), items(3)
    engine.states = {
        asked[0].name: Standing(State.FINISHED, 0, 1.0, True),
        asked[1].name: Standing(State.CUT, 1, 1.0, True),
    }
    batch, events = play(engine, asked)
    assert [event for event in events if "finished" not in event] == ["goes on 1", "starts 2"]
    assert batch.exit_code == 0 and batch.purse.spent == 3.0


def test_a_failing_run_stops_no_other() -> None:
    asked = items(4)
    engine = Played(lambda item, times: Ending(int(item is asked[1]), "its disk broke"))
    batch, _ = play(engine, asked)
    assert states(batch) == ["finished", "failed", "finished", "finished"]
    assert batch.exit_code == 1 and batch.rows[1].reason == "its disk broke"


def test_a_reason_that_will_repeat_stops_its_like_alone() -> None:
    asked = [*items(3), an_item(scenario="first-run")]
    refused = {item.name for item in asked[:3]}
    engine = Played(lambda item, times: Ending(int(item.name in refused), "no quota"), room=1, created=False)
    batch, _ = play(engine, asked)
    assert states(batch) == ["failed", "not tried", "not tried", "finished"]
    assert batch.exit_code == 1
    assert batch.rows[1].reason == f"it would fail as {asked[0].name} did: no quota"
    assert len(engine.starts) == 2


def test_one_limit_holds_for_all_and_lets_what_is_cheap_enough_pass() -> None:
    asked = items(4)
    dear = {asked[1].name: 50.0}
    engine = Played(room=4, spent=3.0)
    batch, _ = play(engine, asked, 7.0, priced(3.0, dear))
    # Two at 3 each fit beside one another; they cost 3 each, and 1 is left.
    assert states(batch) == ["finished", "over limit", "finished", "over limit"]
    assert engine.most == 2 and batch.purse.spent == 6.0
    assert batch.exit_code == 3
    assert "it may take 3.00 USD, and of the limit of 7 USD 1.00 are left" in batch.rows[3].reason
    assert engine.starts[0][1] == 3.0


def test_what_was_not_needed_of_a_reservation_serves_the_next() -> None:
    engine = Played(room=4, spent=0.5)
    batch, _ = play(engine, items(4), 4.0, priced(3.0))
    assert engine.most == 1
    assert states(batch) == ["finished", "finished", "finished", "over limit"]
    assert batch.purse.spent == 1.5


def test_a_run_that_is_gone_on_with_may_cost_what_it_has_cost_as_well() -> None:
    engine, asked = Played(), items(1)
    engine.states = {asked[0].name: Standing(State.CUT, 1, 0.5, True, 2.0)}
    play(engine, asked, 20.0, priced(3.0))
    assert engine.starts == [(asked[0].name, 3.0 + 2.0 * 1.5)]


def test_a_killed_run_is_gone_on_with_once() -> None:
    asked = items(2)
    engine = Played(lambda item, times: Ending(-9 if item is asked[0] or times == 1 else 0), room=1)
    batch, events = play(engine, asked)
    assert states(batch) == ["failed", "finished"]
    assert [name for name, _ in engine.starts] == [
        item.name for item in (asked[0], asked[0], asked[1], asked[1])
    ]
    assert batch.rows[0].reason == "it was ended by SIGKILL"
    assert "killed 0" in events and "goes on 0" in events


@pytest.mark.parametrize(("kind", "starts"), [(LocalEngine, 2), (DaskEngine, 4)])
def test_an_engine_starts_a_run_so_often_that_is_killed_each_time(
    kind: type[LocalEngine | DaskEngine], starts: int
) -> None:
    engine = Played(lambda item, times: Ending(LOST))
    engine.most_kills = kind.most_kills
    batch, _ = play(engine, items(1))
    assert len(engine.starts) == starts and states(batch) == ["failed"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_what_runs_and_starts_nothing_more(number: signal.Signals) -> None:
    asked, before = items(4), signal.getsignal(number)
    engine = Played(room=2)
    batch = Batch(asked, engine, None, priced(), engine)

    def tell(event: str, row: Row) -> None:
        if event == "starts" and row.item is asked[1]:
            os.kill(os.getpid(), number)
            time.sleep(0.01)

    engine._endings = lambda item, times: Ending(143)
    batch.run(tell)
    assert batch.stopped == number and batch.exit_code == 3
    assert sorted(engine.stops) == sorted(item.name for item in asked[:2])  # each once
    assert states(batch) == ["cut short", "cut short", "waiting", "waiting"]
    assert signal.getsignal(number) is before


def test_a_folder_that_cannot_be_read_is_that_runs_failure() -> None:
    engine, asked = Played(), items(2)

    def look(item: Item) -> Standing:
        if item is asked[0]:
            raise DiskbookError("it is damaged")
        return engine.look(item)

    batch = Batch(asked, engine, None, priced(), Looks(look))
    batch.run(lambda event, row: None)
    assert states(batch) == ["failed", "finished"] and batch.exit_code == 1


def test_a_run_that_ends_well_without_a_report_has_failed() -> None:
    engine, asked = Played(), items(1)
    batch = Batch(asked, engine, None, priced(), Looks(lambda item: Standing(State.CUT, 0, 0.0, True)))
    batch.run(lambda event, row: None)
    assert states(batch) == ["failed"]


def test_the_time_left_learns_from_runs_that_finished() -> None:
    engine = Played()
    batch = Batch(items(3), engine, None, priced(), engine)
    assert batch.left_s == 30.0
    batch.rows[0].state, batch.rows[0].seconds = "finished", 20.0
    assert batch.left_s == 40.0


def test_a_run_that_another_works_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "HELD_S", 0.05)
    monkeypatch.setattr(loop, "RESCAN_S", 0.01)
    engine = Played(lambda item, times: Ending(HELD, "b works on it") if times < 3 else Ending(0))
    batch, events = play(engine, items(1), 10.0)
    assert events == ["starts 0", "waits 0", "goes on 0", "waits 0", "goes on 0", "finished 0"]
    assert batch.exit_code == 0 and batch.rows[0].kills == 0


def test_a_run_whose_place_was_lost_when_all_was_done_is_finished() -> None:
    engine = Played(lambda item, times: Ending(LOST, "its place was lost"))
    shelf = Looks(lambda item: Standing(State.FINISHED if engine.starts else State.NEW, 0, 1.0, True))
    batch = Batch(items(1), engine, None, priced(), shelf)
    batch.run(lambda event, row: None)
    assert states(batch) == ["finished"]


def test_an_engine_that_is_lost_leaves_its_runs_cut_short() -> None:
    engine = Played()

    def gone(item: Item, times: int) -> Ending:
        raise EngineLostError("it is gone")

    engine._endings = gone
    batch = Batch(items(3), engine, None, priced(), engine)
    with pytest.raises(EngineLostError):
        batch.run(lambda event, row: None)
    assert states(batch) == ["cut short", "cut short", "waiting"] and batch.exit_code == 3
