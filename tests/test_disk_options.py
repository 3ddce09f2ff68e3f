"""disk-options: planted limits, a planted end of a burst and planted latencies are found, end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emulated
from diskbook import disk_options, present
from diskbook.analysis import Analysis, analyse
from diskbook.stats import ratios

OPTIONS = str(Path(__file__).parent / "scenarios" / "options.toml")
LEVEL = 0.999  # a 95 % interval is wrong one time in twenty by design


@pytest.fixture(scope="module")
def measured() -> Iterator[tuple[Analysis, dict[str, Any]]]:
    """The scenario on a profile without noise between machines, disks and blocks; runs and truth."""
    with emulated.own_place():
        folder = emulated.measured("options", OPTIONS, "quiet")
        yield analyse(folder), json.loads((folder.folder / "truth.json").read_text())


@pytest.fixture(scope="module")
def a(measured: tuple[Analysis, dict[str, Any]]) -> Analysis:
    return measured[0]


@pytest.mark.parametrize(("arm", "limit"), [("h-plain", 5000), ("j-v2-8000", 8000)])
def test_the_limit_predicted_is_the_limit_found(a: Analysis, arm: str, limit: int) -> None:
    found = disk_options.predictions(a).set_index(["arm", "workload"]).loc[(arm, "max-write-iops")]
    assert (found["by"], found["predicted_iops"]) == ("cap_disk_iops", limit)
    # The profile's limits lie 2 % above; a busy machine may fall short of them.
    assert 0.8 < found["ratio"] < 1.08
    shown = disk_options.drives(a)
    row = shown[(shown["Drive"] == a.labels[arm]) & shown["Load"].str.contains("depth 128")].iloc[0]
    assert (row["Predicted limit"], row["Predicted"]) == ("disk limit", f"{limit:,} IOPS")


@pytest.mark.parametrize(("arm", "planted"), [("j-v2-8000", 0.34 / 2.0), ("l-label", 1.0)])
def test_planted_access_times_are_found(
    measured: tuple[Analysis, dict[str, Any]], arm: str, planted: float
) -> None:
    """By the latencies that the disks drew: a busy machine adds to what fio sees."""
    a, truth = measured
    drawn = {row["trial"]: row["realised"]["read_mean_ms"] for row in truth["trials"]}
    trials = a.trials[a.trials["workload"] == "access-time"]
    means = ratios.log_means(trials.assign(lat_mean_ms=trials["trial"].map(drawn)), "lat_mean_ms")
    found = ratios.block_log_ratios(means, arm, "h-plain", "access-time", "read")
    estimate = ratios.over_blocks(found, LEVEL)
    assert estimate.low <= planted <= estimate.high and estimate.high / estimate.low < 1.6


def test_the_end_of_the_burst_is_found_where_it_was_planted(a: Analysis) -> None:
    """1,800 s x 0.001 at the burst rate: 1.8 s of 3,570 IOPS, then 2,346."""
    fell = disk_options.diagnosed(a).iloc[0]
    assert 1.2 < fell["fell_at_s"] < 2.7
    assert fell["rate_before"] == pytest.approx(3570, rel=0.12)
    assert fell["rate_after"] == pytest.approx(2346, rel=0.12)
    state = a.trials.loc[a.trials["workload"] == "burst-until-dry", "credit_state"]
    assert set(state) == {"drained"}
    picture = disk_options.burst(a)
    assert "(1 : 1,000)" in picture.caption and "1.8 s in place of 30 minutes" in picture.caption
    assert "Emulated" in picture.caption and len(picture.data) > 30


def test_words_and_costs(a: Analysis) -> None:
    said = disk_options.label_claim(a)
    assert "F 1.92 against G 2.19 ms (-12 %), but L 2.02 against H 1.02 ms (+98 %)" in said[0]
    assert len(said) == 2 and said[1].startswith("emulated: ")
    assert disk_options.unusable(a) == ["every disk's limit lies within its machine's"]
    assert "drained 1" in disk_options.credit_words(a)[0]
    costs = disk_options.costs(a)
    per_iops = costs["USD a month"] / costs["Most IOPS measured"] * 1000
    assert np.allclose(costs["USD a month for 1,000 IOPS"], per_iops) and costs["USD a month"].min() > 20
    assert "data/reference/prices.csv" in disk_options.price_source(a)
    assert "burst credit is used up" in present.preformatted(disk_options.why.text(disk_options.findings(a)))
    assert list(disk_options.access_times(a)["Trials"]) == [4, 4, 4]
