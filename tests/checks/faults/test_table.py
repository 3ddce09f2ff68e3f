"""The table of faults: what it plays, and what its checks find. `make faults` plays it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from checks.faults.__main__ import line, main, rows
from checks.faults.aftermath import lost_or_repeated
from checks.faults.play import Fault, Row
from checks.faults.table import BENCHMARK, FAULTS, PROVISION
from diskbook.facts import paths
from diskbook.results.run import Run
from diskbook_emulator.arm.faults import Faults


def test_the_table_has_what_it_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(FAULTS) >= 25
    assert not [name for name, count in Counter(fault.slug for fault in FAULTS).items() if count > 1]
    kinds = {
        "control plane",
        "SSH",
        "machine",
        "tool",
        "disk full",
        "volumes",
        "left standing",
        "own hosts",
        "kill -9",
        "signal",
        "store",
    }
    assert {fault.kind for fault in FAULTS} == kinds
    assert {PROVISION, BENCHMARK} < {fault.stage for fault in FAULTS if fault.kind == "kill -9"}
    for fault in FAULTS:
        assert fault.inject or fault.planted or fault.prepare
        assert not fault.planted or fault.named  # planted before the run begins
        Faults(fault.planted)  # raises where one cannot be understood
    assert main(["--list", "--only", "^SSH"]) == 0
    assert capsys.readouterr().out.count("\n") == sum(fault.kind == "SSH" for fault in FAULTS)


@pytest.mark.emulator
def test_a_player_that_dies_is_a_fault_that_failed() -> None:
    (row,) = rows([Fault("no-such-fault", "kind", "what", "stage")], 1)
    assert not row.ok and "the player died: StopIteration" in line(row)


def test_what_cannot_be_played_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checks.azurite.is_installed", lambda: False)
    assert main(["--only", "store-busy"]) == 1
    assert (
        "store-busy: not played, there is no Azurite ('make azurite' installs it)" in capsys.readouterr().out
    )


@pytest.fixture
def sample(tmp_path: Path) -> Run:
    """A copy of a finished run."""
    source = paths.RUNS / "sample-zone-disks"
    shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("notebooks", "figures"))
    return Run(tmp_path / source.name)


def write(run: Run, events: list[dict[str, Any]]) -> None:
    (run.folder / "ledger.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


@pytest.mark.long
def test_a_whole_run_has_lost_nothing(sample: Run) -> None:
    assert lost_or_repeated(sample, sample.ledger()[:40]) == []


@pytest.mark.long
def test_a_lost_trial_is_found(sample: Run) -> None:
    events = sample.ledger()
    lost = next(event for event in events if event["event"] == "trial")
    write(sample, [event for event in events if event is not lost])
    key = (1, lost["block"], lost["position"])
    assert f"trial {key} was measured 0 times" in lost_or_repeated(sample, [])
    assert "earlier lines of the ledger have changed" in lost_or_repeated(sample, events)


@pytest.mark.long
def test_a_repeated_block_is_found(sample: Run) -> None:
    events = sample.ledger()
    again = next(event for event in events if event["event"] == "block" and event["status"] == "complete")
    write(sample, [*events, again])
    assert f"block {again['block']} is complete 2 times" in lost_or_repeated(sample, [])


def test_a_changed_raw_file_is_found(sample: Run) -> None:
    entry = next(event for event in sample.ledger() if event["event"] == "trial")["files"]["json"]
    path = sample.folder / entry["path"]
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b" "))
    assert lost_or_repeated(sample, []) == [f"{entry['path']} has changed"]


def test_a_row_that_left_something_fails() -> None:
    row = Row("slug", "kind", "what", "stage", ending="went on by itself")
    assert row.ok and line(row).startswith("ok")
    row.left.append("resource group x")
    assert not row.ok and line(row).startswith("FAIL") and "resource group x" in line(row)
    assert os.environ.get("DISKBOOK_RECONNECT_S") is None  # the scene of a fault is in its own process
