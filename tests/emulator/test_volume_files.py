"""Files on an emulated volume: where each lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.facts.units import MIB
from diskbook_emulator.windows_diskspd import Extent, NoRoomError, make_files as make, read_extents as read

ROOM = 64 * MIB


def test_files_lie_one_behind_the_other_and_share_no_region(tmp_path: Path) -> None:
    made = make(tmp_path, {"A.dat": 5 * MIB // 2, "b.dat": MIB}, ROOM)
    assert made == {"A.dat": Extent(0, 5 * MIB // 2), "b.dat": Extent(3 * MIB, MIB)}
    assert read(tmp_path) == {"a.dat": made["A.dat"], "b.dat": made["b.dat"]}


def test_a_file_that_is_made_again_stays_where_it_is_as_long_as_it_fits(tmp_path: Path) -> None:
    make(tmp_path, {"a": 4 * MIB, "b": 4 * MIB}, ROOM)
    assert make(tmp_path, {"a": 2 * MIB}, ROOM)["a"] == Extent(0, 2 * MIB)
    assert make(tmp_path, {"A": 4 * MIB}, ROOM)["A"] == Extent(0, 4 * MIB)
    assert make(tmp_path, {"a": 8 * MIB}, ROOM)["a"] == Extent(8 * MIB, 8 * MIB)
    assert make(tmp_path, {"c": 4 * MIB}, ROOM)["c"] == Extent(0, 4 * MIB)  # the gap that it left


def test_what_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    make(tmp_path, {"a": 32 * MIB}, ROOM)
    with pytest.raises(NoRoomError, match=f"{33 * MIB} bytes fit into no gap"):
        make(tmp_path, {"b": 16 * MIB, "c": 33 * MIB}, ROOM)
    assert set(read(tmp_path)) == {"a"}
    assert make(tmp_path, {"b": 32 * MIB}, ROOM)["b"] == Extent(32 * MIB, 32 * MIB)
