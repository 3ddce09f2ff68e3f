"""What `diskbook import` says of results that others measured: open by the protocol, and by what."""

from __future__ import annotations

from pathlib import Path

from diskbook.analysis import protocol
from diskbook.analysis.run import analyse
from diskbook.importing import run as importer, text as import_text
from diskbook.importing.scenario import Settings
from support import SAMPLES

FIO = SAMPLES / "fio" / "json-group_reporting.json"


def made_of(tmp_path: Path, *arms: str) -> importer.Imported:
    for number, arm in enumerate(arms):
        (tmp_path / arm).mkdir()
        (tmp_path / arm / "result.json").write_bytes(FIO.read_bytes() + b"\n" * number)
    return importer.make([str(tmp_path / arm) for arm in arms], f"{tmp_path}/run", Settings())


def test_an_import_is_open_and_says_what_is_missing(tmp_path: Path) -> None:
    made = made_of(tmp_path, "a", "b")
    a = analyse(made.run)
    (item, *_) = a.protocol
    assert {1, 2, 5, 6, 7, 8, 13, 18} <= {finding.point.number for finding in item.missing}
    assert item.words.startswith("open (imported) by protocol 1: ") and "1 plan, 2 provenance" in item.words
    line = next(line for line in import_text.text(made).splitlines() if "protocol" in line)
    assert line.startswith("by protocol 1: 0 of 3 comparisons closed, 3 open (imported); all that are open")
    assert made.run.folder / protocol.FILE in import_text.write(a)


def test_an_import_of_one_arm_has_nothing_to_be_closed(tmp_path: Path) -> None:
    assert "no comparison is named, so nothing is closed or open" in import_text.text(made_of(tmp_path, "a"))
