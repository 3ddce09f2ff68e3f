"""A run that has come to its end is told so, and nothing of it is touched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from diskbook import cli
from diskbook.base import paths
from diskbook.runs import finished
from diskbook.store.run import Run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    return Run(Path(shutil.copytree(paths.RUNS / "sample-zone-disks", tmp_path / "done")))


def without_last_stage(run: Run) -> None:
    ledger = run.folder / "ledger.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if '"stage": "teardown"' in line)
    ledger.write_text("".join(lines[:last] + lines[last + 1 :]))


def standing(run: Run) -> None:
    manifest = json.loads((run.folder / "manifest.json").read_text())
    manifest["resource_groups"][0]["deleted_utc"] = None
    (run.folder / "manifest.json").write_text(json.dumps(manifest))


def test_it_is_told_and_nothing_is_touched(run: Run) -> None:
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in run.folder.rglob("*")}
    told = CliRunner().invoke(cli.cli, ["run", "--resume", "done"], catch_exceptions=False)
    assert told.exit_code == 0 and told.output.count("\n") == 1
    assert told.output.startswith("run done is finished since 20") and "'diskbook report done'" in told.output
    assert before == {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in run.folder.rglob("*")}


@pytest.mark.parametrize("change", [
    without_last_stage,
    standing,
    lambda run: (run.folder / "report.html").unlink(),
    lambda run: (run.folder / "notebooks" / "3-analyse-zone-disks.ipynb").unlink(),
    lambda run: (run.folder / "ledger.jsonl").write_text(""),
])  # fmt: skip
def test_one_that_lacks_something_is_not_finished(change, run: Run) -> None:
    assert finished.since(run)
    change(run)
    assert finished.since(run) == ""
