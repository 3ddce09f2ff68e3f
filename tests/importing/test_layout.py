"""What parts of a path mean: named by the user, or guessed from names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from diskbook.facts.errors import UsageError
from diskbook.importing import layout
from diskbook.importing.layout import Meaning, Path


@pytest.mark.parametrize(
    ("pattern", "path", "meaning"),
    [
        (
            "{arm}/{replicate}/{load}*",
            "lrs/run1/randread-4k.json",
            Meaning(("lrs",), "run1", "", "randread-4k"),
        ),
        ("{arm}/{session}/{load}*", "lrs/2025-01-02/x_3.json", Meaning(("lrs",), "", "2025-01-02", "x")),
        ("{arm}_{load}_{block}.json", "zrs_read_2.json", Meaning(("zrs",), "", "2", "read")),
        ("*/{arm}/{_}/{load}*", "any/zrs/9/w.txt", Meaning(("zrs",), "", "", "w")),
        ("**/{arm}/*", "a/b/c/zrs/w.txt", Meaning(("zrs",))),
        ("{arm}.{replicate}/*", "p30.2/w.txt", Meaning(("p30",), "2")),
        ("{arm}/{arm}/{session}/{session}/*", "a/b/c/d/w.txt", Meaning(("a", "b"), "", "c/d")),
    ],
)
def test_a_pattern_names_the_parts_of_a_path(pattern: str, path: str, meaning: Meaning) -> None:
    parts = path.split("/")
    assert layout.parse(pattern).read(parts, len(parts)) == meaning


def test_a_pattern_with_more_parts_reaches_above_the_folder_named() -> None:
    parts = ["home", "me", "lrs", "run1", "x.json"]
    assert layout.parse(layout.EXAMPLE).read(parts, 2) == Meaning(("lrs",), "run1", "", "x")
    assert layout.parse("{arm}/*").read(parts, 3) is None


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{arms}/*", "field of --layout 'arms'"),
        ("{load}/{load}", "stands in it twice"),
        ("{arm/{load}", "name fields in braces"),
        ("{arm}{load}", "nothing tells {load} from what stands before it"),
        ("runs/*", "name fields in braces"),
        ("{arm}/{", "name fields in braces"),
        ("", "name fields in braces"),
    ],
)
def test_a_wrong_pattern_is_one_sentence(pattern: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        layout.parse(pattern)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "rest", "token"),
    [
        ("run1", "", "run1"),
        ("lrs-run-02", "lrs", "run-02"),
        ("rep2_premium", "premium", "rep2"),
        ("premium-2025-01-31", "premium", "2025-01-31"),
        ("20250131T101500Z", "", "20250131T101500Z"),
        ("fio_20250131_1015", "fio", "20250131_1015"),
        ("r12", "", "r12"),
        ("r5.large", "r5.large", ""),
        ("lrs-r1", "lrs-r1", ""),
        ("disk2", "disk2", ""),
        ("vm-1", "vm-1", ""),
        ("brun1", "brun1", ""),
        ("20251399", "20251399", ""),
    ],
)
def test_dates_and_numbers_of_runs_are_told_from_names(name: str, rest: str, token: str) -> None:
    assert layout.split_token(name) == (rest, token)


def test_dates_are_times() -> None:
    day = datetime(2025, 1, 31, tzinfo=UTC).timestamp()
    assert layout.second_of("lrs/2025-01-31") == day
    assert layout.second_of("20250131_1015") == day + (10 * 60 + 15) * 60
    assert layout.second_of("2025.01.31/run1") == day
    assert layout.second_of("2025-02-30") is None and layout.second_of("run1") is None


READ, WRITE = "randread-4k-qd1", "randwrite-4k-qd1"


def guessed(*paths: str) -> tuple[list[Meaning], tuple[str, ...]]:
    """Each path with its load after a space, by default the same."""
    split = [path.split(" ") for path in paths]
    return layout.guess(
        [
            Path(tuple(name.split("/")[:-1]), name.split("/")[-1], load[0] if load else READ)
            for name, *load in split
        ]
    )


@pytest.mark.parametrize("word", ["run", "r", "R"])
def test_folders_of_runs_are_sessions(word: str) -> None:
    paths = [f"{arm}/{word}{number}/x.json" for arm in ("lrs", "zrs") for number in (1, 2)]
    meanings, patterns = guessed(*paths)
    assert patterns == ("{arm}/{session}/{load}*",)
    assert meanings[1] == Meaning(("lrs",), session=f"{word}2")
    assert meanings[2] == Meaning(("zrs",), session=f"{word}1")


def test_dates_in_names_of_folders_are_sessions_of_arms() -> None:
    meanings, patterns = guessed("lrs-2025-01-02/x.json", "lrs-2025-06-02/x.json", "zrs-2025-01-02/x.json")
    assert patterns == ("{arm}-{session}/{load}*",)
    assert [(item.arm, item.session) for item in meanings] == [
        (("lrs",), "2025-01-02"),
        (("lrs",), "2025-06-02"),
        (("zrs",), "2025-01-02"),
    ]


def test_folders_of_loads_are_no_arms() -> None:
    meanings, patterns = guessed(
        f"lrs/randread/1.json {READ}", f"lrs/randwrite/1.json {WRITE}", f"zrs/randread/1.json {READ}"
    )
    assert patterns == ("{arm}/{_}/{load}*",)
    assert {item.arm for item in meanings} == {("lrs",), ("zrs",)}
    depths, patterns = guessed("1/x.json a", "4/x.json b", "16/x.json c")
    assert patterns == ("{_}/{load}*",) and not any(item.arm or item.session for item in depths)


def test_folders_of_one_load_each_are_no_arms_where_others_name_the_arms() -> None:
    paths = [
        f"{use}/{disk}/{n}.json {use}" for use in ("oltp", "backup") for disk in ("p30", "e30") for n in "12"
    ]
    meanings, patterns = guessed(*paths)
    assert patterns == ("{_}/{arm}/{load}*",)
    assert {meaning.arm for meaning in meanings} == {("p30",), ("e30",)}
    alone, _ = guessed("oltp/1.json oltp", "backup/1.json backup")
    assert {meaning.arm for meaning in alone} == {("oltp",), ("backup",)}


def test_bare_numbers_are_sessions_where_loads_come_again() -> None:
    meanings, patterns = guessed("lrs/1/x.json", "lrs/2/x.json")
    assert patterns == ("{arm}/{session}/{load}*",) and meanings[1].session == "2"


def test_what_is_neither_is_an_arm() -> None:
    meanings, _ = guessed("premium/disk1/x.json", "premium/disk2/x.json", "standard/disk1/x.json")
    assert meanings[1].arm == ("premium", "disk2")


def test_what_differs_between_paths_names_them() -> None:
    names = layout.middles(["/mnt/premium/fio.test", "/mnt/standard/fio.test"])
    assert list(names.values()) == ["premium", "standard"]
    assert list(layout.middles([r"C:\t.dat", r"D:\t.dat"]).values()) == ["C:", "D:"]
    assert list(layout.middles(["/a/x", "/a/b/x"]).values()) == ["/a/x", "b"]
