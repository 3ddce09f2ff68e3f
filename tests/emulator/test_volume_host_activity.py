"""What disks of pools did second by second."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from diskbook_emulator.layout_file import LayoutFile
from diskbook_emulator.volume_host import MemberActivity


class Totals:
    """A layout file as far as its members' totals go: reads, writes, bytes read, bytes written."""

    def __init__(self) -> None:
        self.rows = np.zeros((2, 4), np.int64)

    def member_ios(self) -> Any:
        return self.rows.copy()


def test_what_was_done_before_the_first_look_is_nobodys() -> None:
    totals, activity = Totals(), MemberActivity()
    totals.rows += 5
    activity.look(1, ["a", "b"], cast("LayoutFile", totals), 99.9)
    assert activity.of("a", 0.0, None).shape == (0, 5)


def test_each_look_counts_what_came_on_top_and_an_attachment_has_its_own_time() -> None:
    totals, activity = Totals(), MemberActivity()
    file = cast("LayoutFile", totals)
    activity.look(1, ["a", "b"], file, 100.0)
    for now in (100.3, 100.8, 102.1):
        totals.rows[0] += [1, 2, 4096, 8192]
        activity.look(1, ["a", "b"], file, now)
    assert activity.of("a", 100.5, None).tolist() == [[100, 6, 24576, 0, 0], [102, 3, 12288, 0, 0]]
    assert activity.of("a", 100.0, 101.0).tolist() == [[100, 6, 24576, 0, 0]]
    assert activity.of("b", 0.0, None).shape == activity.of("c", 0.0, None).shape == (0, 5)
