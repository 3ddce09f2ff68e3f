"""A run that has come to its end is told so, and nothing of it is touched."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from diskbook import cli
from diskbook.facts import paths
from diskbook.measure.runs import finished
from diskbook.report.analysis import companion_files
from diskbook.results.run import Run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A sample under another name, signed again."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Run(Path(shutil.copytree(paths.RUNS / "sample-zone-disks", tmp_path / "runs" / "done")))
    signed_anew(made, run="done")
    return made


def signed_anew(made: Run, /, **changes: Any) -> None:
    """Write another manifest, signed."""
    manifest = made.manifest
    (made.folder / "manifest.json").unlink()
    made.write_manifest({**manifest, **changes})


def without_last_stage(run: Run) -> None:
    ledger = run.folder / "ledger.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if '"stage": "teardown"' in line)
    ledger.write_text("".join(lines[:last] + lines[last + 1 :]))


def standing(run: Run) -> None:
    groups = run.manifest["resource_groups"]
    signed_anew(run, resource_groups=[{**groups[0], "deleted_utc": None}, *groups[1:]])


def linked(run: Run) -> None:
    (run.folder / "linked").symlink_to(run.folder)


def test_it_is_told_and_nothing_is_touched(run: Run) -> None:
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in run.folder.rglob("*")}
    told = CliRunner().invoke(cli.cli, ["run", "--resume", "done"], catch_exceptions=False)
    assert told.exit_code == 0 and told.output.count("\n") == 1
    assert told.output.startswith("run done is finished since 20") and "'diskbook report done'" in told.output
    assert before == {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in run.folder.rglob("*")}


@pytest.mark.long
@pytest.mark.parametrize("change", [
    without_last_stage,
    standing,
    linked,
    lambda run: signed_anew(run, run="another"),
    lambda run: (run.folder / "manifest.json").write_text(json.dumps({**run.manifest, "preset": "full"})),
    lambda run: (run.folder / "report.html").unlink(),
    lambda run: (run.folder / "notebooks" / "3-analyse-zone-disks.ipynb").unlink(),
    lambda run: (run.folder / "ledger.jsonl").write_text(""),
    lambda run: (run.folder / "ledger.jsonl").write_text("{"),
    lambda run: (run.folder / "manifest.json").write_text("[]"),
])  # fmt: skip
def test_one_that_lacks_something_is_not_finished(change, run: Run) -> None:
    assert finished.since(run.folder)
    change(run)
    assert finished.since(run.folder) == ""


def test_one_with_files_beside_its_scenario_has_these_named(run: Run) -> None:
    signed_anew(run, **{companion_files.RECORD: ["toy.py"]})
    assert finished.BESIDE == companion_files.RECORD
    assert finished.since(run.folder) == "" and finished.since(run.folder, file_named=True)


@pytest.mark.emulator
def test_it_is_known_without_what_a_run_needs() -> None:
    code = "import sys; from diskbook.measure.runs import finished; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "pydantic", "azure"} & set(done.stdout.split())
