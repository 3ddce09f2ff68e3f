"""Where things lie on a disk: nothing that is to be unwritten is written, and everything has room."""

from __future__ import annotations

import pytest

from diskbook.design import layout, scenario_file
from diskbook.facts.units import GIB, MIB


@pytest.fixture(scope="module")
def full():
    return scenario_file.load("zone-disks", "full")


def test_a_disk_is_filled_as_far_as_its_own_workloads_reach(full) -> None:
    filled = {disk: layout.filled_bytes(full, disk) / GIB for disk in ("lrs", "lrs-b", "zrs")}
    assert filled == {"lrs": 1000, "lrs-b": 30, "zrs": 1000}
    assert layout.overwritten_bytes(full, "lrs") == 1000 * GIB


def test_a_reason_leaves_the_random_pass_out_but_not_the_fill(full) -> None:
    design = full.design.model_copy(update={"no_overwrite": "why not"})
    left_out = full.model_copy(update={"design": design})
    assert (layout.filled_bytes(left_out, "zrs"), layout.overwritten_bytes(left_out, "zrs")) == (
        1000 * GIB,
        0,
    )


def test_regions_follow_one_another_and_end_before_the_mark(full) -> None:
    ends = layout.working_set_end(full, "zrs"), layout.region_offset(full, "zrs")
    assert ends == (1000 * GIB, 1000 * GIB + 64 * MIB)  # a check verifies 64 MiB on it
    begin = layout.unwritten_offset(full, "zrs")
    assert begin == ends[1] + layout.REGION_BYTES
    needed = 2 * 2 * (2 + 2) * GIB  # two attempts at two repeats of a read and a write
    assert layout.unwritten_bytes(full, "zrs") == needed
    assert begin + needed < 1024 * GIB - layout.MARK_ROOM
