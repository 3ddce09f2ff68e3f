"""The notebook of a batch, executed as at a batch's end, on a batch that is half done; and where it fails."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import nbformat
import pytest

from diskbook.batch import command, notebook
from diskbook.batch.matrix import Matrix
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import notebook_process
from support import campaigns

pytestmark = pytest.mark.whole


def test_a_half_done_batch_is_shown_and_nothing_else_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path.parent)  # kernels run elsewhere
    monkeypatch.setenv("DISKBOOK_RUNS", tmp_path.name)
    runs = Path(tmp_path.name)
    folder, _, _ = campaigns.half_done(runs)
    before = set(runs.rglob("*"))
    assert notebook.make(folder) == ""
    assert set(runs.rglob("*")) - before == {folder / notebook.SOURCE.name}
    shown = "".join(
        output.get("data", {}).get("text/html", "")
        for cell in nbformat.read(folder / notebook.SOURCE.name, as_version=4).cells
        for output in cell.get("outputs", [])
    )
    for earlier, later in itertools.pairwise(WORDS):
        assert shown.index(earlier) < shown.index(later), later


WORDS = (
    "EMULATED. These numbers",
    "3 of 5 runs finished, 1 failed, 1 left",
    "its disk &lt;broke&gt;",
    "zone-disks: ratios of its headline comparisons (emulated)",
    '<figure id="campaign-map">',
    "Cost in USD (emulated)",
)


def test_a_batch_whose_notebook_cannot_be_made_ends_as_it_would_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise DiskbookError("no room\non the disk")

    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    monkeypatch.setattr(notebook_process, "execute", fail)
    (tmp_path / "batch-bad").mkdir()
    (tmp_path / "batch-bad" / notebook.SOURCE.name).write_text("of an earlier end")
    stream = io.StringIO()
    data = command.run(Matrix("bad", ()), stream)
    assert "the notebook of the batch was not made: no room on the disk" in stream.getvalue()
    assert (data["exit_code"], data["notebook"]) == (0, None)
    assert "8-campaign" not in (tmp_path / "batch-bad" / "index.html").read_text()
