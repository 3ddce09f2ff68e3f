"""The name of a run comes from its content alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.batch.batch_run import Asked, item_of, name_of_manifest
from diskbook.facts.errors import UsageError
from diskbook.measure.runs import begin
from support.batches import TINY, an_item


def test_what_is_measured_names_a_run_and_words_do_not(tmp_path: Path) -> None:
    first = an_item()
    assert first.name == an_item(design__seed=7).name  # as the file has it
    other = {
        an_item(design__seed=8).name,
        an_item(cloud="azure").name,
        an_item(scenario__region="eastus").name,
    }
    profile = item_of(Asked(TINY, emulator_profile="null")).name
    assert len({first.name, profile, *other}) == 5
    assert item_of(Asked(TINY, emulator_profile="default")).name == first.name
    reworded = tmp_path / "tiny.toml"
    reworded.write_text(Path(TINY).read_text().replace("Does a run go on?", "Does it?") + "\n# more\n")
    assert item_of(Asked(str(reworded))).name == first.name
    assert first.name.startswith("tiny-quick-")


def test_a_manifest_has_the_name_of_what_it_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    item = item_of(Asked(TINY, emulator_profile="null", settings={"design.replicates": 2}))
    run = begin.begin(item.name, TINY, "emulator", "quick", item.asked.settings, {"profile": "null"})
    assert name_of_manifest(run.manifest) == item.name


def test_what_cannot_be_run_as_asked_is_refused_before_anything() -> None:
    with pytest.raises(UsageError, match="cannot be measured on hosts of your own"):
        item_of(Asked("zone-disks", cloud="inventory"))
