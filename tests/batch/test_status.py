"""How far a run is, and what it has cost, by its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diskbook.batch import status
from diskbook.batch.batch_run import Item
from diskbook.batch.status import State
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import begin
from diskbook.results.run import Run
from support.batches import TINY, an_item

ROWS = [
    {"what": "machine", "hours": 1.5, "usd": 3.0},  # by the second: 2 USD an hour
    {"what": "disk", "hours": 2, "usd": 1.0},  # by the begun hour
    {"what": "I/Os", "hours": None, "usd": 0.25},
]


@pytest.fixture
def item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Item:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    return an_item(design__replicates=2)


def begun(item: Item) -> Run:
    return begin.begin(item.name, TINY, overrides=item.asked.settings)


def test_a_run_is_new_then_cut_short_then_finished(item: Item) -> None:
    assert status.of(item).state == State.NEW and status.of(item).replicates_left == 2
    run = begun(item)
    assert status.of(item).state == State.CUT and status.of(item).replicates_left == 2
    run.append("stage", stage="benchmark")
    assert status.of(item).state == State.CUT  # it has no report
    run.write("report.html", "<p>")
    assert status.of(item).state == State.FINISHED and status.of(item).replicates_left == 0
    run.update_manifest(resource_groups=[{"name": "g", "deleted_utc": None, "expires_utc": None}])
    assert status.of(item).state == State.CUT and status.of(item).left == "not torn down"


def test_a_folder_with_another_run_is_not_taken_for_this_one(item: Item) -> None:
    begin.begin(item.name, TINY)
    with pytest.raises(DiskbookError, match="holds another run than its name says; move it away"):
        status.of(item)


@pytest.mark.parametrize("key", ["provenance", "resource_groups", "scenario"])
def test_a_manifest_that_lacks_something_is_a_sentence(item: Item, key: str) -> None:
    run = begun(item)
    path = run.folder / "manifest.json"
    content = json.loads(path.read_text())
    del content[key]
    path.write_text(json.dumps(content))
    with pytest.raises(DiskbookError, match=rf"{item.name}/manifest.json is damaged \({key}: .*; restore it"):
        status.of(item)


def manifest(provenance: str, *deleted: str | None) -> dict[str, Any]:
    row = {"utc": "2026-01-01T10:00:00+00:00", "expected_usd": 4.25, "worst_usd": 30.0, "rows": ROWS}
    groups = [{"name": "g", "deleted_utc": time} for time in deleted]
    return {"provenance": provenance, "resource_groups": groups, "cost": [row]}


def test_machines_cost_what_they_stood_on_azure_and_their_estimate_elsewhere() -> None:
    half_an_hour = "2026-01-01T10:30:00+00:00"
    assert status.spent_usd(manifest("emulated", half_an_hour)) == 4.25
    assert status.spent_usd(manifest("azure", half_an_hour)) == pytest.approx(1.0 + 0.5 + 0.25)
    assert status.spent_usd(manifest("azure", None)) == 30.0
    assert status.spent_usd({**manifest("azure"), "cost": []}) == 0.0
