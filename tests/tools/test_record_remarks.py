"""What readers' remarks mean: every phrase that decides something is one that a reader writes."""

from __future__ import annotations

from pathlib import Path

import pytest

import diskbook.importing
import diskbook.tools
from diskbook.tools import record
from diskbook.tools.record import CACHED

_ROOMS = (*diskbook.tools.__path__, *diskbook.importing.__path__)
SOURCES = "".join(path.read_text("utf-8") for room in _ROOMS for path in Path(room).rglob("*.py")
                  if path.name != "remarks.py")  # fmt: skip


@pytest.mark.parametrize("phrase", [*record.PACED, record.ABOUT_DEPTH, *record.DOUBTFUL])
def test_a_phrase_that_decides_is_one_that_a_reader_writes(phrase: str) -> None:
    assert phrase in SOURCES


def test_pauses_are_told_from_other_remarks() -> None:
    assert record.is_paced(["no latencies were recorded", "pauses (-j) limited the rate"])
    assert not record.is_paced(["latencies are completion latencies", CACHED])


def test_doubts_are_told_from_what_a_reader_must_only_know() -> None:
    told = ("latencies are completion latencies", CACHED, "reads are cut off and left out")
    assert record.doubtful(told) == told[1:]
