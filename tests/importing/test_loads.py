"""Names of imported loads: two that differ in anything are two, and read so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from diskbook.importing import scenario
from diskbook.tools.record import CACHED, Load


def _names(*changes: dict[str, Any]) -> list[str]:
    entries = [_entry(**change) for change in changes]
    scenario.name_workloads(entries)
    return [entry.workload["name"] for entry in entries]


def _entry(size: float = 1.0, flags: tuple[str, ...] = (), word: str = "") -> Any:
    keys = {"pattern": "random", "block_size": 4096, "write_pct": 0, "threads": 1, "queue_depth": 1}
    return SimpleNamespace(
        workload={**keys, "working_set_gib": size},
        measurement=SimpleNamespace(load=Load(queue_depth=1), flags=flags),
        meaning=SimpleNamespace(load=word),
    )


def test_the_size_of_a_target_tells_loads_apart() -> None:
    assert _names({"size": 100.0}, {"size": 0.5}, {"size": 100.0}) == [
        "randread-4k-qd1-100g",
        "randread-4k-qd1-512m",
        "randread-4k-qd1-100g",
    ]


def test_a_load_through_the_file_cache_says_so() -> None:
    assert _names({}, {"flags": (CACHED,)}) == ["randread-4k-qd1", "randread-4k-qd1-cached"]


def test_what_has_no_words_gets_a_number() -> None:
    assert _names({"word": "a"}, {"word": "b"}) == ["randread-4k-qd1", "randread-4k-qd1-2"]
