"""The record of all parsers: two readings of one result are equal."""

from __future__ import annotations

import copy
import gzip
import pickle
import re
from pathlib import Path

import pytest

from diskbook.importing import formats
from diskbook.tools import record
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


@pytest.mark.parametrize(
    ("tool", "words", "sentence"),
    [
        ("fio", "fio: engine nbd not loadable", 'fio failed with "engine nbd not loadable"'),
        ("DiskSpd", "ERROR: no such file", 'DiskSpd failed with "no such file"'),
        ("DiskSpd", 'ERROR: fio failed with "no space left"', 'DiskSpd failed with "no space left"'),
        ("fio", "fio:  ", ""),
    ],
)
def test_the_cause_is_told_once_whoever_passes_it_on(tool: str, words: str, sentence: str) -> None:
    assert record.failed_with(tool, words) == sentence


def test_the_cause_is_the_sentence_and_the_rest_a_note() -> None:
    error = record.UnusableError("x.json", "fio wrote no output", cause='fio failed with "oops"')
    assert str(error) == 'x.json: fio failed with "oops"' and error.__notes__ == ["fio wrote no output"]
    assert (
        str(record.UnusableError("x.json", "fio wrote no output", 3)) == "x.json, line 3: fio wrote no output"
    )


def test_no_message_of_several_layers_is_left() -> None:
    """A message that a layer takes from the one below it, and puts behind its own, grows by every layer."""
    folder = Path(record.__file__).parents[2]
    core = ("tools", "results", "measure/bench", "hosts", "clusters")
    parts = [*(f"diskbook/{name}" for name in core), "diskbook_emulator"]
    texts = {path: path.read_text("utf-8") for part in parts for path in (folder / part).rglob("*.py")}
    assert [path.name for path, text in texts.items() if re.search(r"says: \{|; here: \{", text)] == []
