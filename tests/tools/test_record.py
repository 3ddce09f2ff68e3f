"""The record of all parsers: two readings of one result are equal."""

from __future__ import annotations

import copy
import gzip
import pickle
from pathlib import Path

import pytest

from diskbook.tools import formats
from support import SAMPLES


def results() -> list[Path]:
    """One result of each format and more, with and without latencies and series."""
    names = (
        *("fio/jsonplus-3jobs.json", "fio/json-gtod_reduce.json", "fio-2.16/jsonplus.json.gz"),
        *("fio-terse/v2.txt", "fio-terse/v5.txt", "fio-text/v2.txt", "fio-text/v3.txt"),
        *("diskspd/v2.1-rand-w30-L-D.xml", "diskspd/v2.2-readonly-noL.xml", "diskspd/v2.1-rand-w30-L-D.txt"),
        *("pkb/fio.json", "pkb/diskspd.json", "vmfleet/result.tsv"),
    )
    return [SAMPLES / name for name in names]


@pytest.mark.parametrize("path", results(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_two_readings_and_copies_of_a_result_are_equal(path: Path) -> None:
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    first = formats.parse(content, "x")
    assert first == formats.parse(content, "x")
    assert first == copy.deepcopy(first) == pickle.loads(pickle.dumps(first))
