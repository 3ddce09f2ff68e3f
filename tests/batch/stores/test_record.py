"""The log of a run: who may write it, and what a stranger may make it say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from diskbook.batch.stores import record as records
from diskbook.batch.stores.record import Entry, Record, State
from diskbook.facts.errors import DiskbookError

WHERE = "file:///store/run/log/1"


def record(state: State, kind: Any, token: int = 1, **fields: Any) -> Record:
    number, previous = state.number + 1, state.digest
    fields = {"number": number, "previous": previous, **fields}
    return Record(token=token, owner=f"o{token}", time_utc="t", kind=kind, **fields)


def add(state: State, kind: Any, token: int = 1, **fields: Any) -> None:
    made = record(state, kind, token, **fields)
    state.add(made, made.content(), WHERE)


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "a/../../x", "keys/id", ".ssh/x", "a/.b", "a\\b", "a//b", "a\nb", "", "."]
)
def test_a_record_names_no_file_outside_of_the_run(path: str) -> None:
    document = json.loads(record(State(), "claim").content())
    document |= {"files": {path: Entry.of(b"").model_dump()}}
    with pytest.raises(DiskbookError, match="no run has"):
        records.read(json.dumps(document).encode(), WHERE)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"schema": 2}', b"\xff\xfe"])
def test_a_damaged_record_is_said_to_be(content: bytes) -> None:
    with pytest.raises(DiskbookError, match=f"{WHERE} is damaged"):
        records.read(content, WHERE)


def test_a_state_follows_from_its_records() -> None:
    state = State()
    add(state, "claim")
    add(state, "state", files={"raw/a.gz": Entry.of(b"a")}, ledger="1\n")
    add(state, "state", ledger_start=2, ledger="2\n")
    assert (state.tail, state.ledger_size(), state.complete) == ("1\n2\n", 4, None)
    add(state, "complete", files={"raw/a.gz": Entry.of(b"a"), records.LEDGER: Entry.of(b"1\n2\n")})
    assert (state.holder, state.tail, state.ledger_size()) == ("", "", 4)
    add(state, "claim", token=2)
    add(state, "state", token=2, ledger_start=4, ledger="3\n")
    assert state.complete is not None and state.complete.number == 4


def test_records_of_one_who_lost_the_run_are_noticed() -> None:
    state = State()
    add(state, "claim")
    add(state, "claim", token=2)
    with pytest.raises(DiskbookError, match="did not own"):
        add(state, "state", token=1)
    add(state, "release", token=2)
    with pytest.raises(DiskbookError, match="did not own"):
        add(state, "state", token=2)


@pytest.mark.parametrize("change", [{"number": 3}, {"previous": "0" * 64}, {"number": 1}])
def test_a_gap_or_a_changed_record_is_noticed(change: dict[str, Any]) -> None:
    state = State()
    add(state, "claim")
    with pytest.raises(DiskbookError, match="does not follow"):
        add(state, "state", **change)


def test_the_ledger_only_grows() -> None:
    state = State()
    add(state, "claim")
    add(state, "state", ledger="1\n")
    with pytest.raises(DiskbookError, match="where the ledger ended"):
        add(state, "state", ledger_start=0, ledger="X\n")
