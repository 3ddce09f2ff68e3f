"""Time since the attach, from ledgers: of runs that name the replicate of an attach, and of others."""

from __future__ import annotations

from typing import Any

import pytest

from diskbook.results import attached

Event = dict[str, Any]


def at(second: float) -> str:
    return f"2026-11-22T08:{int(second) // 60:02d}:{second % 60:06.3f}+00:00"


def attach(second: float, machine: str = "vm1", disk: str = "zrs", replicate: int | None = None) -> Event:
    named = {} if replicate is None else {"replicate": replicate}
    return {"event": "attached", "time_utc": at(second), "disk": disk, "machine": machine, **named}


def trial(begin: float, replicate: int = 1, machine: str = "vm1", disk: str = "zrs") -> Event:
    name = f"r{replicate}-{begin:g}"
    where = {"disk": disk, "machine": machine, "arm": "a", "replicate": replicate}
    times = {"started_utc": at(begin), "ended_utc": at(begin + 10)}
    return {"event": "trial", "trial": name, "block": 1, **where, **times}


def block(status: str, replicate: int = 1) -> Event:
    return {"event": "block", "replicate": replicate, "block": 1, "status": status}


def created(second: float, replicate: int = 1) -> Event:
    target = f"r{replicate}-zrs"
    return {"event": "operation", "name": "create disk", "target": target, "time_utc": at(second)}


MANIFEST = {
    "replicates": [{"replicate": n, "disks": {"zrs": {"id": f"/x/disks/r{n}-zrs"}}} for n in (1, 2)],
    "scenario": {
        "arm": [{"name": "a", "volume": "v"}],
        "volume": [{"name": "v", "disk": "zrs", "cluster": "c"}],
        "cluster": [{"name": "c", "nodes": ["vm1", "vm2"]}],
        "disk": [{"name": "zrs", "count": 2}],
    },
}


def test_the_last_attach_on_that_machine_counts_and_all_of_the_block() -> None:
    events = [
        created(0), attach(5, replicate=1), block("begun"), attach(10, replicate=1), trial(12),
        attach(30, "vm2", replicate=1), trial(31, machine="vm2"), attach(50, replicate=1), trial(58),
        block("complete"), attach(80, replicate=1), block("begun"), trial(90),
    ]  # fmt: skip
    rows = attached.by_trial(MANIFEST, events)
    since = [row["since_attach_s"] for row in rows.values()]
    assert since == [pytest.approx(2), pytest.approx(1), pytest.approx(8), pytest.approx(10)]
    assert [row["attaches_in_block"] for row in rows.values()] == [3, 3, 3, 0]
    assert [row["since_create_s"] for row in rows.values()] == [12, 31, 58, 90]


def test_replicates_side_by_side_that_older_runs_do_not_name() -> None:
    """The second replicate measures from 11 to 21 s: the attach at 15 s is the first one's."""
    events = [attach(10), trial(11, 2), attach(15), trial(16, 1), attach(40), trial(41, 2), trial(41.5, 1)]
    rows = attached.by_trial(MANIFEST, events)
    since = {name: row["since_attach_s"] for name, row in rows.items()}
    assert since == {
        "r2-11": pytest.approx(1), "r1-16": pytest.approx(1), "r2-41": pytest.approx(1), "r1-41.5": 26.5,
    }  # fmt: skip


def test_of_a_volume_the_last_disk_of_its_pool_counts() -> None:
    events = [
        *(attach(3 + n, node, f"zrs-{node}-{n}") for node in ("vm1", "vm2") for n in (1, 2)),
        {**trial(20), "volume": "v", "disk": ""},
        {**trial(40, 2), "volume": "v", "disk": ""},
    ]
    rows = attached.by_trial(MANIFEST, events)
    assert [row["since_attach_s"] for row in rows.values()] == [pytest.approx(15), pytest.approx(35)]
    assert [row["attaches_in_block"] for row in rows.values()] == [0, 0]


def test_where_nothing_is_attached_nothing_is_known() -> None:
    (row,) = attached.by_trial(MANIFEST, [trial(5)]).values()
    assert set(row.values()) == {None}
