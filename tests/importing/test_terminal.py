"""What `diskbook import` says of results that others measured: open by the protocol, and by what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diskbook.importing import run as importer, terminal as import_text
from diskbook.importing.scenario import Settings
from diskbook.report.analysis import protocol
from diskbook.report.analysis.run import analyse
from support import SAMPLES

FIO = SAMPLES / "fio" / "json-group_reporting.json"


def made_of(tmp_path: Path, *arms: str) -> importer.Imported:
    for number, arm in enumerate(arms):
        (tmp_path / arm).mkdir()
        (tmp_path / arm / "result.json").write_bytes(FIO.read_bytes() + b"\n" * number)
    return importer.make([str(tmp_path / arm) for arm in arms], f"{tmp_path}/run", Settings())


@pytest.mark.long
def test_an_import_is_open_and_says_what_is_missing(tmp_path: Path) -> None:
    made = made_of(tmp_path, "a", "b")
    a = analyse(made.run)
    (item, *_) = a.protocol
    assert {1, 2, 5, 6, 7, 8, 13, 18} <= {finding.point.number for finding in item.missing}
    assert item.words.startswith("open (imported) by protocol 1: ") and "1 plan, 2 provenance" in item.words
    line = next(line for line in import_text.text(made).splitlines() if "protocol" in line)
    assert line.startswith("by protocol 1: 0 of 3 comparisons closed, 3 open (imported); all that are open")
    assert made.run.folder / protocol.FILE in import_text.write(a)


@pytest.mark.long
def test_an_import_of_one_arm_has_nothing_to_be_closed(tmp_path: Path) -> None:
    assert "no comparison is named, so nothing is closed or open" in import_text.text(made_of(tmp_path, "a"))


@pytest.mark.long
def test_what_the_results_say_comes_first_and_each_remark_once(tmp_path: Path) -> None:
    made = made_of(tmp_path, "a", "b")
    lines = import_text.text(made).splitlines()
    assert lines[1].startswith("imported: ")
    places = [lines.index(head) for head in ("cells (medians):", "know of them:")]
    files = next(number for number, line in enumerate(lines) if "measurements of 2 arms" in line)
    assert places == sorted(places) and places[-1] < files
    head, *rows = lines[places[0] + 1 : places[0] + 8]
    assert head.split() == ["arm", "load", "n", "IOPS", "MB/s", "mean,", "ms", "label"]
    assert all(len(row.split()) >= 7 for row in rows[:6])
    heads = [line.rpartition(" (")[0] for line in lines[places[1] + 1 : files]]
    assert len(heads) == len(set(heads))


@pytest.mark.long
def test_remarks_that_differ_in_numbers_alone_are_one_line(tmp_path: Path) -> None:
    made = made_of(tmp_path, "a")
    noted = [f"measured for {seconds} s of 30 s (x{seconds}.json)" for seconds in (12, 13.5, 14)]
    text = import_text.text(replace(made, flags=tuple(noted)))
    assert "measured for 12 s of 30 s (x12.json); and 2 more like it" in text
    assert "13.5" not in text


def test_a_link_to_nothing_stops_nothing(tmp_path: Path) -> None:
    made_of(tmp_path, "a")
    (tmp_path / "a" / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "a" / "junk.bin").write_bytes(bytes(range(256)))
    made = importer.make([str(tmp_path / "a")], f"{tmp_path}/again", Settings())
    assert made.n_trials == 3
    assert any(sentence.startswith("gone.json: a link to nothing") for sentence in made.refused)
    assert any(sentence.startswith("junk.bin: ") for sentence in made.refused)
