"""The table while a batch runs, and what it came to: page, data and words."""

from __future__ import annotations

import io
import json
import re
from datetime import datetime
from pathlib import Path

import pytest

from diskbook.batch import summary
from diskbook.batch.loop import Batch
from diskbook.batch.matrix import Matrix
from diskbook.batch.progress import Table
from diskbook.batch.status import Standing, State
from diskbook.cli import documents
from diskbook.measure.runs import begin
from support.batches import TINY, Looks, Played, items, priced


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """Of three runs one is finished, one has failed, one is left."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    asked = items(3)
    begin.begin(asked[0].name, TINY, overrides=asked[0].asked.settings).write("report.html", "<p>")
    batch = Batch(asked, Played(), 10.0, priced(), Looks(lambda item: Standing(State.NEW, 1)))
    batch.rows[0].state, batch.rows[0].seconds = "finished", 75.0
    batch.rows[0].standing = Standing(State.FINISHED, 0, 0.5, True, provenance="emulated")
    batch.rows[1].state, batch.rows[1].reason = "failed", "its disk <broke>"
    batch.rows[1].standing = Standing(State.CUT, 1, 0.25, True, 0.25, "stands until noon", "emulated")
    batch.purse.settle(asked[0].name, 0.5)
    batch.purse.settle(asked[1].name, 0.25)
    return batch


def test_the_table_is_the_same_lines_in_a_log(batch: Batch) -> None:
    stream = io.StringIO()
    table = Table(batch, stream, lambda: datetime(2026, 1, 1, 21, 4, 10))
    table.tell("", batch.rows[2])  # shown on a terminal alone
    table.tell("finished", batch.rows[0])
    table.tell("failed", batch.rows[1])
    table.close()
    head, first, second, why = stream.getvalue().splitlines()
    assert head.split() == ["time", "event", "runs", "waits", "done", "failed", "USD", "left", "run"]
    assert first.split() == [
        "21:04:10",
        "finished",
        *["0", "1", "1", "1", "0.75"],
        "75",
        "s",
        "design.seed=1",
        "(75",
        "s)",
    ]
    assert second.index("design") == head.index("run") + len("runs") - 4 or "design" in second
    assert why.strip() == f"{batch.rows[1].item.name}: its disk <broke>"
    assert max(len(line) for line in (head, first, second)) <= 100


def test_page_and_data_say_what_came_of_each_run_and_link_the_reports(batch: Batch, tmp_path: Path) -> None:
    folder = tmp_path / "batch-nightly"
    folder.mkdir()
    data = summary.write(Matrix("nightly", tuple(row.item for row in batch.rows)), batch, folder)
    assert json.loads((folder / "summary.json").read_text()) == data
    printed = {key: value for key, value in data.items() if key != "schema"}
    assert documents.Batch.model_validate(printed).model_dump(mode="json") == printed
    assert (data["finished"], data["failed"], data["left"], data["exit_code"]) == (1, 1, 1, 3)
    page = (folder / "index.html").read_text()
    assert "1 of 3 runs finished, 1 failed, 1 left; 0.75 USD of at most 10.00 spent" in page
    assert "EMULATED" in page and "its disk &lt;broke&gt;" in page and "<script" not in page
    links = re.findall(r'href="([^"]+)"', page)
    assert links == [f"../{batch.rows[0].item.name}/report.html"]
    mixed = {**data, "rows": [*data["rows"], {**data["rows"][0], "provenance": "azure"}]}
    assert "SOME RUNS ARE EMULATED" in summary.page(mixed)
    assert all((folder / link).is_file() for link in links)
    assert "diskbook teardown" in page


def test_a_finished_run_with_damaged_comparisons_leaves_the_page_to_the_others(
    batch: Batch, tmp_path: Path
) -> None:
    item = batch.rows[0].item
    (tmp_path / item.name / "comparisons.csv").write_text("arm,verdict\nx,difference\n")
    data = summary.content(Matrix("nightly", ()), batch, tmp_path)
    assert data["rows"][0]["answer"].endswith("column 'base_arm' is missing; run the analysis again")
    assert data["rows"][1]["reason"] == "its disk <broke>"


def test_the_last_words_name_what_failed_what_stands_and_how_to_go_on(batch: Batch, tmp_path: Path) -> None:
    data = summary.content(Matrix("nightly", ()), batch, tmp_path)
    words = summary.words(data, tmp_path / "index.html")
    assert f"failed: {batch.rows[1].item.name}  design.seed=2: its disk <broke>" in words
    assert f"stands until noon: 'diskbook teardown {batch.rows[1].item.name}' deletes it" in words
    assert "start the same batch again" in words and "(what they would cost on Azure)" in words
