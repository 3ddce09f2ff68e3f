"""The check of what is planted in volumes: its profiles, and when it says that a truth was missed."""

from __future__ import annotations

import json
import math
import tomllib

import pytest

from checks import planted_volumes
from checks.planted_volumes import Row
from diskbook.design import scenario_file
from diskbook.facts.paths import RUNS
from diskbook.report.analysis.run import analyse
from diskbook_emulator import profile as profiles

NAN = math.nan


def test_a_seed_draws_one_profile_that_the_emulator_reads(tmp_path):
    texts = {planted_volumes.profile(seed) for seed in range(20)}
    assert len(texts) == 20 and planted_volumes.profile(3) in texts
    shares = {tomllib.loads(text)["volumes"]["local_share"] for text in texts}
    assert shares == {1.0, 0.6, 0.3333}
    file = tmp_path / "drawn.toml"
    file.write_text(planted_volumes.profile(3))
    assert profiles.load_profile(str(file)).volumes.local_share in shares


def test_its_scenario_can_be_played():
    scenario = scenario_file.load(str(planted_volumes.SCENARIO), "quick")
    assert {arm.name for arm in scenario.arm} == {"server", "mirror", "again"}


@pytest.mark.parametrize(
    ("row", "is_found"),
    [
        (Row("cap", 10_000, 9_810, NAN, NAN, 0.02), True),
        (Row("cap", 10_000, 9_790, NAN, NAN, 0.02), False),
        (Row("knee", 40, 44, 39, 49, 0.05), True),
        (Row("knee", 40, 44, 41, 47, 0.05), False),
        (Row("knee", 40, NAN, NAN, NAN, 0.05), False),
        (Row("share", 1 / 3, 0.36, NAN, NAN, 0.03, is_share=True), True),
        (Row("share", 1 / 3, 0.30, NAN, NAN, 0.03, is_share=True), False),
    ],
)
def test_a_truth_is_found_in_its_interval_or_within_its_margin(row, is_found):
    assert row.is_found is is_found
    assert row.text.endswith("ok" if is_found else "MISSED")


@pytest.mark.long
def test_planting_another_truth_than_was_played_is_noticed():
    a = analyse(RUNS / "sample-s2d-azure")
    truth = json.loads((a.run.folder / "truth.json").read_text())
    volumes = {arm.name: planted_volumes._volume(truth, arm.volume) for arm in a.scenario.arm}
    single = a.comparisons[a.comparisons["workload"] == "write-4k-1x1"]
    single = single[(single["arm"] == "s2d-3") & (single["base_arm"] == "ss-4")]
    assert [row.is_found for row in planted_volumes._ratios(single, volumes)] == [True]
    for volume in truth["volumes"]:
        for means in volume["expected"].values():
            means["write_mean_ms"] *= 2 if volume["kind"] == "three-way" else 1
    assert [row.is_found for row in planted_volumes._ratios(single, volumes)] == [False]
