"""Curves over threads: panels by load, limits that are near, knees; depths far apart are not joined."""

from __future__ import annotations

import pandas as pd

from diskbook.report.figures.depth_curves import depth_curves
from diskbook.report.figures.style import ArmLook, Picture

LOOKS = {"a": ArmLook("one server", "#0072B2", "o", "-")}
PLACE = {"arm": "a", "kind": "write", "block_size_bytes": 65536}


def drawn(*threads: int) -> Picture:
    rows = [
        {**PLACE, "workload": f"w{n}", "trial": f"t{n}", "outstanding": 8 * n,
         "iops": min(1700.0 * n, 12_000.0), "lat_mean_ms": 4.6, "provenance": "emulated"}
        for n in threads
    ]  # fmt: skip
    totals = pd.DataFrame(rows)
    totals["mb_s"] = totals["iops"] * 65536 / 1e6
    words = {"iops": 12_207.0, "mb_s": 800.0, "words": "disk limit of 800 MB/s"}
    caps = pd.DataFrame([{**PLACE, **words}, {**PLACE, **words, "mb_s": 5000.0, "words": "far away"}])
    knees = pd.DataFrame([{**PLACE, "knee": 57.0, "low": 55.0, "high": 59.0}])
    return depth_curves(totals, caps, knees, LOOKS, 8, "A title", "run")


def test_large_blocks_are_drawn_in_mb_s_with_limits_that_are_near() -> None:
    picture = drawn(1, 4, 8)
    rate, key = picture.figure.axes
    assert (rate.get_ylabel(), rate.get_title(loc="left")) == ("MB/s", "64K write")
    named = [text.get_text() for text in key.get_legend().get_texts()]
    assert named[1:] == [
        "lowest to highest trial",
        "lowest limit in force",
        "knee: latency x limit, 95 % interval",
    ]
    words = [text.get_text() for text in rate.texts]
    assert "disk: 800 MB/s" in words and "far away" not in words
    assert "one server, 64K write: knee at 7.1 threads." in picture.description


def test_the_figure_says_emulated_once_and_names_its_run() -> None:
    figure = drawn(1, 4).figure
    shown = {text.get_gid(): text.get_text() for text in figure.texts if text.get_gid()}
    assert shown == {"emulated": "EMULATED, not Azure", "source": "Run run"}
    assert not any("EMULATED" in text.get_text() for axes in figure.axes for text in axes.texts)


def test_depths_that_lie_far_apart_are_not_joined() -> None:
    def lines(picture: Picture) -> int:
        return sum(line.get_linestyle() == "-" for line in picture.figure.axes[0].lines)

    # Two of them are the knee and its interval.
    assert (lines(drawn(1, 4, 8)), lines(drawn(1, 12))) == (4, 2)
