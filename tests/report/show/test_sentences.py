"""Loads in words: write-through is said of what is written, not of what is read."""

from __future__ import annotations

import pytest

from diskbook.design.model import Workload
from diskbook.report.show import sentences


@pytest.mark.parametrize(("write_pct", "words"), [(0, "read"), (100, "write-through write")])
def test_a_read_has_nothing_to_write_through(write_pct: int, words: str) -> None:
    item = Workload.model_validate(
        {"name": "w", "block_size": "4K", "write_pct": write_pct, "sync": "dsync", "threads": 8}
    )
    assert sentences.load_words(item) == f"{words} latency at queue depth 8"
