"""What is read of a batch that is half done, failed, not begun, or damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diskbook.batch import outcome, summary
from diskbook.batch.loop import Batch
from diskbook.facts.errors import DiskbookError, UsageError
from support import campaigns
from support.batches import Played, priced


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    return campaigns.half_done(tmp_path)[0]


@pytest.mark.long
@pytest.mark.parametrize("name", ["night", "batch-night", "somewhere/night.toml", ""])
def test_a_batch_is_found_by_name_file_and_folder(folder: Path, name: str) -> None:
    read = outcome.read(name or str(folder))
    assert (read.data["batch"], read.provenance) == ("night", "emulated")
    assert list(read.finished.values()) == ["null seed=1", "null seed=2", "default seed=3"]
    assert all((Path(place) / "manifest.json").is_file() for place in read.finished)
    there = outcome.read("night", str(folder.parent)).finished
    assert [Path(place).resolve() for place in there] == [Path(place).resolve() for place in read.finished]
    assert next(iter(outcome.read("night", "abfs://runs/lab/").finished)) == "abfs://runs/lab/zone-disks-1"


def test_runs_are_where_the_record_says_and_else_beside_the_batch(folder: Path) -> None:
    data = json.loads((folder / summary.DATA).read_text())
    data["rows"][0]["folder"] = "runs/elsewhere"
    del data["rows"][1]["folder"]
    (folder / summary.DATA).write_text(json.dumps(data))
    first, second, _ = outcome.read("night").finished
    assert first == str(folder / "runs/elsewhere") and (Path(second) / "manifest.json").is_file()


def test_states_reasons_and_cost_are_shown(folder: Path) -> None:
    read = outcome.read("night")
    assert "3 of 5 runs finished, 1 failed, 1 left; 1.50 USD of at most 10.00 spent" in outcome.counts(read)
    states = outcome.states(read)
    assert states.count("profile null, as in westeurope") == 1
    for state in ("failed", "finished", "waiting"):
        assert f">{state}</th>" in states
    listed = outcome.listed(read)
    assert "its disk &lt;broke&gt;" in listed and "null seed=4" in listed
    cost = outcome.cost(read)
    # Three finished runs were expected to cost 0.60 each; of each of the other two 1.00 is still to come.
    assert ">3.800<" in cost and ">1.500<" in cost and ">2.000<" in cost
    assert "10.00 USD, 8.50 of them left" in cost and "Emulated runs cost nothing" in cost


def test_of_many_runs_those_are_listed_that_are_not_finished(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome, "MOST_ROWS", 1)
    listed = outcome.listed(outcome.read("night"))
    assert "null seed=4" in listed and "null seed=1" not in listed and "1 more stand" in listed


def test_without_a_finished_run_all_is_said_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    items = (campaigns.item(1, "null"),)
    batch = Batch(items, Played(), None, priced())
    campaigns.write(tmp_path, items, batch)
    read = outcome.read("night")
    assert read.finished == {} and read.provenance == "emulated"
    assert "waiting" in outcome.states(read) and "No spending limit is set" in outcome.cost(read)


def test_what_is_no_record_of_a_batch_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    with pytest.raises(UsageError, match="name a batch"):
        outcome.read("")
    with pytest.raises(UsageError, match="nothing is recorded of batch night"):
        outcome.read("night")
    (tmp_path / "batch-night").mkdir()
    for content, words in (
        ("{", "is damaged"),
        ("[]", "is not a summary"),
        ('{"schema": 1}', "is not a summary"),
    ):
        (tmp_path / "batch-night" / summary.DATA).write_text(content)
        with pytest.raises(DiskbookError, match=words):
            outcome.read("night")


def test_a_run_without_its_state_is_a_sentence(folder: Path) -> None:
    data = json.loads((folder / summary.DATA).read_text())
    del data["rows"][1]["state"]
    (folder / summary.DATA).write_text(json.dumps(data))
    with pytest.raises(
        DiskbookError, match=r"summary\.json, row 1: 'state' is missing; start the batch again"
    ):
        outcome.read("night")
