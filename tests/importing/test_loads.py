"""Names of imported loads: two that differ in anything are two, and read so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from diskbook.importing import scenario
from diskbook.tools.record import CACHED, Load


def _names(*changes: dict[str, Any]) -> list[str]:
    entries = [_entry(**change) for change in changes]
    scenario.name_workloads(entries)
    return [entry.workload["name"] for entry in entries]


def _entry(
    size: float = 1.0, flags: tuple[str, ...] = (), word: str = "", options: dict[str, str] | None = None
) -> Any:
    keys = {"pattern": "random", "block_size": 4096, "write_pct": 0, "threads": 1, "queue_depth": 1}
    return SimpleNamespace(
        workload={**keys, "working_set_gib": size},
        measurement=SimpleNamespace(load=Load(queue_depth=1), flags=flags, options=options or {}),
        arm="a",
        tool="fio",
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


def test_what_differs_tells_loads_of_one_name_apart() -> None:
    assert _names({"word": "a"}, {"word": "b"}) == ["randread-4k-qd1-a", "randread-4k-qd1-b"]


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        (({"max_open_zones": "3"}, {"max_open_zones": "14"}), ("max-open-zones-3", "max-open-zones-14")),
        (({"ioengine": "libaio"}, {"ioengine": "io_uring"}), ("ioengine-libaio", "ioengine-io-uring")),
        (({"bs": "512"}, {"bs": "11"}), ("bs-512", "bs-11")),
        (({"bs": "4k", "direct": "1"}, {"bs": "4096", "direct": "0"}), ("direct-1", "no-direct")),
        (({"bs": "4K", "verify": "0"}, {"blocksize": "4096"}), ("", "")),
        (({"write_lat_log": "a", "randseed": "1"}, {"write_lat_log": "b", "runtime": "9"}), ("", "")),
        (({}, {"ioengine": "libaio"}), ("", "")),
    ],
)
def test_an_option_that_differs_is_no_repeat(
    options: tuple[dict[str, str], dict[str, str]], ends: tuple[str, str]
) -> None:
    told = [("randread-4k-qd1-" + end).rstrip("-") for end in ends]
    assert _names(*({"options": {"rw": "randread", **item}} if item else {} for item in options)) == told
