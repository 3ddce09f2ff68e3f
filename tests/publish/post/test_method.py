"""The command line that measures a run again has its settings."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pytest

from diskbook.publish import post_words
from diskbook.report.analysis.run import Analysis, analyse
from support import synthetic


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return analyse(synthetic.run_folder(Path(tmp_path_factory.mktemp("runs")) / "synthetic"))


def with_manifest(a: Analysis, **facts: Any) -> Analysis:
    return dataclasses.replace(a, manifest={**a.manifest, **facts})


def test_preset_overrides_profile_and_seed_are_named(a: Analysis) -> None:
    played = {"profile": "null", "seed": 7}
    other = with_manifest(
        a, cloud="emulator", overrides={"design.replicates": 2, "x": "two words"}, emulator=played
    )
    words = shlex.split(post_words.measured_by(other))
    assert words[:5] == ["diskbook", "run", "zone-disks", "--cloud", "emulator"]
    assert words[5:7] == ["--preset", a.scenario.preset]
    assert words[7:11] == ["--set", "design.replicates=2", "--set", 'x="two words"']
    assert words[11:] == ["--emulator-profile", "null", "--emulator-seed", "7"]


def test_a_sample_is_made_by_its_own_command(a: Analysis) -> None:
    sample = dataclasses.replace(a, scenario=a.scenario.model_copy(update={"preset": "sample"}))
    assert post_words.measured_by(sample) == "diskbook sample zone-disks"


def test_hosts_and_files_of_ones_own_are_left_to_the_reader(a: Analysis) -> None:
    scenario = a.scenario.model_copy(update={"name": "my-own"})
    other = with_manifest(
        dataclasses.replace(a, scenario=scenario), provenance="inventory", cloud="inventory"
    )
    line = post_words.measured_by(other)
    assert "DIR/my-own.toml" in line and "--hosts FILE" in line


def test_what_others_measured_cannot_be_measured_again(a: Analysis) -> None:
    imported = with_manifest(a, provenance="imported")
    assert [line.split()[1] for line in post_words.again(imported)] == ["report", "post"]
    assert "measured by others" in post_words.lines(imported)[2]
