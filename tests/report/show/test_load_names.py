"""No two loads of a scenario read alike."""

from __future__ import annotations

from typing import Any

from diskbook.design.model import Workload
from diskbook.report.show import sentences


def _loads(**by_name: Any) -> list[Workload]:
    return [Workload(name=name, block_size="4K", write_pct=0, **keys) for name, keys in by_name.items()]


def _apart(loads: list[Workload]) -> list[str]:
    return list(sentences.apart({item.name: "4K random read, depth 8" for item in loads}, loads).values())


def test_a_load_alone_keeps_its_words() -> None:
    assert _apart(_loads(a={})) == ["4K random read, depth 8"]


def test_what_differs_tells_loads_apart() -> None:
    loads = _loads(a={"threads": 8}, b={"queue_depth": 8})
    assert _apart(loads) == ["4K random read, depth 8, 8 threads", "4K random read, depth 8, 1 thread"]
    sizes = _loads(a={"working_set_gib": 100}, b={"working_set_gib": 0.5})
    assert _apart(sizes) == ["4K random read, depth 8, of 100 GiB", "4K random read, depth 8, of 512 MiB"]


def test_where_no_fact_differs_the_names_do() -> None:
    loads = _loads(first={"threads": 8}, second={"threads": 8}, third={"threads": 2})
    assert _apart(loads) == [
        "4K random read, depth 8, 8 threads, first",
        "4K random read, depth 8, 8 threads, second",
        "4K random read, depth 8, 2 threads",
    ]
