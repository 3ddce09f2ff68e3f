"""`diskbook batch` as a command: prices without a start, refuses what is wrong, one process at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from diskbook.batch.commands import batch
from diskbook.cli import documents
from diskbook.facts import files
from diskbook.facts.errors import DiskbookError, UsageError
from support.batches import TINY


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    path = tmp_path / "two.toml"
    path.write_text(f'max_cost_usd = 0.5\n[matrix]\nscenario = ["{TINY}"]\n"design.seed" = [1, 2]\n')
    return path


def test_a_dry_run_prices_the_whole_and_leaves_nothing(matrix: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(batch, [str(matrix), "--dry-run"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "2 runs, 0 of them finished" in done.output and "dated table" in done.output
    assert "the limit of 0.50 USD stops the batch before its last run" in done.output
    assert not (tmp_path / "runs").exists()
    data = json.loads(CliRunner().invoke(batch, [str(matrix), "--dry-run", "--json"]).output)
    assert [row["state"] for row in data["runs"]] == ["new", "new"] and data["fits"] is False
    assert data.pop("schema") == documents.BatchPlan.schema_name() == "diskbook/batch-plan/1"
    assert documents.BatchPlan.model_validate(data).model_dump(mode="json") == data
    assert data["expected_usd"] == pytest.approx(sum(row["expected_usd"] for row in data["runs"]), abs=1e-3)


def test_what_is_wrong_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        CliRunner().invoke(batch, [str(tmp_path / "none.toml")], catch_exceptions=False)


def test_one_process_runs_a_batch(matrix: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "batch-two"
    folder.mkdir(parents=True)
    with files.locked(folder / ".lock", AssertionError()):
        with pytest.raises(DiskbookError, match="batch two is being run by another process"):
            CliRunner().invoke(batch, [str(matrix)], catch_exceptions=False)
