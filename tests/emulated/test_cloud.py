"""The emulator of a run: its noise clock is set on between blocks where its profile says so, nowhere else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from diskbook.design.schedule import Block
from diskbook.emulated import cloud
from diskbook.emulated.cloud import EMULATOR, emulator_name, own_emulator_name
from diskbook.facts.errors import DiskbookError
from diskbook.results import run as runs
from diskbook.results.run import Run
from support.manifests import MINIMAL

REPLICATE = {"machines": {"vm1": {"id": "/vms/r1-vm1"}, "vm2": {"id": "/vms/r1-vm2"}}}
BLOCKS = [Block(1, 1, ()), Block(1, 2, ())]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked of the emulator."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    asked: list[Any] = []
    monkeypatch.setattr(cloud.lifecycle, "connect", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(cloud.lifecycle, "begin_block", lambda *given: asked.append(given[1:]))
    return asked


def a_run(emulator: dict[str, Any] | None, name: str = "one") -> Run:
    run = runs.create(name)
    run.write_manifest({**MINIMAL, "run": name, "emulator": emulator})
    return run


@pytest.mark.parametrize(
    "emulator", [None, {"name": "e", "own": False}, {"name": "e", "own": False, "hours_between_blocks": 0.0}]
)
def test_without_hours_between_blocks_and_on_azure_blocks_come_as_they_are(
    calls: list[Any], emulator: dict[str, Any] | None
) -> None:
    assert EMULATOR.blocks(a_run(emulator), REPLICATE, BLOCKS) is BLOCKS
    assert calls == []


def test_each_block_sets_the_clock_of_its_machines_before_it_begins(calls: list[Any]) -> None:
    run = a_run({"name": "e", "own": False, "hours_between_blocks": 3.0})
    for number, block in enumerate(EMULATOR.blocks(run, REPLICATE, BLOCKS), 1):
        assert block.block == number and calls[-1] == (["/vms/r1-vm1", "/vms/r1-vm2"], number)
    assert len(calls) == 2


def test_an_emulator_that_does_not_answer_is_told_in_one_sentence(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*given: Any) -> None:
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(cloud.lifecycle, "begin_block", gone)
    run = a_run({"name": "e", "own": False, "hours_between_blocks": 3.0})
    with pytest.raises(DiskbookError, match="the noise clock of emulator e cannot be set on: refused"):
        list(EMULATOR.blocks(run, REPLICATE, BLOCKS))


def test_the_name_of_an_own_emulator_follows_from_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    own = a_run({"name": "of-somebody", "own": True})
    named = a_run({"name": "of-somebody", "own": False}, "two")
    assert emulator_name(own) == own_emulator_name(own.folder) != "of-somebody"
    assert emulator_name(named) == "of-somebody"
    assert emulator_name(a_run(None, "three")) is None
    assert own_emulator_name(own.folder) != own_emulator_name(named.folder)
