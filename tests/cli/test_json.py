"""What --json prints: one document per command, as docs/reference/json.md has it, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from diskbook import cli
from diskbook.cli import documents
from support import fio_documents
from support.shared import one_replicate

WHY = ("why", "sample-zone-disks", "--arm", "zrs-z2")
ASKED = {
    documents.Overview: ("list",),
    documents.Plan: ("plan", "zone-disks", "--half-width", "2%"),
    documents.Why: WHY,
    documents.Protocol: ("why", "--protocol", "sample-zone-disks"),
    documents.Emulators: ("emulator", "status"),
}
"""The others are asked for by tests/cli/test_examples.py."""


def printed(words: Sequence[str]) -> dict:
    done = CliRunner().invoke(cli.cli, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a replicate of a sample."""
    return one_replicate(tmp_path_factory.mktemp("runs") / "sample-zone-disks").folder.parent


@pytest.mark.long
@pytest.mark.parametrize("record", ASKED)
def test_a_command_prints_its_record(
    record: type[documents.Document], runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(runs))
    content = printed(ASKED[record])
    assert content.pop("schema") == f"diskbook/{record.COMMAND}/{record.VERSION}"
    assert record.model_validate(content).model_dump(mode="json") == content


def test_an_import_prints_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    fio_documents.write(tmp_path / "a" / "read.json", fio_documents.entry())
    for more in (("--dry-run",), ("--name", "mine")):
        content = printed(("import", str(tmp_path / "a"), *more))
        assert content["n_measurements"] == sum(content["arms"].values()) > 0
        assert content["written"] is (more[0] == "--name")


def test_a_number_that_there_is_not_is_null() -> None:
    row = documents.CostRow(what="x", count=1.0, hours=float("nan"), expected_usd=None, at_worst_usd=2.0)
    assert row.hours is None


def test_a_number_has_ten_digits() -> None:
    words = dict.fromkeys(("arm", "workload", "verdict", "cause", "remedy", "platform"), "")
    cell = documents.CellRow(**words, iops=26245.5795684, mb_s=107.5, lat_mean_ms=1 / 3)
    document = documents.Why(run="r", provenance="emulated", doubts=[], cells=[cell])
    (row,) = json.loads(document.text)["cells"]
    assert (row["iops"], row["mb_s"], row["lat_mean_ms"]) == (26245.57957, 107.5, 0.3333333333)


def test_an_error_stays_a_sentence() -> None:
    done = CliRunner().invoke(cli.cli, ["why", "sample-zone-disk", "--json"])
    assert done.stdout == "" and "did you mean 'sample-zone-disks'" in str(done.exception)
