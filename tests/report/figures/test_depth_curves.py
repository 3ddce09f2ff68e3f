"""Curves over threads: panels by load, limits that are near, knees; depths far apart are not joined."""

from __future__ import annotations

import pandas as pd

from diskbook.report.figures import depth_curves
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
    rate, latency, _ = picture.figure.axes
    assert (rate.get_ylabel(), latency.get_ylabel(), rate.get_title(loc="left")) == (
        "MB/s",
        "mean, ms",
        "64K write",
    )
    words = [text.get_text() for text in rate.texts]
    assert "disk: 800 MB/s" in words and "far away" not in words
    assert "one server, 64K write: knee at 7.1 threads." in picture.alt


def test_every_panel_says_emulated_and_the_key_does_not() -> None:
    marked = [[text.get_gid() for text in axes.texts].count("emulated") for axes in drawn(1, 4).figure.axes]
    assert marked == [1, 1, 0]


def test_depths_that_lie_far_apart_are_not_joined() -> None:
    def lines(picture: Picture) -> int:
        return sum(line.get_linestyle() == "-" for line in picture.figure.axes[1].lines)

    assert (lines(drawn(1, 4, 8)), lines(drawn(1, 12))) == (2, 0)
