"""What made writes durable: only what is known to have reached the device counts."""

from __future__ import annotations

import pandas as pd
import pytest

from diskbook.design import schema, totals


@pytest.mark.parametrize(
    ("sync", "engine", "write_cache", "expected"),
    [
        (None, "libaio", "write back", ""),
        ("fdatasync", "nbd", None, "flushed"),
        ("dsync", "nbd", None, "plain"),  # fio's nbd engine sends no FUA
        ("fdatasync", "libaio", "write back", "flushed"),
        ("fdatasync", "io_uring", "write through", "plain"),
        ("dsync", "libaio", "write back", "written-through"),
        ("dsync", "libaio", "write through", "plain"),
        ("dsync", "libaio", None, "unknown"),
        ("fdatasync", None, "write back", "unknown"),  # of older runs
        ("dsync", None, "off", "unknown"),  # Windows
    ],
)
def test_durability(sync: str | None, engine: str | None, write_cache: str | None, expected: str) -> None:
    assert totals.durability(sync, engine, write_cache) == expected
    assert expected in schema.DURABILITIES


def test_a_cell_is_plain_only_where_all_its_trials_were() -> None:
    rows = [("a", "commit", "1", "plain"), ("a", "commit", "2", "flushed"), ("b", "commit", "3", "plain")]
    trials = pd.DataFrame(rows, columns=["arm", "workload", "trial", "durability"]).assign(status="ok")
    guest = pd.DataFrame({"trial": ["3"], "ioengine": ["libaio"]})
    assert totals.plain_cells(trials, guest) == {("b", "commit"): "libaio"}
    assert totals.plain_cells(trials.drop(columns="durability"), guest) == {}
    words = totals.plain_words("fdatasync", "libaio")
    assert words == "plain write (the device reports write-through, so Linux sends no flush)"
