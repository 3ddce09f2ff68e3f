"""What differs between results is an arm or a load, and never a repeat; names say what differs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from diskbook.importing import file_words, names, preview, repeats, run as importer, terminal
from diskbook.importing.run import Planned
from diskbook.importing.scenario import Settings
from support.results import Result, later, write


def plan(folder: Path, **settings: Any) -> Planned:
    return importer.plan([str(folder)], f"{folder}-run", Settings(**settings))


def cells(planned: Planned) -> dict[tuple[str, str], int]:
    pairs = [(entry.arm, entry.workload["name"]) for entry in planned.entries]
    return {pair: pairs.count(pair) for pair in pairs}


NAMES = ["{kind}-{load}-{n}", "{load}_{kind}_{n}", "{n}-{load}-{kind}", "{load}.{kind}.run{n}"]


@pytest.mark.parametrize("pattern", NAMES)
@pytest.mark.parametrize(
    "kinds", [("cephfs", "nfs"), ("before", "after"), ("P30", "P40"), ("ext4", "xfs", "zfs")]
)
def test_words_of_a_series_are_arms(tmp_path: Path, pattern: str, kinds: tuple[str, ...]) -> None:
    """Also where a kind lacks a load, and loads have words of their own."""
    rows = itertools.product(enumerate(kinds), (("web", 1), ("db", 8)), (1, 2))
    for (place, kind), (load, depth), number in rows:
        if (kind, load) != (kinds[0], "db"):
            result = Result(
                iops=5000 + 90 * place + number, depth=depth, began=later(minutes=9 * number + place)
            )
            write(
                tmp_path / "in" / f"{pattern.format(kind=kind, load=load, n=number)}.json",
                "fio-json",
                "3.36",
                result,
            )
    planned = plan(tmp_path / "in")
    assert set(planned.arms) == {kind.lower() for kind in kinds}
    assert set(cells(planned).values()) == {2}
    assert "arms from names of files" in planned.reading[0] or "arms guessed" in planned.reading[0]


@pytest.mark.parametrize("pattern", ["{kind}-{n}", "x_{kind}", "disk.{n}.{kind}"])
def test_both_readings_have_a_layout_that_picks_them(tmp_path: Path, pattern: str) -> None:
    for number, kind in enumerate(("first", "again")):
        result = Result(iops=5000 + number, began=later(minutes=number))
        write(tmp_path / "in" / f"{pattern.format(kind=kind, n=number)}.json", "fio-json", "3.36", result)
    planned = plan(tmp_path / "in")
    (sentence,) = planned.reading
    assert set(planned.arms) == {"first", "again"}
    arms, pooled = (piece.split("'")[1] for piece in sentence.split("--layout ")[2:])
    assert set(plan(tmp_path / "in", layout=arms).arms) == {"first", "again"}
    assert list(cells(plan(tmp_path / "in", layout=pooled)).values()) == [2]


def test_many_names_that_come_once_are_repeats(tmp_path: Path) -> None:
    for number, name in enumerate(("ada", "bob", "cyd", "dan", "eve", "fay", "gus")):
        write(
            tmp_path / "in" / name,
            "fio-json",
            "3.36",
            Result(iops=5000 + number, began=later(minutes=number)),
        )
    assert list(cells(plan(tmp_path / "in")).values()) == [7]


def with_options(path: Path, iops: float, minutes: int, **options: str) -> None:
    written = write(path, "fio-json", "3.36", Result(iops=iops, began=later(minutes=minutes)))
    document = json.loads(written.read_text())
    document["jobs"][0]["job options"] |= options
    written.write_text(json.dumps(document))


@pytest.mark.parametrize("place", ["{n}", "run{n}/x", "{value}-{n}"])
def test_options_of_the_files_are_loads(tmp_path: Path, place: str) -> None:
    for number, value in enumerate((1, 2, 14, 1, 2, 14)):
        path = tmp_path / "in" / f"{place.format(n=number, value=value)}.json"
        with_options(path, 5000 + number, number, max_open_zones=str(value), write_bw_log=f"log{number}")
    loads = {load for _, load in cells(plan(tmp_path / "in"))}
    assert loads == {f"randread-4k-qd4-max-open-zones-{value}" for value in (1, 2, 14)}


@pytest.mark.parametrize("form", ["diskspd-xml", "diskspd-text"])
def test_options_of_diskspd_are_loads(tmp_path: Path, form: str) -> None:
    """A switch of the command line, or its element of the XML; alike in both."""
    for number, burst in enumerate((0, 20, 0, 20)):
        result = Result(iops=5000 + number, began=later(minutes=number))
        path = write(tmp_path / "in" / str(number), form, "2.2", result)
        text = path.read_text()
        if burst:
            text = text.replace("</ThreadsPerFile>", "</ThreadsPerFile><BurstSize>20</BurstSize>", 1)
            text = text.replace("diskspd.exe -c10G", "diskspd.exe -i20 -c10G", 1)
        path.write_text(text)
    loads = {
        load.split("qd")[1].partition("-")[2]: n for (_, load), n in cells(plan(tmp_path / "in")).items()
    }
    assert loads == {"no-burst-size": 2, "burst-size-20": 2}


def test_of_one_measurement_in_two_formats_the_one_that_tells_more_is_read(tmp_path: Path) -> None:
    for form, ending in (("diskspd-text", "txt"), ("diskspd-xml", "xml")):
        write(tmp_path / "in" / f"a.{ending}", form, "2.2", Result(iops=5000, began=later(minutes=1)))
    planned = plan(tmp_path / "in")
    assert [entry.format for entry in planned.entries] == ["DiskSpd XML"]
    assert planned.refused == ("a.txt: the same measurement as in a.xml, in another format: it counts once",)


def test_an_option_that_is_the_same_within_each_arm_is_no_load(tmp_path: Path) -> None:
    for number, arm in itertools.product((1, 2), ("lrs", "zrs")):
        path = tmp_path / "in" / arm / f"{number}.json"
        with_options(
            path, 5000 + number + len(arm), number, ioengine={"lrs": "libaio", "zrs": "io_uring"}[arm]
        )
    assert set(cells(plan(tmp_path / "in"))) == {(arm, "randread-4k-qd4") for arm in ("lrs", "zrs")}


@pytest.mark.long
def test_repeats_that_do_not_agree_stand_first_and_uncut(tmp_path: Path) -> None:
    for depth, number in itertools.product(range(1, 50), (1, 2)):
        result = Result(iops=1000 * number, depth=depth, began=later(minutes=10 * number))
        write(tmp_path / "in" / "disk" / f"d{depth}-{number}", "fio-json", "3.36", result)
    made = importer.make([str(tmp_path / "in")], f"{tmp_path}/run")
    for text in (terminal.text(made), preview.words(plan(tmp_path / "in"))):
        assert text.count(repeats.UNLIKE) == 49
        head = text.index("look at these before any number")
        assert head < text.index(repeats.UNLIKE) < text.find("know of them") % 10**9


def test_names_of_arms_have_words_and_differ() -> None:
    long = [
        f"benchmarks/of/my/{kind}/disks/on/a/{size}/machine/in/westeurope" for kind in "ab" for size in "xy"
    ]
    slugs = names.slugs(long, "arm")
    assert len(set(slugs.values())) == 4 and all(len(slug) <= 40 for slug in slugs.values())
    assert all("benchmarks" in slug and "westeurope" in slug for slug in slugs.values())
    assert list(names.slugs(["A", "a"], "arm").values()) == ["a", "a-2"]
    labels = names.labels({"one": f"{'x' * 50}1{'y' * 50}", "two": f"{'x' * 50}2{'y' * 50}", "c": "c"})
    assert labels == {"one": "one", "two": "two", "c": "c"}


def test_layouts_of_words_are_found_by_trying() -> None:
    assert file_words.layout_of({"nfs_1.json": "nfs", "ceph_2.json": "ceph"}) == "{arm}_*"
    assert file_words.layout_of({"1_nfs.json": "nfs"}) == "{_}_{arm}.*"
    assert not file_words.layout_of({"1_nfs.json": "ceph"})
